"""Questions about types in normal form: what a reference may be asked, and what it may be compared with."""

from __future__ import annotations

from collections.abc import Mapping

from orbit_sdk.handlers.type_schemas import Schema, union
from orbit_sdk.values.json_strict import Json

__all__ = [
    "NULL",
    "closed_values",
    "describe",
    "field_names",
    "field_of",
    "format_of",
    "is_nullable",
    "kinds_of",
    "members",
    "without_null",
]

Types = Mapping[str, Schema]
NULL: Schema = {"type": "null"}


def members(schema: Schema, types: Types) -> list[Schema]:
    """The alternatives of a type, `$ref` followed; a plain type is its own only one."""
    found: list[Schema] = []
    waiting = [schema]
    seen: set[str] = set()
    while waiting:
        one = waiting.pop(0)
        ref = one.get("$ref")
        if isinstance(ref, str):
            name = ref.removeprefix("#/types/")
            if name not in seen:
                seen.add(name)
                waiting.append(types[name])
        elif isinstance(options := one.get("anyOf"), list):
            waiting.extend(option for option in options if isinstance(option, dict))
        else:
            found.append(one)
    return found


def is_nullable(schema: Schema, types: Types) -> bool:
    """Whether null is among the values; for `{}` (anything) that is not claimed."""
    return any(_is_null(one) for one in members(schema, types))


def without_null(schema: Schema, types: Types) -> Schema:
    """The type without null; references to named types are kept."""
    options = schema.get("anyOf")
    if isinstance(options, list):
        return union([option for option in options if isinstance(option, dict) and not _is_null(option)])
    if not is_nullable(schema, types):
        return schema
    return union([one for one in members(schema, types) if not _is_null(one)])


def field_of(schema: Schema, name: str, types: Types) -> Schema | None:
    """The type of a property (with null when it may be absent), or None when there is no such property."""
    found: list[Schema] = []
    for one in members(schema, types):
        if one == {}:
            found.append({})
            continue
        properties = one.get("properties")
        if isinstance(properties, dict) and name in properties:
            inner = properties[name]
            assert isinstance(inner, dict)
            found.append(inner)
            required = one.get("required", [])
            if not (isinstance(required, list) and name in required):
                found.append(NULL)
        elif isinstance(values := one.get("additionalProperties"), dict):
            found.extend((values, NULL))
        else:
            return None
    return union(found) if found else None


def field_names(schema: Schema, types: Types) -> list[str]:
    """Every property that some alternative has."""
    names: set[str] = set()
    for one in members(schema, types):
        properties = one.get("properties")
        if isinstance(properties, dict):
            names.update(properties)
    return sorted(names)


def closed_values(schema: Schema, types: Types) -> list[Json] | None:
    """All values of a type that has finitely many (null included), else None."""
    found: list[Json] = []
    for one in members(schema, types):
        if "const" in one:
            found.append(one["const"])
        elif isinstance(values := one.get("enum"), list):
            found.extend(values)
        elif one.get("type") == "boolean":
            found.extend((True, False))
        elif _is_null(one):
            found.append(None)
        else:
            return None
    return found


def kinds_of(schema: Schema, types: Types) -> set[str]:
    """What the values are in JSON: string, number, boolean, null, object, array; empty for anything."""
    found: set[str] = set()
    for one in members(schema, types):
        if "const" in one:
            found.add(kind_of_value(one["const"]))
        elif isinstance(values := one.get("enum"), list):
            found.update(kind_of_value(value) for value in values)
        elif isinstance(name := one.get("type"), str):
            found.add("number" if name == "integer" else name)
        else:
            return set()
    return found


def kind_of_value(value: Json) -> str:
    """The JSON kind of a constant."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def format_of(schema: Schema, types: Types) -> str | None:
    """The format of a text type, null aside; None when there is none or not one alone."""
    found = [one.get("format") for one in members(schema, types) if not _is_null(one)]
    first = found[0] if found else None
    return first if isinstance(first, str) and all(one == first for one in found) else None


def describe(schema: Schema) -> str:
    """A type in few words, for messages."""
    if not schema or schema == {"sensitive": True}:
        return "any JSON"
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return ref.removeprefix("#/types/")
    options = schema.get("anyOf")
    if isinstance(options, list):
        return " | ".join(describe(option) for option in options if isinstance(option, dict))
    if "const" in schema:
        return repr(schema["const"])
    values = schema.get("enum")
    if isinstance(values, list):
        return " | ".join(repr(value) for value in values)
    if schema.get("type") == "array" and isinstance(items := schema.get("items"), dict):
        return f"array of {describe(items)}"
    form = schema.get("format")
    return str(form if isinstance(form, str) else schema.get("type"))


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)
