"""What expressions and conditions are worth, given the facts of an instance. Pure.

Values are JSON. Whole numbers and fractions compare exactly; a boolean is not a number; texts compare
by code point unless the comparison says `decimal` or `date-time`. What does not fit (unlike types, a
path through a text) raises Misfit; the caller sends that to a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol, TypeAlias, assert_never

from orbit_sdk.definition.expressions import (
    And,
    ArrayExpr,
    CompareAs,
    Condition,
    Const,
    Eq,
    Expression,
    FactKey,
    Ge,
    Gt,
    In,
    IsNull,
    Le,
    Lt,
    Ne,
    Not,
    ObjectExpr,
    Or,
    Ref,
    TextExpr,
    refs_of,
)
from orbit_sdk.definition.formats import to_decimal
from orbit_sdk.values.canonical import same_json
from orbit_sdk.values.instants import from_rfc3339
from orbit_sdk.values.json_strict import Json

__all__ = ["Facts", "Misfit", "MissingFact", "evaluate", "facts_of", "holds", "read_path", "same_value"]

_Ordered: TypeAlias = int | float | str | Decimal


class Facts(Protocol):
    """Where values come from. `get` raises MissingFact for a fact that is not there."""

    def get(self, key: FactKey, /) -> Json: ...


class MissingFact(LookupError):
    """The expression reads a fact that does not exist (yet); `key` says which."""

    def __init__(self, key: FactKey) -> None:
        super().__init__(f"there is no {key}")
        self.key = key


class Misfit(ValueError):
    """A value is not of the type that the expression needs."""


def evaluate(expression: Expression, facts: Facts) -> Json:
    """The value of an expression. Raises MissingFact, Misfit."""
    match expression:
        case Const(const=value):
            constant: Json = value
            return constant
        case Ref():
            return read_path(facts.get(expression.fact), expression.steps)
        case ObjectExpr(object=fields):
            return {name: evaluate(part, facts) for name, part in fields.items()}
        case ArrayExpr(array=items):
            return [evaluate(part, facts) for part in items]
        case TextExpr(text=pieces):
            return "".join(piece if isinstance(piece, str) else _text(piece, facts) for piece in pieces)
        case _:
            assert_never(expression)


def holds(condition: Condition, facts: Facts) -> bool:
    """Whether a condition is true; `and` and `or` stop at the first that decides."""
    match condition:
        case And(and_=parts):
            return all(holds(part, facts) for part in parts)
        case Or(or_=parts):
            return any(holds(part, facts) for part in parts)
        case Not(not_=part):
            return not holds(part, facts)
        case IsNull(is_null=part):
            return evaluate(part, facts) is None
        case In(in_=members, as_=kind):
            value = evaluate(members.value, facts)
            return any(_equal(value, member, kind) for member in members.among)
        case Eq(eq=(left, right), as_=kind):
            return _equal(evaluate(left, facts), evaluate(right, facts), kind)
        case Ne(ne=(left, right), as_=kind):
            return not _equal(evaluate(left, facts), evaluate(right, facts), kind)
        case Lt(lt=(left, right), as_=kind):
            return _order(evaluate(left, facts), evaluate(right, facts), kind) < 0
        case Le(le=(left, right), as_=kind):
            return _order(evaluate(left, facts), evaluate(right, facts), kind) <= 0
        case Gt(gt=(left, right), as_=kind):
            return _order(evaluate(left, facts), evaluate(right, facts), kind) > 0
        case Ge(ge=(left, right), as_=kind):
            return _order(evaluate(left, facts), evaluate(right, facts), kind) >= 0
        case _:
            assert_never(condition)


def facts_of(item: Expression | Condition) -> frozenset[FactKey]:
    """Every fact that an expression or a condition may read."""
    return frozenset(ref.fact for _, ref in refs_of(item))


def read_path(value: Json, path: Sequence[str]) -> Json:
    """The value inside; a property that is absent reads as null, a path through a non-object misfits."""
    for depth, name in enumerate(path):
        if not isinstance(value, dict):
            place = ".".join(path[:depth]) or "the value"
            raise Misfit(f"{place} is {_kind(value)}, so it has no {name}")
        value = value.get(name)
    return value


def same_value(left: Json, right: Json) -> bool:
    """Equal as JSON: `1` is `1.0`, but neither is `true` nor `"1"`. Used for cases and poll states."""
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return same_json(left, right)


def _text(piece: Ref, facts: Facts) -> str:
    value = evaluate(piece, facts)
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Misfit(f"a text is made of texts and integers, not of {_kind(value)}")


def _equal(left: Json, right: Json, kind: CompareAs | None) -> bool:
    """Equality; null is equal to null only, other unlike types misfit."""
    if left is None or right is None:
        return left is right
    if kind is not None:
        return _order(left, right, kind) == 0
    if _kind(left) != _kind(right):
        raise Misfit(f"{_kind(left)} cannot be compared with {_kind(right)}")
    return same_value(left, right)


def _order(left: Json, right: Json, kind: CompareAs | None) -> int:
    first, second = _ordered(left, kind), _ordered(right, kind)
    if isinstance(first, str) or isinstance(second, str):
        if not (isinstance(first, str) and isinstance(second, str)):
            raise Misfit(f"{_kind(left)} cannot be compared with {_kind(right)}")
        return (first > second) - (first < second)
    return (first > second) - (first < second)


def _ordered(value: Json, kind: CompareAs | None) -> _Ordered:
    """The value in a form that Python orders as the comparison means it."""
    if kind is not None:
        if not isinstance(value, str):
            raise Misfit(f"{_kind(value)} is not a text of format {kind}")
        try:
            return to_decimal(value) if kind == "decimal" else from_rfc3339(value)
        except ValueError as error:
            raise Misfit(f"a text {error}") from None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Misfit(f"{_kind(value)} has no order")
    return value


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            assert_never(value)
