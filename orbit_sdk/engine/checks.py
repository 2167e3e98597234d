"""Judging values at run time: what does not fit goes to a person, never silently on."""

from __future__ import annotations

from orbit_sdk.definition.evaluate import Misfit
from orbit_sdk.definition.validate_value import Validator
from orbit_sdk.errors import OrbitError
from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.paths import field_path

_SMALL_TEXT = 1024
_SMALL_FIELDS = 16
# Of the longest form of JSON: six bytes a character, in names and values.
_SMALL_BYTES = _SMALL_FIELDS * (2 * _SMALL_TEXT * 6 + 8)


def value_problem(validator: Validator | None, value: Json, limit: int) -> str | None:
    """One sentence about the first thing that is wrong with a value, or None. `limit` in bytes of canonical
    JSON.
    """
    problems = validator(value) if validator is not None else None
    if problems:
        return f"{field_path(problems[0].path) or 'the value'} {problems[0].reason}"
    if limit >= _SMALL_BYTES and _is_small(value):
        return None
    try:
        size = len(canonical_bytes(value))
    except OrbitError as error:
        return error.message
    return f"it has {size} bytes; at most {limit} are allowed" if size > limit else None


def check_value(validator: Validator | None, value: Json, limit: int, what: str) -> None:
    """Raises Misfit when a value is not what it has to be."""
    problem = value_problem(validator, value, limit)
    if problem is not None:
        raise Misfit(f"{what}: {problem}")


def _is_small(value: Json) -> bool:
    """Cheap proof that a value has no more than `_SMALL_BYTES`: a few scalars, no long text."""
    if isinstance(value, dict):
        return len(value) <= _SMALL_FIELDS and all(
            _is_scalar(item) and len(name) <= _SMALL_TEXT for name, item in value.items()
        )
    return _is_scalar(value)


def _is_scalar(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= _SMALL_TEXT
    return value is None or isinstance(value, bool | int)
