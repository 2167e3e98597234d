"""Conditions: comparisons of references, and how they combine."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic import TypeAdapter

from orbit_sdk.builder import shapes
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.express import use
from orbit_sdk.builder.graph import Expr, Scope
from orbit_sdk.builder.guards import shown_reference
from orbit_sdk.builder.refs import Condition, ConditionData, Ref, condition_data, ref_data
from orbit_sdk.builder.trace import Trace, near
from orbit_sdk.definition.expressions import Condition as ConditionModel
from orbit_sdk.handlers.type_schemas import Schema
from orbit_sdk.values.json_strict import Json

__all__ = [
    "all_of",
    "any_of",
    "as_condition",
    "compare",
    "constant_of",
    "is_in",
    "is_null",
    "join",
    "model_of",
    "not_",
]

_MODEL: TypeAdapter[ConditionModel] = TypeAdapter(ConditionModel)
_ORDERED = frozenset({"number", "string"})
_AS = ("decimal", "date-time")


def model_of(expr: Expr) -> ConditionModel:
    """The definition's model of a condition."""
    return _MODEL.validate_python(expr)


def compare(trace: Trace, operator: str, ref: Ref, other: object) -> Condition:
    """`ref == other` and its kin."""
    data = ref_data(ref)
    left = use(trace, ref, "the comparison")
    if other is None:
        if operator not in ("eq", "ne"):
            raise trace.refuse("COMPARE", f"{ref!r} is ordered against None", "use orbit.is_null")
        null: Expr = {"is_null": left}
        return _condition(trace, null if operator == "eq" else {"not": null}, data.scope)
    scope = data.scope
    if isinstance(other, Ref):
        right = use(trace, other, "the comparison")
        schema = ref_data(other).schema
        scope = _inner(scope, ref_data(other).scope)
    else:
        value = constant_of(trace, other, data.schema, f"the comparison with {ref!r}")
        right, schema = {"const": value}, {"const": value}
    form = shapes.format_of(data.schema, trace.book.types)
    _refuse_unlike(trace, operator, (ref, data.schema), (other, schema))
    expr: Expr = {operator: [left, right]}
    if form in _AS:
        expr["as"] = form
    return _condition(trace, expr, scope)


def constant_of(trace: Trace, value: object, schema: Schema, where: str) -> Json:
    """The JSON of a literal compared with a value of type `schema`; one that is never equal is refused."""
    constant = _plain_constant(trace, value, where)
    if type(constant) is int and shapes.format_of(schema, trace.book.types) == "decimal":
        constant = str(constant)
    closed = shapes.closed_values(schema, trace.book.types)
    if closed is not None and not any(type(constant) is type(one) and constant == one for one in closed):
        names = [str(one) for one in closed]
        raise trace.refuse(
            "NO_SUCH_VALUE",
            f"{where}: {value!r} is none of its values{near(str(constant), names)}",
            f"use one of {', '.join(repr(one) for one in closed)}",
        )
    return constant


def _plain_constant(trace: Trace, value: object, where: str) -> Json:
    if isinstance(value, Enum):
        value = value.value
    match value:
        case str() if (shown := shown_reference(value)) is not None:
            raise trace.refuse("TEXT", f"{where}: the text holds {shown!r}", "compare with the reference")
        case None | bool() | str():
            return value
        case int() | float():
            return value
        case Decimal() if value.is_finite():
            return str(value)
        case datetime() if value.utcoffset() is not None:
            return TypeAdapter(datetime).dump_json(value).decode().strip('"')
        case datetime():
            raise trace.refuse("LITERAL", f"{where}: {value!r} has no zone", "give it a tzinfo")
        case date():
            return value.isoformat()
        case _:
            raise trace.refuse(
                "COMPARE",
                f"{where}: a {type(value).__name__} cannot be compared",
                "compare with a plain constant",
            )


def _refuse_unlike(
    trace: Trace, operator: str, left: tuple[object, Schema], right: tuple[object, Schema]
) -> None:
    types = trace.book.types
    kinds = [shapes.kinds_of(schema, types) - {"null"} for _, schema in (left, right)]
    if operator not in ("eq", "ne"):
        for (what, schema), kind in zip((left, right), kinds, strict=True):
            if kind and not kind & _ORDERED:
                raise trace.refuse(
                    "COMPARE",
                    f"{what!r} ({shapes.describe(schema)}) has no order",
                    "compare numbers or texts",
                )
    if kinds[0] and kinds[1] and not kinds[0] & kinds[1]:
        raise trace.refuse(
            "COMPARE",
            f"{left[0]!r} ({shapes.describe(left[1])}) is compared with "
            f"{right[0]!r} ({shapes.describe(right[1])})",
            "compare values of one kind",
        )


