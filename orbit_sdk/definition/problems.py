"""Turns what the models refuse into Orbit's own error: one path and one sentence per finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.paths import PathPart, field_path

__all__ = ["REFUSED_KEYWORDS", "invalid"]

_COMPOSED = "composed types are not part of the value types: write one type, or anyOf"
_CONDITIONAL = "conditional types are not part of the value types: use anyOf with a const property"
_MAP = "is not part of the value types: use additionalProperties with one type"
_NOTE = "is a comment, which has no place in the normal form"

REFUSED_KEYWORDS: Final[dict[str, str]] = {
    "prefixItems": "tuples are not part of the value types: use an object, or an array of one type",
    "additionalItems": "tuples are not part of the value types: use an object, or an array of one type",
    "unevaluatedItems": "tuples are not part of the value types: use an object, or an array of one type",
    "uniqueItems": "sets are not part of the value types: use an array",
    "contains": "is not part of the value types: check it in a handler",
    "minContains": "is not part of the value types: check it in a handler",
    "maxContains": "is not part of the value types: check it in a handler",
    "patternProperties": _MAP,
    "propertyNames": _MAP,
    "unevaluatedProperties": _MAP,
    "minProperties": "is not part of the value types: check it in a handler",
    "maxProperties": "is not part of the value types: check it in a handler",
    "dependentRequired": _CONDITIONAL,
    "dependentSchemas": _CONDITIONAL,
    "if": _CONDITIONAL,
    "then": _CONDITIONAL,
    "else": _CONDITIONAL,
    "allOf": _COMPOSED,
    "not": _COMPOSED,
    "oneOf": "is written anyOf in the normal form",
    "discriminator": "is found from the members of anyOf, and not written",
    "contentEncoding": "bytes are not part of the value types: use a file reference",
    "contentMediaType": "bytes are not part of the value types: use a file reference",
    "contentSchema": "bytes are not part of the value types: use a file reference",
    "writeOnly": "secrets are not part of the value types: use a secret reference",
    "$defs": "is written in the document's types",
    "definitions": "is written in the document's types",
    "$id": "is not part of the value types",
    "$schema": "is not part of the value types",
    "$anchor": "is not part of the value types",
    "$dynamicRef": "is not part of the value types",
    "$dynamicAnchor": "is not part of the value types",
    "title": _NOTE,
    "description": _NOTE,
    "examples": _NOTE,
    "default": _NOTE,
    "deprecated": _NOTE,
    "readOnly": _NOTE,
    "$comment": _NOTE,
}
"""Keywords of JSON Schema that Orbit's types do not have, each with what to do instead."""

REFUSED_FORMATS: Final[dict[str, str]] = {
    "binary": "bytes are not part of the value types: use a file reference",
    "byte": "bytes are not part of the value types: use a file reference",
    "base64": "bytes are not part of the value types: use a file reference",
    "base64url": "bytes are not part of the value types: use a file reference",
    "password": "secrets are not part of the value types: use a secret reference",
}

_TYPE_TAGS: Final = frozenset(
    f"<{name}>"
    for name in (
        *("$ref", "anyOf", "enum", "const", "any", "object", "array"),
        *("string", "integer", "number", "boolean", "null"),
    )
)
_EXPECTED: Final = {"True": "true", "False": "false"}
_REASONS: Final[dict[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this object",
    "string_type": "must be a text",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "tuple_type": "must be an array",
    "finite_number": "must be a finite number",
}


def invalid(what: str, error: ValidationError) -> InvalidArgument:
    """The InvalidArgument of a document that a model refused, with all findings."""
    details = [_detail(found) for found in error.errors(include_url=False)]
    first = details[0]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return InvalidArgument(f"{what} is not valid: {first.field} {first.reason}{more}", details)


def _detail(found: ErrorDetails) -> Detail:
    loc = found["loc"]
    path: list[PathPart] = [part for part in loc if not _is_tag(part)]
    return Detail(field_path(path), _reason(found, loc))


def _is_tag(part: PathPart) -> bool:
    return isinstance(part, str) and (part == "[key]" or (part.startswith("<") and part.endswith(">")))


def _reason(found: ErrorDetails, loc: tuple[PathPart, ...]) -> str:
    kind, value = found["type"], found["input"]
    if kind == "extra_forbidden" and len(loc) > 1 and loc[-2] in _TYPE_TAGS and loc[-1] in REFUSED_KEYWORDS:
        return REFUSED_KEYWORDS[str(loc[-1])]
    if kind == "value_type":
        return _not_a_type(value)
    if kind == "node_kind" and isinstance(value, dict) and "kind" in value:
        return f"{found['msg']}, not {value['kind']!r:.40}"
    if kind == "literal_error":
        expected = str(found.get("ctx", {}).get("expected"))
        if loc[-1:] == ("format",) and isinstance(value, str):
            return REFUSED_FORMATS.get(value, f"is not a known format; known are {expected}")
        return f"must be {_EXPECTED.get(expected, expected)}"
    if kind in _REASONS:
        return _REASONS[kind]
    if kind in ("too_short", "too_long"):
        return _size_reason(kind, found.get("ctx", {}))
    if kind == "string_pattern_mismatch":
        return f"does not match {found.get('ctx', {}).get('pattern')}"
    return found["msg"].replace("Input should", "should").replace("String should", "should")


def _size_reason(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "too_short":
        return f"has {context.get('actual_length')} entries; at least {context.get('min_length')} are needed"
    return f"has too many entries; at most {context.get('max_length')} are allowed"


def _not_a_type(value: Any) -> str:
    if not isinstance(value, dict):
        return "must be a type (an object)"
    for keyword in value:
        if keyword in REFUSED_KEYWORDS and REFUSED_KEYWORDS[keyword] != _NOTE:
            return f"has {keyword}: {REFUSED_KEYWORDS[keyword]}"
    if "anyOf" in value:
        return "is a union inside a union: write it flat"
    if "type" not in value:
        return "has no type: it needs one of type, $ref, enum, const, anyOf"
    if isinstance(value["type"], list):
        return "has several types: use anyOf"
    return f"has the type {value['type']!r}, which is not known"
