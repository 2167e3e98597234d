"""What every model of the definition shares: frozen, strict, closed, one spelling for each thing.

A field that says nothing is absent: `null` is refused everywhere but inside constants, so that a
document has exactly one canonical form. Lists that mean sets are sorted when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from orbit_sdk.errors import OrbitError
from orbit_sdk.values import names
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import MAX_SAFE_INTEGER

__all__ = [
    "DurationMs",
    "ErrorCode",
    "FieldName",
    "HandlerKey",
    "JsonValue",
    "Marked",
    "Maybe",
    "Model",
    "Name",
    "One",
    "Percent",
    "PositiveInt",
    "QueueName",
    "Some",
    "SortedSet",
    "SortedSeveral",
    "SortedSome",
    "StepKey",
    "Text",
    "TypeName",
    "tag_by_key",
]

T = TypeVar("T")


class Model(BaseModel):
    """Base of all definition models. Read only: mappings inside must not be changed either."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        regex_engine="rust-regex",
        # Built when first used: most importers of the SDK never read a definition.
        defer_build=True,
    )


class _AbsentNotNull:
    """Turns `T | None` into "T or absent": None is only ever the default, never a spelling."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"Maybe[...] wraps T | None, not {source!r}")
        inner: core_schema.CoreSchema = schema["schema"]
        return inner


@dataclass(frozen=True)
class _Grammar:
    """A text that a function judges; `schema` says the same in JSON Schema."""

    what: str
    judge: Callable[[str], bool]
    schema: dict[str, Any] = field(compare=False)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", **self.schema}

    def _check(self, text: str) -> str:
        if not self.judge(text):
            raise PydanticCustomError("grammar", "is not {what}", {"what": self.what})
        return text


def _json_value(value: Any) -> Any:
    try:
        canonical_json(value)
    except OrbitError as error:
        raise PydanticCustomError("json", "{reason}", {"reason": error.message}) from None
    return value


def _sorted_set(values: tuple[T, ...]) -> tuple[T, ...]:
    by_text = {canonical_json(_plain(value)): value for value in values}
    if len(by_text) != len(values):
        raise PydanticCustomError("twice", "names something twice")
    return tuple(by_text[text] for text in sorted(by_text))


def _plain(value: Any) -> Json:
    return value.model_dump(by_alias=True, exclude_unset=True) if isinstance(value, BaseModel) else value


@dataclass(frozen=True)
class _SameType:
    """Python takes True for 1 and 1.0 for 1; a literal of the document means itself alone."""

    kind: type

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def _check(self, value: Any) -> Any:
        if type(value) is not self.kind:
            raise PydanticCustomError("same_type", "is not {kind}", {"kind": _KINDS[self.kind]})
        return value


_KINDS = {bool: "true or false", int: "an integer"}


def tag_by_key(value: Any, keys: tuple[str, ...]) -> str | None:
    """`<key>` for the first of the keys that a mapping or a model has; brackets keep tags out of paths."""
    for key in keys:
        if (key in value) if isinstance(value, dict) else key in getattr(value, "model_fields_set", ()):
            return f"<{key}>"
    return None


Maybe: TypeAlias = Annotated[T | None, _AbsentNotNull()]
Some: TypeAlias = Annotated[tuple[T, ...], Field(strict=False, min_length=1)]
SortedSet: TypeAlias = Annotated[
    tuple[T, ...],
    Field(strict=False, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_sorted_set),
]

SortedSome: TypeAlias = Annotated[
    tuple[T, ...],
    Field(strict=False, min_length=1, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_sorted_set),
]
SortedSeveral: TypeAlias = Annotated[
    tuple[T, ...],
    Field(strict=False, min_length=2, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_sorted_set),
]

JsonValue: TypeAlias = Annotated[Any, AfterValidator(_json_value)]
"""Any JSON value, null included; the only place where null is a value."""

One: TypeAlias = Annotated[Literal[1], _SameType(int)]
Marked: TypeAlias = Annotated[Literal[True], _SameType(bool)]

PositiveInt: TypeAlias = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
Percent: TypeAlias = Annotated[int, Field(ge=0, le=100)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4000)]
FieldName: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]

StepKey: TypeAlias = Annotated[
    str,
    _Grammar(
        "a step key (lower-case letters, digits and _, a letter first, at most 63, never input or instance)",
        names.is_step_key,
        {"pattern": names.STEP_KEY_PATTERN, "not": {"enum": sorted(names.RESERVED_KEYS)}},
    ),
]
Name: TypeAlias = Annotated[
    str,
    _Grammar(
        "a name such as orders.approve (lower-case words joined by dots, at most 128 characters)",
        names.is_name,
        {"pattern": names.NAME_PATTERN, "maxLength": 128},
    ),
]
HandlerKey: TypeAlias = Annotated[
    str,
    _Grammar(
        "a handler key such as job.submit@1",
        names.is_handler_key,
        {"allOf": [{"pattern": names.HANDLER_KEY_PATTERN}, {"pattern": "^[^@]{1,128}@"}]},
    ),
]
TypeName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,127}$")]
DurationMs: TypeAlias = PositiveInt
"""Whole milliseconds, at least 1."""

QueueName: TypeAlias = Annotated[
    str, _Grammar("a queue name", names.is_queue_name, {"pattern": names.QUEUE_PATTERN})
]
ErrorCode: TypeAlias = Annotated[
    str,
    _Grammar("an error code such as NO_FUNDS", names.is_error_code, {"pattern": names.ERROR_CODE_PATTERN}),
]
