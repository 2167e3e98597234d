"""The types of facts that no document declares: what an instance, a failure and a received signal offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orbit_sdk.definition.models import HandlerDecl
from orbit_sdk.definition.value_types import (
    ConstType,
    EnumType,
    IntegerType,
    NullType,
    ObjectType,
    StringType,
    TypeSchema,
    UnionType,
)

TEXT = StringType(type="string")
INSTANT = StringType(type="string", format="date-time")
INTEGER = IntegerType(type="integer")
NULL = NullType(type="null")
PIECE = UnionType(any_of=(TEXT, INTEGER))
"""What a text template may be made of."""

OWN_ERROR_CODES = ("ATTEMPTS_EXHAUSTED", "EXPIRED")
"""Definite failures that Orbit itself reports of a task, beside the codes its handler declares."""


def record(fields: dict[str, TypeSchema]) -> ObjectType:
    """An object with exactly these properties, all of them there."""
    return ObjectType.model_construct(
        type="object",
        properties=dict(sorted(fields.items())),
        required=tuple(sorted(fields)),
        additional=False,
    )


def optional(schema: TypeSchema) -> UnionType:
    """The type or null."""
    return union([schema, NULL])


def _flat(parts: Sequence[TypeSchema]) -> tuple[Any, ...]:
    return tuple(parts)


def union(parts: Sequence[TypeSchema]) -> UnionType:
    """Any of these types. Unlike in a document, unions may stand in it: nothing but the checks reads it."""
    return UnionType.model_construct(any_of=_flat(parts))


INSTANCE = record(
    {
        "workflow_id": TEXT,
        "business_key": optional(TEXT),
        "started_at": INSTANT,
        "started_by": TEXT,
        "origin": optional(TEXT),
        "planned_at": optional(INSTANT),
    }
)
"""`planned_at` is there when a schedule started the instance, `origin` when it restarts another."""

SIGNAL_META = record({"actor": TEXT, "accepted_at": INSTANT, "signal_id": TEXT})


def failure_type(handler: HandlerDecl) -> ObjectType:
    """A definite failure: its code, closed where the handler declares its errors, and a message."""
    code: TypeSchema = TEXT
    if handler.errors is not None:
        codes = tuple(sorted({*handler.errors, *OWN_ERROR_CODES}))
        code = EnumType.model_construct(enum=codes)
    return record({"code": code, "message": TEXT})


def constant(value: object) -> ConstType:
    """The type of one value."""
    return ConstType.model_construct(const=value)
