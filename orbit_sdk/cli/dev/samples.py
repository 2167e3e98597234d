"""A value of a type, for the command that a person pastes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["sample"]

_DEPTH = 6
_SIMPLE: Mapping[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "null": None,
    "array": [],
}
_FORMATS: Mapping[str, str] = {
    "date-time": "2030-01-01T12:00:00Z",
    "date": "2030-01-01",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "someone@example.org",
    "uri": "https://example.org",
}


def sample(schema: Mapping[str, Any], types: Mapping[str, Any], depth: int = 0) -> Any:
    """Something that most likely fits: what is required, in its simplest form."""
    if depth > _DEPTH:
        return None
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return sample(types.get(name, {}), types, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("anyOf"):
        return sample(schema["anyOf"][0], types, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: sample(properties.get(name, {}), types, depth + 1) for name in schema.get("required", ())
        }
    if kind == "array" and schema.get("minItems"):
        return [sample(schema.get("items", {}), types, depth + 1)] * int(schema["minItems"])
    if kind == "string" and "format" in schema:
        return _FORMATS.get(schema["format"], "text")
    if kind in ("integer", "number") and "minimum" in schema:
        return max(1, schema["minimum"])
    return _SIMPLE.get(str(kind), None)
