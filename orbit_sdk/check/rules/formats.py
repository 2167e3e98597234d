"""Texts that mean numbers or instants are compared as what they mean, and only where they mean it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.narrow import Proofs, proofs
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.check.words import type_text
from orbit_sdk.definition.expressions import And, Condition, In, IsNull, Not, Or, operands
from orbit_sdk.definition.formats import FORMAT_RULES
from orbit_sdk.definition.nodes import BranchWhenNode
from orbit_sdk.definition.value_types import AnyType, EnumType, StringType, TypeSchema

_MEANT = frozenset({"decimal", "date-time"})


@dataclass(frozen=True, slots=True)
class _Compared:
    """One comparison: its path, its operator, `as`, and the types of both sides."""

    path: Path
    node: str
    name: str
    kind: str | None
    sides: tuple[TypeSchema, TypeSchema]


@rule(
    "COMPARISON_AS_WRONG",
    remedy="Compare values of the format that `as` names, or leave `as` out.",
)
def comparison_as_wrong(view: View) -> Iterator[Finding]:
    """A comparison names a format that one of its values never has."""
    for each in view.once(_compared):
        for side in each.sides if each.kind is not None else ():
            if _share(view, side, each.kind or "") == {False}:
                what = f"At '{each.node}' {type_text(side)} is compared as {each.kind}, which it never is."
                yield Finding(each.path, what)


@rule(
    "COMPARISON_AS_UNCERTAIN",
    severity=Severity.WARNING,
    remedy="Declare the value with the format that `as` names.",
)
def comparison_as_uncertain(view: View) -> Iterator[Finding]:
    """Whether a value has the format of its comparison shows only at run time; if not, a person is asked."""
    for each in view.once(_compared):
        for side in each.sides if each.kind is not None else ():
            if len(_share(view, side, each.kind or "")) > 1:
                what = f"At '{each.node}' {type_text(side)} is compared as {each.kind}, which it may not be."
                yield Finding(each.path, what)


@rule(
    "COMPARISON_AS_MISSING",
    remedy="Say `as` with the format of the values.",
)
def comparison_as_missing(view: View) -> Iterator[Finding]:
    """Decimals or instants are compared letter by letter: `9.5` would be larger than `10`."""
    for each in view.once(_compared):
        formats = [_formats(view, side) & _MEANT for side in each.sides]
        # Equality with a constant is exact; between two texts 1.0 and 1.00 would differ.
        found = formats[0] & formats[1] if each.name in ("eq", "ne", "in") else formats[0] | formats[1]
        if each.kind is None and found:
            kind = min(found)
            yield Finding(
                each.path,
                f"At '{each.node}' values of format {kind} are compared letter by letter.",
                help=f'Say "as": "{kind}".',
            )


def _compared(view: View) -> Iterator[_Compared]:
    for place in view.placed:
        node = str(place.path[1])
        if isinstance(view.nodes[node], BranchWhenNode) and place.known is not None:
            condition: Condition = place.item  # type: ignore[assignment]
            yield from _inside(view, condition, place.known, place.path, node)


def _inside(view: View, item: Condition, known: Proofs, path: Path, node: str) -> Iterator[_Compared]:
    match item:
        case IsNull():
            return
        case Not(not_=inner):
            yield from _inside(view, inner, known, (*path, "not"), node)
        case And(and_=parts) | Or(or_=parts):
            name = "and" if isinstance(item, And) else "or"
            for index, part in enumerate(parts):
                yield from _inside(view, part, known, (*path, name, index), node)
                known |= proofs(part)[0 if name == "and" else 1]
        case In(in_=members, as_=kind):
            among = EnumType.model_construct(enum=tuple(members.among))
            yield _Compared((*path, "in"), node, "in", kind, (view.typer.of(members.value, known), among))
        case _:
            name, (left, right) = operands(item)
            sides = (view.typer.of(left, known), view.typer.of(right, known))
            yield _Compared((*path, name), node, name, item.as_, sides)


def _share(view: View, schema: TypeSchema, kind: str) -> set[bool]:
    """Whether texts of a type have a format: always, never, or both; nothing where there are no texts."""
    found: set[bool] = set()
    for atom in view.fitter.atoms(schema):
        match atom:
            case StringType() if atom.format is None:
                found |= {True, False}
            case StringType():
                found.add(atom.format == kind)
            case EnumType(enum=values):
                found |= {FORMAT_RULES[kind](value) for value in values if isinstance(value, str)}
            case AnyType():
                found |= {True, False}
            case _:
                continue
    return found


def _formats(view: View, schema: TypeSchema) -> frozenset[str]:
    atoms = view.fitter.atoms(schema)
    return frozenset(
        atom.format for atom in atoms if isinstance(atom, StringType) and atom.format is not None
    )


RULES = (comparison_as_wrong, comparison_as_uncertain, comparison_as_missing)
