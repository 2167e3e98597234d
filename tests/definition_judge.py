"""An independent judge of definitions: the published JSON Schema under the jsonschema library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema.validators import extend

from orbit_sdk.definition.formats import FORMAT_RULES
from orbit_sdk.definition.patterns import compile_pattern

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "definition.v1.schema.json"


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Any:
    """The library asks Python's engine, whose `$` also matches before a last line break."""
    if isinstance(instance, str) and not compile_pattern(pattern)(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def formats() -> jsonschema.FormatChecker:
    """Orbit's formats, which JSON Schema leaves to whoever reads it."""
    checker = jsonschema.FormatChecker(formats=())
    for name, rule in FORMAT_RULES.items():
        checker.checks(name)(lambda value, rule=rule: not isinstance(value, str) or rule(value))
    checker.checks("regex", raises=ValueError)(
        lambda value: not isinstance(value, str) or bool(compile_pattern(value))
    )
    return checker


Judge = extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def definition_judge() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return Judge(schema, format_checker=formats())
