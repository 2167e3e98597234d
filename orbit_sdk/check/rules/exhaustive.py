"""A BRANCH always has a way to go, and every case can be chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.fits import Fitter
from orbit_sdk.check.narrow import Proofs
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.check.words import ref_text, type_text, value_text, values_text
from orbit_sdk.definition.evaluate import holds
from orbit_sdk.definition.expressions import Const, Expression, Ref, refs_of
from orbit_sdk.definition.nodes import BranchOnNode, BranchWhenNode
from orbit_sdk.definition.value_types import EnumType, TypeSchema
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json


@rule(
    "CASE_REPEATED",
    remedy="Leave the value in one case only.",
)
def case_repeated(view: View) -> Iterator[Finding]:
    """Two cases of a BRANCH name the same value."""
    for key, node in _branches_on(view):
        seen: dict[str, int] = {}
        for index, case in enumerate(node.cases):
            for value in case.equals:
                first = seen.setdefault(canonical_json(value), index)
                if first != index:
                    yield Finding(
                        ("nodes", key, "cases", index, "equals"),
                        f"BRANCH '{key}' names {value_text(value)} in two cases.",
                        related=((("nodes", key, "cases", first, "equals"), "the first of them"),),
                    )


@rule(
    "CASE_IMPOSSIBLE",
    remedy="Name a value of the type, or remove the case.",
)
def case_impossible(view: View) -> Iterator[Finding]:
    """A case names a value that what the BRANCH looks at can never have."""
    for key, node, schema in view.once(_typed_branches):
        for index, case in enumerate(node.cases):
            for value in case.equals:
                if not any(view.accepts(atom, value) for atom in view.fitter.atoms(schema)):
                    yield Finding(
                        ("nodes", key, "cases", index, "equals"),
                        f"{_subject(node.on)} at '{key}' is never {value_text(value)}: "
                        f"it is of type {type_text(schema)}.",
                    )


@rule(
    "CASES_INCOMPLETE",
    remedy="Add cases for the missing values, or `otherwise`.",
)
def cases_incomplete(view: View) -> Iterator[Finding]:
    """A BRANCH without `otherwise` does not name every value."""
    for key, node, schema in view.once(_typed_branches):
        if node.otherwise is not None:
            continue
        values = _values(view.fitter, schema)
        if values is None:
            yield Finding(
                ("nodes", key, "cases"),
                f"BRANCH '{key}' has no `otherwise`, but {_subject(node.on)} may have any value "
                f"of type {type_text(schema)}.",
            )
            continue
        missing = _unnamed(node, values)
        if missing:
            yield Finding(
                ("nodes", key, "cases"),
                f"BRANCH '{key}' does not say what happens when {_subject(node.on)} "
                f"is {values_text(missing)}.",
            )


@rule(
    "CASE_DEAD",
    severity=Severity.WARNING,
    remedy="Remove it, or correct what comes before it.",
)
def case_dead(view: View) -> Iterator[Finding]:
    """A case or `otherwise` can never be chosen."""
    for key, node, schema in view.once(_typed_branches):
        values = _values(view.fitter, schema)
        if node.otherwise is not None and values is not None and not _unnamed(node, values):
            yield Finding(
                ("nodes", key, "otherwise"),
                f"`otherwise` of '{key}' is never chosen: the cases name every value.",
            )
    for key, other in view.nodes.items():
        if isinstance(other, BranchWhenNode):
            yield from _dead_conditions(key, other)


def _dead_conditions(key: str, node: BranchWhenNode) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    always: int | None = None
    for index, case in enumerate(node.cases):
        path: Path = ("nodes", key, "cases", index)
        constant = _constant(node, index)
        text = canonical_json(case.when.model_dump(by_alias=True, exclude_unset=True))
        first = seen.setdefault(text, index)
        if always is not None:
            yield _dead(
                path, f"Case {index} of '{key}' is never chosen: case {always} always is.", key, always
            )
        elif first != index:
            yield _dead(path, f"Case {index} of '{key}' repeats the condition of case {first}.", key, first)
        elif constant is False:
            yield Finding(path, f"Case {index} of '{key}' is never chosen: its condition never holds.")
        if constant and always is None:
            always = index
    if always is not None:
        what = f"`otherwise` of '{key}' is never chosen: case {always} always is."
        yield _dead(("nodes", key, "otherwise"), what, key, always)


def _dead(path: Path, message: str, key: str, earlier: int) -> Finding:
    return Finding(path, message, related=((("nodes", key, "cases", earlier), "the earlier case"),))


class _NoFacts:
    """The facts of a condition that reads none."""

    def get(self, key: object, /) -> Json:
        raise LookupError(key)


def _constant(node: BranchWhenNode, index: int) -> bool | None:
    """The value of a condition without references; None for one that depends on facts, or misfits."""
    condition = node.cases[index].when
    if any(True for _ in refs_of(condition)):
        return None
    try:
        return holds(condition, _NoFacts())
    except ValueError:
        return None


def _values(fitter: Fitter, schema: TypeSchema) -> Sequence[Json] | None:
    """All values of a type that has finitely many that can be listed."""
    found: list[Json] = []
    for atom in fitter.atoms(schema):
        if not isinstance(atom, EnumType):
            return None
        found.extend(atom.enum)
    return found


def _unnamed(node: BranchOnNode, values: Sequence[Json]) -> list[Json]:
    named = {canonical_json(value) for case in node.cases for value in case.equals}
    missing = {canonical_json(value): value for value in values}
    return [value for text, value in missing.items() if text not in named]


def _subject(expression: Expression) -> str:
    if isinstance(expression, Ref):
        return ref_text(expression)
    return value_text(expression.const) if isinstance(expression, Const) else "the value"


def _branches_on(view: View) -> Iterator[tuple[str, BranchOnNode]]:
    for key, node in view.nodes.items():
        if isinstance(node, BranchOnNode):
            yield key, node


def _typed_branches(view: View) -> Iterator[tuple[str, BranchOnNode, TypeSchema]]:
    at, _ = view.known
    for key, node in _branches_on(view):
        known: Proofs = at[key]
        if all(ref.fact in known and not view.typer.read(ref, known).unknown for _, ref in refs_of(node.on)):
            yield key, node, view.typer.of(node.on, known)


ALWAYS_RULES = (case_repeated,)
"""Rules that need nothing but the node itself."""

TYPED_RULES = (case_impossible, cases_incomplete, case_dead)
"""Rules that need to know what each step knows."""
