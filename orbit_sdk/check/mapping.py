"""Where an expression does not fit its target, told as deep inside as it can be told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orbit_sdk.check.diagnostics import Path
from orbit_sdk.check.fits import ANY, Fit, Fitter
from orbit_sdk.check.narrow import Proofs
from orbit_sdk.check.typing import Typer
from orbit_sdk.definition.expressions import ArrayExpr, Expression, ObjectExpr
from orbit_sdk.definition.value_types import ArrayType, ObjectType, TypeSchema


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of an expression that is not always a value of its target.

    `path` leads to it from the outermost expression. `missing` names a property that the target requires and
    the expression lacks, `extra` one that the target has no place for.
    """

    path: Path
    fit: Fit
    source: TypeSchema
    target: TypeSchema
    part: Expression
    missing: str | None = None
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Mapper:
    typer: Typer
    fitter: Fitter
    known: Proofs

    def misfits(self, expression: Expression, target: TypeSchema, path: Path = ()) -> Iterator[Misfit]:
        """Everything in an expression that is not always a value of its target."""
        atoms = self.fitter.atoms(target)
        only = atoms[0] if len(atoms) == 1 else None
        if isinstance(expression, ObjectExpr) and isinstance(only, ObjectType):
            yield from self._object(expression, only, path)
            return
        if isinstance(expression, ArrayExpr) and isinstance(only, ArrayType) and only.items is not None:
            for index, item in enumerate(expression.array):
                yield from self.misfits(item, only.items, (*path, "array", index))
            only = only.model_copy(update={"items": None})
            target = only
        source = self.typer.of(expression, self.known)
        fit = self.fitter.fit(source, target)
        if fit is not Fit.ALWAYS:
            yield Misfit(path, fit, source, target, expression)

    def _object(self, expression: ObjectExpr, target: ObjectType, path: Path) -> Iterator[Misfit]:
        source = self.typer.of(expression, self.known)
        for name in target.required_names:
            if name not in expression.object:
                yield Misfit(path, Fit.NEVER, source, target, expression, missing=name)
        for name, value in expression.object.items():
            inner: Path = (*path, "object", name)
            declared = target.fields.get(name)
            if declared is None and target.additional is False:
                yield Misfit(inner, Fit.NEVER, source, target, value, extra=name)
            else:
                other = ANY if target.additional in (None, False) else target.additional
                yield from self.misfits(value, declared or other, inner)  # type: ignore[arg-type]