def as_condition(trace: Trace, value: object, where: str) -> ConditionData:
    """A condition as it is, a boolean reference as `is true`. Everything else is refused."""
    if isinstance(value, Condition):
        data = condition_data(value)
        trace.check_current(data.trace, repr(value))
        if not trace.scope.reaches(data.scope):
            raise trace.refuse(
                "OUTSIDE_ARM",
                f"{where} uses a condition made in {data.scope.name}",
                "compare values in this arm",
            )
        return data
    if isinstance(value, Ref):
        kinds = shapes.kinds_of(ref_data(value).schema, trace.book.types)
        if kinds != {"boolean"}:
            raise trace.refuse(
                "NOT_A_CONDITION",
                f"{where} is given {value!r}, which is not a boolean",
                "compare it: ref == …, orbit.is_null(ref), orbit.is_in(ref, […])",
            )
        expr: Expr = {"eq": [use(trace, value, where), {"const": True}]}
        return ConditionData(trace, expr, ref_data(value).scope)
    raise trace.refuse(
        "NOT_A_CONDITION",
        f"{where} is given {value!r}, which is known while the definition is built",
        "compare a reference; decide what is known already with a plain `if`",
    )


def join(trace: Trace, operator: str, left: object, right: object) -> Condition:
    """`a & b`, `a | b`."""
    return _joined(trace, operator, [left, right], "`&`" if operator == "and" else "`|`")


def _joined(trace: Trace, operator: str, parts: Iterable[object], where: str) -> Condition:
    found = [as_condition(trace, part, where) for part in parts]
    flat: list[Json] = []
    scope = found[0].scope
    for one in found:
        inner = one.expr.get(operator)
        flat.extend(inner if isinstance(inner, list) else [one.expr])
        scope = _inner(scope, one.scope)
    return _condition(trace, flat[0] if len(flat) == 1 else {operator: flat}, scope)


def _condition(trace: Trace, expr: Any, scope: Scope) -> Condition:
    return Condition(ConditionData(trace, expr, scope))


def _inner(left: Scope, right: Scope) -> Scope:
    return left if left.reaches(right) else right


def _bool(condition: Condition) -> bool:
    return cast(bool, condition)


def all_of(*conditions: bool) -> bool:
    """Every one of the conditions holds."""
    return _several("and", conditions, "orbit.all_of")


def any_of(*conditions: bool) -> bool:
    """At least one of the conditions holds."""
    return _several("or", conditions, "orbit.any_of")


def _several(operator: str, conditions: tuple[object, ...], what: str) -> bool:
    trace = current_trace(what)
    if not conditions:
        raise trace.refuse("NOT_A_CONDITION", f"{what} is given nothing", "give it conditions")
    return _bool(_joined(trace, operator, conditions, what))


def not_(condition: bool) -> bool:
    """The condition does not hold."""
    trace = current_trace("orbit.not_")
    data = as_condition(trace, condition, "orbit.not_")
    return _bool(_condition(trace, {"not": data.expr}, data.scope))


def is_null(value: object) -> bool:
    """The value is null (or its property is absent)."""
    trace = current_trace("orbit.is_null")
    if not isinstance(value, Ref):
        raise trace.refuse("NOT_A_CONDITION", f"orbit.is_null is given {value!r}", "give it a reference")
    return _bool(_condition(trace, {"is_null": use(trace, value, "orbit.is_null")}, ref_data(value).scope))


def is_in(value: object, among: Iterable[object]) -> bool:
    """The value is one of some constants."""
    trace = current_trace("orbit.is_in")
    if not isinstance(value, Ref):
        raise trace.refuse("NOT_A_CONDITION", f"orbit.is_in is given {value!r}", "give it a reference")
    data = ref_data(value)
    where = f"orbit.is_in of {value!r}"
    if isinstance(among, Ref | str):
        raise trace.refuse("COMPARE", f"{where}: {among!r} is not a list of constants", 'write ["a", "b"]')
    constants = [constant_of(trace, one, data.schema, where) for one in among]
    if not constants:
        raise trace.refuse("COMPARE", f"{where} is given no constant", "give it at least one")
    expr: Expr = {"in": {"value": use(trace, value, where), "among": constants}}
    form = shapes.format_of(data.schema, trace.book.types)
    if form in _AS:
        expr["as"] = form
    return _bool(_condition(trace, expr, data.scope))
