"""Conditions compare like with like."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.fact_types import constant
from orbit_sdk.check.fits import Atom, Fitter
from orbit_sdk.check.narrow import Proofs, proofs
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.rules.types import is_sound
from orbit_sdk.check.view import View
from orbit_sdk.check.words import type_text
from orbit_sdk.definition.expressions import And, Condition, Eq, Expression, In, IsNull, Ne, Not, Or, operands
from orbit_sdk.definition.nodes import BranchWhenNode
from orbit_sdk.definition.value_types import (
    AnyType,
    ArrayType,
    EnumType,
    IntegerType,
    NumberType,
    ObjectType,
    StringType,
    TypeSchema,
)

_Problem = tuple[Path, str, bool]
"""Path inside the condition, what is wrong, and whether it is certain (else it shows only at run time)."""

_ORDERED = frozenset({"text", "number"})
_ALL = frozenset({"null", "boolean", "number", "text", "array", "object"})


@rule(
    "COMPARISON_UNLIKE",
    remedy="Compare values of like types; decimals and instants say so with `as`.",
)
def comparison_unlike(view: View) -> Iterator[Finding]:
    """A condition compares values that can never be compared, or that can never be equal."""
    for path, what, is_certain in view.once(_problems):
        if is_certain:
            yield Finding(path, what)


@rule(
    "COMPARISON_UNCERTAIN",
    severity=Severity.WARNING,
    remedy="Make the types agree, or test an optional with `is_null` before.",
)
def comparison_uncertain(view: View) -> Iterator[Finding]:
    """Whether two values can be compared shows only at run time; if not, a person is asked."""
    for path, what, is_certain in view.once(_problems):
        if not is_certain:
            yield Finding(path, what)


def _problems(view: View) -> Iterator[_Problem]:
    for place in view.placed:
        node = view.nodes[str(place.path[1])]
        if isinstance(node, BranchWhenNode) and place.known is not None and is_sound(view, place):
            walk = _Walk(view)
            for path, what, is_certain in walk.problems(place.item, place.known):  # type: ignore[arg-type]
                yield (*place.path, *path), f"At '{place.path[1]}' {what}", is_certain


class _Walk:
    """Goes through one condition; inside `and` and `or` what was tested before counts."""

    def __init__(self, view: View) -> None:
        self._typer = view.typer
        self._fitter = view.fitter

    def problems(self, condition: Condition, known: Proofs) -> Iterator[_Problem]:
        match condition:
            case IsNull():
                return
            case Not(not_=inner):
                yield from _under("not", self.problems(inner, known))
            case And(and_=parts):
                yield from self._parts("and", parts, known, holds=True)
            case Or(or_=parts):
                yield from self._parts("or", parts, known, holds=False)
            case In(in_=members, as_=kind):
                for value in members.among:
                    yield from self._equal(members.value, constant(value), known, ("in",), kind is not None)
            case _:
                yield from self._comparison(condition, known)

    def _parts(
        self, name: str, parts: tuple[Condition, ...], known: Proofs, *, holds: bool
    ) -> Iterator[_Problem]:
        for index, part in enumerate(parts):
            yield from _under(name, _under(index, self.problems(part, known)))
            known |= proofs(part)[0 if holds else 1]

    def _comparison(self, condition: Condition, known: Proofs) -> Iterator[_Problem]:
        name, (left, right) = operands(condition)  # type: ignore[arg-type]
        formatted = condition.as_ is not None  # type: ignore[union-attr]
        if isinstance(condition, Eq | Ne):
            yield from self._equal(left, self._typer.of(right, known), known, (name,), formatted)
            return
        first, second = self._typer.of(left, known), self._typer.of(right, known)
        allowed = frozenset({"text"}) if formatted else _ORDERED
        yield from self._like(first, second, allowed, (name,))

    def _equal(
        self, left: Expression, second: TypeSchema, known: Proofs, path: Path, formatted: bool
    ) -> Iterator[_Problem]:
        first = self._typer.of(left, known)
        allowed = frozenset({"text", "null"}) if formatted else _ALL
        found = list(self._like(first, second, allowed, path, null_is_fine=True))
        yield from found
        if not found and not formatted and self._fitter.is_apart(first, second):
            yield path, f"{type_text(first)} is never equal to {type_text(second)}.", True

    def _like(
        self,
        first: TypeSchema,
        second: TypeSchema,
        allowed: frozenset[str],
        path: Path,
        null_is_fine: bool = False,
    ) -> Iterator[_Problem]:
        left, right = families(self._fitter, first), families(self._fitter, second)
        null = frozenset({"null"}) if null_is_fine else frozenset[str]()
        if not (left & right & allowed) and not ((left | right) & null):
            yield path, f"{type_text(first)} cannot be compared with {type_text(second)}.", True
            return
        unlike = any(one != other or one not in allowed for one in left - null for other in right - null)
        if unlike:
            yield path, f"{type_text(first)} may not be comparable with {type_text(second)}.", False


def families(fitter: Fitter, schema: TypeSchema) -> frozenset[str]:
    """The kinds of JSON value that a type may have."""
    found: set[str] = set()
    for atom in fitter.atoms(schema):
        found |= _family(atom)
    return frozenset(found)


def _family(atom: Atom) -> frozenset[str]:
    match atom:
        case AnyType():
            return _ALL
        case ObjectType():
            return frozenset({"object"})
        case ArrayType():
            return frozenset({"array"})
        case StringType():
            return frozenset({"text"})
        case IntegerType() | NumberType():
            return frozenset({"number"})
        case EnumType(enum=values):
            return frozenset(_family_of(value) for value in values)


def _family_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "array"
        case _:
            return "object"


def _under(part: str | int, problems: Iterator[_Problem]) -> Iterator[_Problem]:
    for path, what, is_certain in problems:
        yield (part, *path), what, is_certain


RULES = (comparison_unlike, comparison_uncertain)
