"""Instants are integer microseconds since 1970-01-01T00:00:00Z; texts are RFC 3339.

Written always in UTC with six decimals; read with any offset and up to six decimals.
Leap seconds (`:60`) and years outside 0001-9999 are refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TypeAlias

__all__ = ["Micros", "from_rfc3339", "is_rfc3339", "to_rfc3339"]

Micros: TypeAlias = int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TEXT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)


def to_rfc3339(us: Micros) -> str:
    """`2026-09-18T08:00:00.123456Z`; ValueError outside the years 0001-9999."""
    try:
        moment = _EPOCH + timedelta(microseconds=us)
    except OverflowError as error:
        raise ValueError(f"{us} us is outside the years 0001-9999") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def from_rfc3339(text: str) -> Micros:
    """The instant of an RFC 3339 text; ValueError with the reason otherwise."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError("is not an RFC 3339 instant such as 2026-09-18T08:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, zulu, sign, offset_hours, offset_minutes = found.groups()[6:]
    zone = UTC
    if zulu is None:
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            raise ValueError("has an impossible offset")
        offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
        zone = timezone(offset if sign == "+" else -offset)
    micros = int((fraction or "").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros, zone)
    except ValueError as error:
        raise ValueError(f"is not an instant: {error}") from error
    return (moment - _EPOCH) // _MICROSECOND


def is_rfc3339(text: str) -> bool:
    """True when `from_rfc3339` reads the text."""
    try:
        from_rfc3339(text)
    except ValueError:
        return False
    return True
