"""From what an author passes (references, literals, lists and dicts of both) to expressions."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Union

import pydantic
import typing_extensions
from pydantic import BaseModel, ValidationError

from orbit_sdk.builder import shapes
from orbit_sdk.builder.graph import Expr
from orbit_sdk.builder.guards import shown_reference
from orbit_sdk.builder.refs import Condition, Ref, condition_data, ref_data
from orbit_sdk.builder.trace import Trace, near
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.signature import dump_checked, error_details
from orbit_sdk.handlers.type_fields import (
    MISSING,
    RecordField,
    TypeRefused,
    alias_value,
    fields_of,
    is_alias,
    is_record,
)
from orbit_sdk.handlers.type_schemas import Schema
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import MAX_SAFE_INTEGER

__all__ = ["Target", "express", "express_fields", "express_freely", "literal", "record_fields", "use"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a value must be: the Python type that literals are judged by, and its normal form."""

    annotation: Any
    schema: Schema


_FROM_ARM = "return the value from the arm, and use what branch or parallel gives back"
_FROM_SIBLING = (
    "arms of one construct know nothing of each other: let them meet first, "
    "and start what needs both behind it"
)


def express(trace: Trace, value: object, target: Target, where: str) -> Expr:
    """The expression of a value that must fit `target`. Raises BuildError."""
    if isinstance(value, Ref):
        return use(trace, value, where, target.schema)
    if isinstance(value, Condition):
        trace.check_current(condition_data(value).trace, repr(value))
        raise trace.refuse(
            "CONDITION_VALUE",
            f"{where} is given a condition, and conditions are no values",
            "use orbit.branch, with a constant in each arm",
        )
    _refuse_forgotten_call(trace, value, where)
    if _holds_reference(value):
        return _composed(trace, value, target, where)
    return {"const": literal(trace, value, target, where)}


def use(trace: Trace, ref: Ref, where: str, schema: Schema | None = None) -> Expr:
    """The expression of a reference, if it may be used here. `schema` is the type it must fit."""
    data = ref_data(ref)
    trace.check_current(data.trace, repr(ref))
    if data.unusable is not None:
        raise trace.refuse("UNUSABLE", *data.unusable)
    if not trace.scope.reaches(data.scope):
        raise trace.refuse(
            "OUTSIDE_ARM",
            f"{where} uses {ref!r}, made in {data.scope.name}, but stands in {trace.scope.name}, "
            "where it may not have run",
            _FROM_SIBLING if data.scope.parent is trace.scope.parent else _FROM_ARM,
        )
    named = trace.book.types
    if (
        schema is not None
        and shapes.is_nullable(data.schema, named)
        and shapes.kinds_of(schema, named)
        and not shapes.is_nullable(schema, named)
        and not trace.is_certain(data)
    ):
        raise trace.refuse(
            "OPTIONAL",
            f"{where} needs {shapes.describe(schema)}, and {ref!r} may be null",
            "use orbit.when_some(value, lambda v: …, lambda: …)",
        )
    return data.expr


def express_freely(trace: Trace, value: object, where: str) -> tuple[Expr, Schema]:
    """The expression and the type of a value whose type nobody declared."""
    if isinstance(value, Ref):
        return use(trace, value, where), ref_data(value).schema
    annotation: Any = type(value)
    if isinstance(value, list | dict):
        annotation = pydantic.JsonValue
    elif value is None:
        annotation = None
    elif isinstance(value, Condition) or callable(value):
        express(trace, value, Target(Any, {}), where)
    target = Target(annotation, trace.schema(annotation, where))
    return express(trace, value, target, where), target.schema


