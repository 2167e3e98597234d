"""Brings ordinary JSON Schema, as libraries write it, into the normal form of value types.

Comments go, spellings become one, `$defs` become named types. What has another meaning than any value
type is left as it is, so that the reader of the normal form refuses it by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from orbit_sdk.definition.value_types import TypeSchema, load_type
from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.canonical import canonical_json, same_json
from orbit_sdk.values.json_strict import Json

__all__ = ["NormalTypes", "normalise_schema", "normalise_types"]

_NOTES: Final = frozenset(
    {"title", "description", "examples", "default", "deprecated", "readOnly", "$comment", "$schema", "$id"}
)
_EMPTY: Final[dict[str, Json]] = {"properties": {}, "required": [], "minLength": 0, "minItems": 0}
_OPEN: Final[tuple[Json, ...]] = (True, {})
_KEYWORDS_BY_TYPE: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "boolean": frozenset(),
    "null": frozenset(),
}
_ALL_KEYWORDS: Final = frozenset().union(*_KEYWORDS_BY_TYPE.values())


@dataclass(frozen=True, slots=True)
class NormalTypes:
    """A type in normal form and the named types that it mentions."""

    root: TypeSchema
    types: Mapping[str, TypeSchema]


def normalise_types(schema: Mapping[str, Any]) -> NormalTypes:
    """Reads a JSON Schema with `$defs`. InvalidArgument names everything outside the value types.

    Paths in the error begin in the normal form: `types.<name>` for what stood in `$defs`.
    """
    problems: list[Detail] = []
    named: dict[str, TypeSchema] = {}
    for name, part in schema.get("$defs", {}).items():
        if (found := _load(normalise_schema(part), f"types.{name}", problems)) is not None:
            named[name] = found
    body = {key: value for key, value in schema.items() if key != "$defs"}
    root = _load(normalise_schema(body), "", problems)
    if problems or root is None:
        first = problems[0]
        raise InvalidArgument(f"the type is not valid: {first.field} {first.reason}", problems)
    return NormalTypes(root, named)


def _load(normal: Json, place: str, problems: list[Detail]) -> TypeSchema | None:
    try:
        return load_type(normal)
    except InvalidArgument as error:
        for detail in error.details:
            inner = "" if detail.field == "$" else detail.field
            dot = "." if place and inner and not inner.startswith("[") else ""
            problems.append(Detail(f"{place}{dot}{inner}" or "$", detail.reason))
        return None


def normalise_schema(schema: Any) -> Json:
    """The normal form of one JSON Schema (without `$defs`), as JSON; never raises."""
    if schema is True:
        return {}
    if not isinstance(schema, Mapping):
        refused: Json = schema
        return refused
    body: dict[str, Any] = {key: value for key, value in schema.items() if key not in _NOTES}
    if isinstance(body.get("$ref"), str):
        body["$ref"] = body["$ref"].replace("#/$defs/", "#/types/", 1)
    if (
        isinstance(every := body.get("allOf"), list)
        and len(every) == 1
        and body.keys() <= {"allOf", "sensitive"}
    ):
        return _with_mark(normalise_schema(every[0]), body)
    if "oneOf" in body and isinstance(body.get("discriminator"), Mapping):
        body["anyOf"] = body.pop("oneOf")
        del body["discriminator"]
    if isinstance(body.get("anyOf"), list):
        return _union(body)
    if "const" in body or isinstance(body.get("enum"), list):
        return _constants(body)
    if isinstance(body.get("type"), list):
        return _several(body)
    return _plain(body)


def _with_mark(normal: Json, body: Mapping[str, Any]) -> Json:
    if isinstance(normal, dict) and body.get("sensitive") is True:
        return {**normal, "sensitive": True}
    return normal


def _union(body: dict[str, Any]) -> Json:
    members: list[Json] = []
    for member in _flat(body.pop("anyOf")):
        if not any(canonical_json(member) == canonical_json(other) for other in members):
            members.append(member)
    if len(members) == 1 and body.keys() <= {"sensitive"}:
        return _with_mark(members[0], body)
    return {**body, "anyOf": members}


def _flat(members: list[Any]) -> Iterator[Json]:
    for member in members:
        normal = normalise_schema(member)
        inner = normal.get("anyOf") if isinstance(normal, dict) and len(normal) == 1 else None
        if isinstance(inner, list):
            yield from inner
        else:
            yield normal


def _constants(body: dict[str, Any]) -> Json:
    values: list[Json] = [body.pop("const")] if "const" in body else body.pop("enum")
    kinds = body.pop("type", None)
    if kinds is not None:
        allowed = kinds if isinstance(kinds, list) else [kinds]
        values = [value for value in values if any(_is_of(value, kind) for kind in allowed)]
    distinct: list[Json] = []
    for value in values:
        if not any(same_json(value, other) for other in distinct):
            distinct.append(value)
    return {**body, "const": distinct[0]} if len(distinct) == 1 else {**body, "enum": distinct}


def _is_of(value: Json, kind: str) -> bool:
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case list():
            return kind == "array"
        case _:
            return kind == "object"


def _several(body: dict[str, Any]) -> Json:
    """`type` with several names: each takes the keywords that mean something for it."""
    kinds = body.pop("type")
    mark = {"sensitive": body.pop("sensitive")} if "sensitive" in body else {}
    members: list[Any] = []
    for kind in kinds:
        known = _KEYWORDS_BY_TYPE.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
        kept = {key: value for key, value in body.items() if key in known or key not in _ALL_KEYWORDS}
        members.append({"type": kind, **kept})
    return normalise_schema({"anyOf": members, **mark})


def _plain(body: dict[str, Any]) -> Json:
    for key, value in _EMPTY.items():
        if key in body and body[key] == value and body[key] is not False:
            del body[key]
    if isinstance(fields := body.get("properties"), Mapping):
        body["properties"] = {name: normalise_schema(part) for name, part in fields.items()}
    for key in ("items", "additionalProperties"):
        if key not in body or body[key] is False:
            continue
        body[key] = normalise_schema(body[key])
        if body[key] in _OPEN:
            del body[key]
    for key, value in body.items():
        if isinstance(value, float) and value.is_integer():
            body[key] = int(value)
    return body
