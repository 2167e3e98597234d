"""The formats of text types: what each accepts, in one table.

| format | accepts |
| --- | --- |
| `date-time` | an RFC 3339 instant, any offset, at most six decimals |
| `date` | `2026-09-18`, a day that exists |
| `time` | `08:00:00`, at most six decimals, with or without an offset |
| `duration` | ISO 8601 of weeks, or of days, hours, minutes and seconds: `P1DT2H`, `-PT0.5S`, `P2W` |
| `decimal` | `-12.50`: digits with at most one point, no exponent, at most 64 characters |
| `uuid` | 8-4-4-4-12 hex digits |
| `email` | one `@`, no spaces, at most 254 characters |
| `uri` | an absolute URI in ASCII |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from orbit_sdk.values.instants import is_rfc3339

__all__ = ["FORMAT_RULES", "is_decimal", "to_decimal"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(
    r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?", re.ASCII
)
_DURATION = re.compile(
    r"[+-]?P(?:\d{1,9}W|(?=\d|T\d)(?:\d{1,9}D)?(?:T(?=\d)(?:\d{1,9}H)?(?:\d{1,9}M)?(?:\d{1,9}(?:\.\d{1,6})?S)?)?)",
    re.ASCII,
)
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~%]+")
_DECIMAL_MAX = 64
_EMAIL_MAX = 254


def is_decimal(text: str) -> bool:
    """True for a text of format `decimal`."""
    return len(text) <= _DECIMAL_MAX and _DECIMAL.fullmatch(text) is not None


def to_decimal(text: str) -> Decimal:
    """The number of a text of format `decimal`; ValueError for any other text."""
    if not is_decimal(text):
        raise ValueError("is not a decimal such as 12.50")
    return Decimal(text)


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


FORMAT_RULES: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "date-time": is_rfc3339,
        "date": _is_date,
        "time": _matches(_TIME),
        "duration": _matches(_DURATION),
        "decimal": is_decimal,
        "uuid": _matches(_UUID),
        "email": lambda text: len(text) <= _EMAIL_MAX and _EMAIL.fullmatch(text) is not None,
        "uri": _matches(_URI),
    }
)