def literal(trace: Trace, value: object, target: Target, where: str) -> Json:
    """The JSON of a literal, judged by its declared type."""
    problem = _not_json(value, where)
    if problem is None and target.annotation is Any and _changes(value):
        problem = (f"{where}: {value!r} would arrive as text: the declared type is Any", "declare its type")
    if problem is not None:
        shown = isinstance(value, str) and shown_reference(value) is not None
        raise trace.refuse("TEXT" if shown else "LITERAL", *problem)
    adapter = trace.adapter(target.annotation)
    try:
        adapter.validate_python(value, strict=True)
        return dump_checked(adapter, value, where)
    except ValidationError as error:
        first = error_details(error)[0]
        place = where if first.field == "$" else f"{where}: {first.field}"
        reason = first.reason
    except InvalidArgument as error:
        place, reason = where, str(error)
    raise trace.refuse(
        "LITERAL",
        f"{place}: {value!r} is not {shapes.describe(target.schema)} ({reason})",
        "give a value of the declared type",
    ) from None


def record_fields(trace: Trace, kind: Any, where: str) -> list[RecordField]:
    """The fields of a record type. Raises BuildError."""
    try:
        return fields_of(kind, where)
    except TypeRefused as refused:
        raise trace.refuse("TYPE", f"{refused.where}: {refused.found}", refused.instead) from None


def express_fields(trace: Trace, kind: Any, given: Mapping[str, object], where: str) -> Expr:
    """An object of a record type: fields checked, plain defaults written. All constants make one constant."""
    fields = {item.name: item for item in record_fields(trace, kind, where)}
    for name in given:
        if name not in fields:
            raise trace.refuse(
                "ARGUMENT", f"{where} has no field {name!r}{near(name, fields)}", f"use {', '.join(fields)}"
            )
    parts: dict[str, Json] = {}
    for name, item in fields.items():
        value = given.get(name, item.default)
        if value is MISSING:
            if item.left_out:
                continue
            why = "its default is made by a factory" if item.factory else "it has no default"
            raise trace.refuse("ARGUMENT", f"{where} needs {name!r}: {why}", f"give {name}=…")
        annotation = Annotated[(item.annotation, *item.extras)] if item.extras else item.annotation
        target = Target(annotation, trace.schema(annotation, f"{where}.{name}"))
        parts[name] = express(trace, value, target, f"{where}.{name}")
    constants = {
        name: part["const"] for name, part in parts.items() if isinstance(part, dict) and "const" in part
    }
    return {"const": constants} if len(constants) == len(parts) else {"object": parts}


def _composed(trace: Trace, value: object, target: Target, where: str) -> Expr:
    """A list or dict literal with references somewhere inside."""
    annotation = _peel(target.annotation, dict if isinstance(value, Mapping) else list)
    if type(value) is list:
        args = typing.get_args(annotation)
        item = Target(args[0], trace.schema(args[0], where)) if args else Target(Any, {})
        return {"array": [express(trace, one, item, f"{where}[{n}]") for n, one in enumerate(value)]}
    if type(value) is dict:
        for key in value:
            if not isinstance(key, str):
                raise trace.refuse("LITERAL", f"{where} has the key {key!r}", "use texts as keys")
        if is_record(annotation):
            return express_fields(trace, annotation, value, where)
        args = typing.get_args(annotation)
        member = Target(args[1], trace.schema(args[1], where)) if args else Target(Any, {})
        return {
            "object": {name: express(trace, one, member, f"{where}.{name}") for name, one in value.items()}
        }
    raise trace.refuse(
        "CONSTRUCTOR",
        f"{where}: a {type(value).__name__} was made with a reference inside",
        "use orbit.build(Model, field=…), or a plain list",
    )


def _peel(annotation: Any, container: type) -> Any:
    """The part of an annotation that describes a list, or an object; None when it says nothing of that."""
    origin = typing.get_origin(annotation)
    if origin in (Annotated, typing_extensions.Annotated):
        return _peel(typing.get_args(annotation)[0], container)
    if is_alias(annotation):
        return _peel(alias_value(annotation, "the type"), container)
    if origin in (Union, types.UnionType):
        options = (_peel(option, container) for option in typing.get_args(annotation))
        return next((option for option in options if option is not None), None)
    if container is dict and is_record(annotation):
        return annotation
    kinds: tuple[object, ...] = (dict, Mapping) if container is dict else (list, Sequence)
    return annotation if origin in kinds else None


