"""The whole definition, `schema_version` 1: how it is read, written and identified."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from pydantic import Field, ValidationError

from orbit_sdk.definition.base import (
    ErrorCode,
    FieldName,
    HandlerKey,
    Maybe,
    Model,
    Name,
    One,
    SortedSet,
    StepKey,
    Text,
    TypeName,
)
from orbit_sdk.definition.nodes import Node, Title
from orbit_sdk.definition.problems import invalid
from orbit_sdk.definition.value_types import TypeSchema
from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json, parse_json
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits

__all__ = [
    "Definition",
    "HandlerDecl",
    "RecoveryLevel",
    "SignalDecl",
    "definition_digest",
    "load_definition",
    "read_definition",
]

RecoveryLevel: TypeAlias = Literal["READ_ONLY", "IDEMPOTENT", "VERIFIABLE", "MARKED", "CONSERVATIVE"]


class HandlerDecl(Model):
    """A handler as its callers see it. Without `errors` the set of its error codes is open."""

    parameters: dict[FieldName, TypeSchema]
    required: SortedSet[FieldName]
    result: TypeSchema
    recovery: RecoveryLevel
    errors: Maybe[SortedSet[ErrorCode]] = None
    verify: bool


class SignalDecl(Model):
    """A signal's body."""

    body: TypeSchema


class Definition(Model):
    """One version of a workflow. Two definitions are the same when their digests are."""

    schema_version: One
    id: Name
    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    title: Maybe[Title] = None
    description: Maybe[Text] = None
    types: dict[TypeName, TypeSchema]
    handlers: dict[HandlerKey, HandlerDecl]
    signals: dict[Name, SignalDecl]
    input: TypeSchema
    output: TypeSchema
    start: StepKey
    nodes: Annotated[dict[StepKey, Node], Field(min_length=1)]

    def to_json(self) -> dict[str, Any]:
        """The document in canonical order, as plain JSON values."""
        document: dict[str, Any] = orjson.loads(self.canonical())
        return document

    def canonical(self) -> bytes:
        """The document's canonical JSON in UTF-8: what is stored, and what the digest is of."""
        return canonical_bytes(self.model_dump(by_alias=True, exclude_unset=True))


def load_definition(document: Json) -> Definition:
    """The definition of parsed JSON; InvalidArgument with every problem of its form.

    The order of keys and of lists that mean sets is made canonical, so that equal documents behave
    alike. Whether the graph makes sense is checked by `orbit_sdk.check`.
    """
    try:
        return Definition.model_validate(_sorted(document))
    except ValidationError as error:
        raise invalid("the definition", error) from None


def read_definition(data: bytes | str, limits: Limits = DEFAULT_LIMITS) -> Definition:
    """The definition of a JSON text, parsed strictly first."""
    return load_definition(parse_json(data, max_bytes=limits.document_bytes, max_depth=limits.json_depth))


def definition_digest(definition: Definition) -> str:
    """SHA-256 of the canonical document: the identity of its content."""
    return hashlib.sha256(definition.canonical()).hexdigest()


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
