"""Canonical JSON (RFC 8785) and its digest: what makes two documents the same.

Most values go through orjson; what orjson would write its own way (floats, keys beyond the basic
plane, NaN) is found in its output and written by the exact writer below.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring

import orjson

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import MAX_SAFE_INTEGER

__all__ = ["canonical_bytes", "canonical_json", "digest", "digest_of_text", "same_json"]

_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)
# A number with a fraction or an exponent. A text that only looks so costs time, never correctness.
_FRACTION = re.compile(rb"[:,\[]-?[0-9]+[.eE]")
# A character beyond the basic plane: UTF-16 and UTF-8 order such keys differently.
_BEYOND_BASIC_PLANE = re.compile(rb"[\xf0-\xf4]")


def canonical_bytes(value: Json) -> bytes:
    """The RFC 8785 form in UTF-8. InvalidArgument for what JSON cannot carry exactly."""
    try:
        fast = orjson.dumps(value, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return _exact(value)
    return _exact(value) if _needs_care(value, fast) else fast


def _needs_care(value: Json, fast: bytes) -> bool:
    """Whether orjson may have written something its own way; NaN it writes as null."""
    if isinstance(value, float) or _FRACTION.search(fast) is not None:
        return True
    if not fast.isascii() and _BEYOND_BASIC_PLANE.search(fast) is not None:
        return True
    return b"null" in fast and _holds_float(value)


def _holds_float(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_float(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_float(item) for item in value)
    return isinstance(value, float)


def canonical_json(value: Json) -> str:
    """The RFC 8785 form as text."""
    return canonical_bytes(value).decode()


def digest(value: Json) -> str:
    """SHA-256 of the canonical form, 64 lower-case hex digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def digest_of_text(canonical: str) -> str:
    """SHA-256 of a text that is canonical already."""
    return hashlib.sha256(canonical.encode()).hexdigest()


def same_json(left: Json, right: Json) -> bool:
    """Equal by meaning: `1` and `1.0` are, `"1"` and `1`, `true` and `1`, null and absent are not."""
    return canonical_bytes(left) == canonical_bytes(right)


def _exact(value: Json) -> bytes:
    pieces: list[str] = []
    try:
        _write(value, pieces)
        return "".join(pieces).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text holds a lone surrogate, which JSON cannot carry") from error
    except RecursionError as error:
        raise InvalidArgument("the value is nested too deeply") from error


def _write(value: object, out: list[str]) -> None:
    if value is None:
        out.append("null")
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, int):
        if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            raise InvalidArgument("a whole number lies outside ±(2^53-1); send it as a text")
        out.append(str(int(value)))
    elif isinstance(value, float):
        out.append(_number(value))
    elif isinstance(value, Mapping):
        _write_object(value, out)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        separator = "["
        for item in value:
            out.append(separator)
            _write(item, out)
            separator = ","
        out.append("]" if value else "[]")
    else:
        raise InvalidArgument(f"a {type(value).__name__} is not a JSON value")


def _write_object(value: Mapping[object, object], out: list[str]) -> None:
    keys: list[str] = []
    for key in value:
        if not isinstance(key, str):
            raise InvalidArgument(f"an object's key is a {type(key).__name__}, not a text")
        keys.append(key)
    keys.sort(key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    separator = "{"
    for key in keys:
        out.append(separator)
        out.append(encode_basestring(key))
        out.append(":")
        _write(value[key], out)
        separator = ","
    out.append("}" if keys else "{}")


def _number(value: float) -> str:
    """A double as ECMAScript prints it: shortest digits, plain between 1e-7 and 1e21."""
    if not math.isfinite(value):
        raise InvalidArgument("NaN and Infinity are not JSON numbers")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"
