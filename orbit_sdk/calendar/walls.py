"""Wall times of a cron expression: pure counting on a calendar without zones.

Wall times are seconds since 1970-01-01 00:00 as if every day had 24 hours.
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from typing import Final

from orbit_sdk.calendar.cron import Cron
from orbit_sdk.calendar.zones import LAST_YEAR

__all__ = ["count_walls", "walls"]

_DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()


def walls(cron: Cron, start: int, end: int) -> Iterator[int]:
    """Matching wall times in [start, end), ascending; bounded by `end` however rare they are."""
    for day in _days(cron, start, end):
        base = day * _DAY
        if base >= start and base + _DAY <= end:
            for minute in cron.times:
                yield base + minute * 60
        else:
            for minute in cron.times:
                wall = base + minute * 60
                if start <= wall < end:
                    yield wall


def count_walls(cron: Cron, start: int, end: int) -> int:
    """How many there are, without making them."""
    count = 0
    times = [minute * 60 for minute in cron.times]
    for day in _days(cron, start, end):
        base = day * _DAY
        count += bisect_left(times, end - base) - bisect_left(times, start - base)
    return count


def _days(cron: Cron, start: int, end: int) -> Iterator[int]:
    """Matching days that [start, end) touches, as days since 1970."""
    if start >= end:
        return
    first, last = start // _DAY, (end - 1) // _DAY
    begin = date.fromordinal(first + _EPOCH)
    year, month = begin.year, begin.month
    while year <= LAST_YEAR + 1:
        head = date(year, month, 1).toordinal() - _EPOCH
        if head > last:
            return
        if month in cron.months:
            weekday, length = monthrange(year, month)
            for offset in range(max(0, first - head), min(length, last - head + 1)):
                if cron.day_matches(offset + 1, (weekday + offset) % 7):
                    yield head + offset
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