def _holds_reference(value: object) -> bool:
    if isinstance(value, Ref | Condition):
        return True
    if isinstance(value, Mapping):
        return any(_holds_reference(one) for one in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_reference(one) for one in value)
    if isinstance(value, BaseModel):
        return any(_holds_reference(one) for one in value.__dict__.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_holds_reference(getattr(value, item.name, None)) for item in dataclasses.fields(value))
    return False


def _refuse_forgotten_call(trace: Trace, value: object, where: str) -> None:
    if isinstance(value, Handler):
        raise trace.refuse(
            "FORGOTTEN_CALL",
            f"{where} is given the handler {value.key} itself, not its result",
            f"did you mean {value.__name__}(…)?",
        )
    if callable(value) and not isinstance(value, Enum | BaseModel) and not dataclasses.is_dataclass(value):
        name = getattr(value, "__name__", type(value).__name__)
        raise trace.refuse(
            "FORGOTTEN_CALL",
            f"{where} is given {name}, which is code and not a value",
            f"did you mean {name}(…)?",
        )


def _not_json(value: object, where: str) -> tuple[str, str] | None:
    """What JSON can never carry, whatever the declared type says: found, and instead."""
    match value:
        case tuple():
            return f"{where}: {value!r} is a tuple, which has no JSON form", "write a list"
        case set() | frozenset():
            return f"{where}: {value!r} is a set, which has no order", "write a list"
        case bytes() | bytearray():
            return f"{where}: bytes have no JSON form", "write a text (base64)"
        case datetime() if value.utcoffset() is None:
            return f"{where}: {value!r} has no zone, so it names no instant", "give it a tzinfo"
        case time():
            return f"{where}: {value!r} names no instant", "write a text, or an aware datetime"
        case str() if (shown := shown_reference(value)) is not None:
            return (
                f"{where}: the text holds {shown!r}, which is how a reference is shown, never its value",
                'use orbit.text("…{}", ref) for keys; else compute it in a handler',
            )
        case float() if not math.isfinite(value):
            return f"{where}: {value!r} is not a JSON number", "write a finite number"
        case bool():
            return None
        case int() if abs(value) > MAX_SAFE_INTEGER:
            return f"{where}: {value!r} is beyond what JSON carries exactly", "write it as a text"
        case dict():
            return _first(_member(key, one, where) for key, one in value.items())
        case list():
            return _first(_not_json(one, f"{where}[{n}]") for n, one in enumerate(value))
        case _:
            return _without_form(value, where)


_CHANGED = (Decimal, date, timedelta)
"""What JSON carries as a text, which only a declared type turns back."""
_CARRIED = (str, int, float, type(None), Decimal, date, timedelta, Enum, BaseModel)


def _changes(value: object) -> bool:
    """Whether a value, or something inside it, becomes a text on the way."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, _CHANGED) or any(map(_changes, inside))


def _without_form(value: object, where: str) -> tuple[str, str] | None:
    if _has_json_form(value):
        return None
    kind = type(value).__name__
    return f"{where}: {value!r} ({kind}) has no JSON form", "give a value of the declared type"


def _has_json_form(value: object) -> bool:
    """Whether some declared type could carry it (code never can)."""
    if isinstance(value, type) or (callable(value) and not isinstance(value, BaseModel)):
        return False
    known = isinstance(value, _CARRIED) or dataclasses.is_dataclass(value)
    return known or hasattr(value, "__get_pydantic_core_schema__") or type(value).__module__ == "uuid"


def _member(key: object, value: object, where: str) -> tuple[str, str] | None:
    if not isinstance(key, str):
        return f"{where} has the key {key!r}", "use texts as keys"
    return _not_json(value, f"{where}.{key}")


def _first(found: Any) -> tuple[str, str] | None:
    return next((one for one in found if one is not None), None)
