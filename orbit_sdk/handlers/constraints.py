"""Constraints of `Annotated[...]` and `Field(...)` in the words of JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from annotated_types import GroupedMetadata

from orbit_sdk.handlers.markers import Sensitive
from orbit_sdk.handlers.type_fields import TypeRefused
from orbit_sdk.values.json_strict import Json

__all__ = ["constrained", "is_sensitive"]

_BOUNDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_SIZES = {"min_length": ("minLength", "minItems"), "max_length": ("maxLength", "maxItems")}
_CHANGES_SHAPE = (
    "PlainSerializer",
    "WrapSerializer",
    "WithJsonSchema",
    "Base64Encoder",
    "EncodedBytes",
    "EncodedStr",
)


def is_sensitive(extras: Sequence[object]) -> bool:
    """Whether the mark `Sensitive` (the class, or an instance of it) is among the extras."""
    return any(extra is Sensitive or isinstance(extra, Sensitive) for extra in extras)


def constrained(schema: dict[str, Json], extras: Sequence[object], where: str) -> dict[str, Json]:
    """The schema with what its extras add. Extras that only the worker can judge (validators) add nothing."""
    if not extras:
        return schema
    added: dict[str, Json] = {}
    for extra in _flat(extras):
        if type(extra).__name__ in _CHANGES_SHAPE:
            raise TypeRefused(
                where, f"{type(extra).__name__} changes the value's JSON form", "declare the JSON form"
            )
        for name, bound in _BOUNDS.items():
            value = getattr(extra, name, None)
            if value is not None and schema.get("type") in ("integer", "number"):
                added[bound] = _number(value, schema, where)
        for name, (of_text, of_list) in _SIZES.items():
            value = getattr(extra, name, None)
            if isinstance(value, int) and schema.get("type") in ("string", "array"):
                added[of_text if schema["type"] == "string" else of_list] = value
        pattern = getattr(extra, "pattern", None)
        if pattern is not None and schema.get("type") == "string":
            added["pattern"] = pattern if isinstance(pattern, str) else str(pattern.pattern)
    for size in ("minLength", "minItems"):
        if added.get(size) == 0:
            del added[size]
    return {**schema, **added} if added else schema


def _flat(extras: Sequence[object]) -> Iterator[object]:
    for extra in extras:
        metadata = getattr(extra, "metadata", None)
        if isinstance(extra, GroupedMetadata):
            yield from _flat(list(extra))
        elif isinstance(metadata, list):  # pydantic's Field(...) inside Annotated
            yield from _flat(metadata)
        else:
            yield extra


def _number(value: object, schema: dict[str, Json], where: str) -> Json:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeRefused(where, f"the bound {value!r} is not a number", "give a plain number")
    if schema["type"] == "integer" and isinstance(value, float):
        if not value.is_integer():
            raise TypeRefused(
                where, f"the bound {value!r} of a whole number is not whole", "give a whole number"
            )
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
