"""The one way JSON comes in: everything that two readers could understand differently is refused.

Refused: duplicate keys, NaN and Infinity, whole numbers outside ±(2^53-1) however they are spelt,
numbers too large for a double, lone surrogates, NUL characters, a byte order mark, keys that are
too long, nesting that is too deep, documents that are too large. All findings come at once, each
with its place.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from orbit_sdk.errors import Detail, InvalidArgument, PayloadTooLarge
from orbit_sdk.values.limits import DEFAULT_LIMITS, MAX_SAFE_INTEGER
from orbit_sdk.values.paths import PathPart, field_path

__all__ = ["Json", "parse_json"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_SUSPECT_TEXT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_PROBLEMS = 50
_SHOWN = 40
_MAX_KEY = DEFAULT_LIMITS.object_key_chars
_BIG = "is a whole number outside ±(2^53-1); send it as a text"


@dataclass(slots=True)
class _Bad:
    """Stands in the parsed tree where something was refused, so that its path can be told."""

    reason: str
    value: object = None


class _Reader:
    """The hooks for one document; `bad` says whether any stand-in was left in the tree."""

    def __init__(self) -> None:
        self.bad = False

    def reject(self, reason: str, value: object = None) -> _Bad:
        self.bad = True
        return _Bad(reason, value)

    def pairs(self, pairs: list[tuple[str, object]]) -> object:
        value = dict(pairs)
        if len(value) != len(pairs):
            twice = sorted(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            return self.reject(f"has the key {', '.join(map(json.dumps, twice))} twice", value)
        for key in value:
            if len(key) > _MAX_KEY:
                return self.reject(f"has a key longer than {_MAX_KEY} characters", value)
        return value

    def integer(self, text: str) -> object:
        if len(text) > 17:
            return self.reject(_BIG)
        number = int(text)
        return number if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else self.reject(_BIG)

    def real(self, text: str) -> object:
        number = float(text)
        if not math.isfinite(number):
            return self.reject("is too large for a double")
        # Every double from 2^53 on is whole, and its canonical form would be such a number.
        return number if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else self.reject(_BIG)

    def constant(self, text: str) -> object:
        return self.reject(f"is {text}, which is not a JSON number")


def parse_json(data: bytes | str, *, max_bytes: int, max_depth: int = DEFAULT_LIMITS.json_depth) -> Json:
    """The value of a JSON text; `max_bytes` counts UTF-8, `max_depth` counts nested containers.

    Raises PayloadTooLarge for the size, InvalidArgument with a path per finding for the rest.
    """
    text = _text_of(data, max_bytes)
    reader = _Reader()
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=reader.pairs,
            parse_int=reader.integer,
            parse_float=reader.real,
            parse_constant=reader.constant,
        )
    except json.JSONDecodeError as error:
        reason = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise InvalidArgument.at("$", reason) from None
    except RecursionError:
        raise InvalidArgument.at("$", f"is nested deeper than {max_depth}") from None
    if reader.bad or _needs_walk(text, value, max_depth):
        _refuse(value, max_depth)
    return value


def _text_of(data: bytes | str, max_bytes: int) -> str:
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError:
            raise InvalidArgument.at("$", "holds a lone surrogate") from None
    if len(data) > max_bytes:
        reason = f"is {len(data)} bytes long; the limit is {max_bytes}"
        raise PayloadTooLarge(f"the document {reason}", [Detail("$", reason)])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument.at("$", f"is not UTF-8 (byte {error.start})") from None
    if text.startswith("\ufeff"):
        raise InvalidArgument.at("$", "begins with a byte order mark")
    return text


def _needs_walk(text: str, value: object, max_depth: int) -> bool:
    """Only a document that could hold something bad is walked in full; most could not."""
    if _SUSPECT_TEXT.search(text) is not None:
        return True
    return text.count("{") + text.count("[") > max_depth and _is_deeper(value, max_depth)


def _is_deeper(value: object, depth_left: int) -> bool:
    """Whether containers are nested deeper; looks at nothing else, for long flat documents come often."""
    inner = value.values() if type(value) is dict else value if type(value) is list else ()
    if depth_left == 0:
        return True
    return any(type(item) in (dict, list) and _is_deeper(item, depth_left - 1) for item in inner)


def _refuse(value: object, max_depth: int) -> None:
    problems: list[Detail] = []
    for path, reason in _findings(value, (), max_depth):
        problems.append(Detail(field_path(path), reason))
        if len(problems) == _MAX_PROBLEMS:
            break
    if problems:
        first = problems[0]
        raise InvalidArgument(f"{first.field} {first.reason}", problems)


def _findings(
    value: object, path: tuple[PathPart, ...], depth_left: int
) -> Iterator[tuple[tuple[PathPart, ...], str]]:
    if isinstance(value, _Bad):
        yield path, value.reason
        value = value.value
    if isinstance(value, str):
        if reason := _bad_text(value):
            yield path, reason
    elif isinstance(value, dict | list):
        if depth_left == 0:
            yield path, "is nested too deeply"
            return
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _findings(item, (*path, index), depth_left - 1)
            return
        for key, item in value.items():
            if reason := _bad_text(key):
                yield path, f"has a key that {reason} ({json.dumps(key[:_SHOWN])})"
            else:
                yield from _findings(item, (*path, key), depth_left - 1)


def _bad_text(text: str) -> str | None:
    if "\0" in text:
        return "holds a NUL character"
    if _SURROGATE.search(text):
        return "holds a lone surrogate"
    return None
