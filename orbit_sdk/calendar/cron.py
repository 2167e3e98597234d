"""Cron expressions of exactly five fields, read strictly.

A field is a comma-separated list of `*`, `*/n`, `a`, `a-b` and `a-b/n`, in ASCII. Months and weekdays may be
named (`JAN`, `mon`); Sunday is 0 and 7. Everything else is refused by name: what another dialect would read
differently must not be guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orbit_sdk.errors import InvalidArgument

__all__ = ["CRON_BYTES", "Cron", "parse_cron"]

CRON_BYTES: Final = 256
"""Longest expression that is read at all."""

_SHOWN: Final = 40
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five places: its name in errors, its bounds, and its words."""

    key: str
    title: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    def fail(self, text: str, rule: str) -> InvalidArgument:
        return InvalidArgument.at(
            f"cron.{self.key}", f"has {_quoted(text)} in the {self.title} field: {rule}"
        )


_MINUTE: Final = _Field("minute", "minute", 0, 59)
_HOUR: Final = _Field("hour", "hour", 0, 23)
_DAY: Final = _Field("day_of_month", "day of month", 1, 31)
_MONTH: Final = _Field("month", "month", 1, 12, _MONTHS)
_WEEKDAY: Final = _Field("day_of_week", "day of week", 0, 7, _WEEKDAYS)
_FIELDS: Final = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)

_ITEM = re.compile(r"(?:(\*)|([0-9]+|[A-Za-z]+)(?:-([0-9]+|[A-Za-z]+))?)(?:/([0-9]+))?", re.ASCII)
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed expression.

    Args:
        text: as written.
        times: minutes of the day that match, ascending.
        days: days of the month that match.
        months: months that match.
        weekdays: weekdays that match, Monday is 0.
        either: a day matches when one of the two day fields does; otherwise both must.
    """

    text: str
    times: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    def day_matches(self, day: int, weekday: int) -> bool:
        """Whether a day of a matching month fires; Monday is 0."""
        if self.either:
            return day in self.days or weekday in self.weekdays
        return day in self.days and weekday in self.weekdays


def parse_cron(text: str) -> Cron:
    """Read an expression.

    Raises:
        InvalidArgument: naming the field, the text in it and the rule, also when it can never fire.
    """
    parts = _split(text)
    minutes, hours, days, months, weekdays = (
        _values(field, part) for field, part in zip(_FIELDS, parts, strict=True)
    )
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    if not either and not any(day <= _LONGEST[month - 1] for month in months for day in days):
        raise InvalidArgument.at(
            "cron.day_of_month",
            f"has {_quoted(parts[2])} in the day of month field and {_quoted(parts[3])} in the month field: "
            "no month of these has such a day, so this never fires",
        )
    return Cron(
        text,
        tuple(hour * 60 + minute for hour in sorted(hours) for minute in sorted(minutes)),
        frozenset(days),
        frozenset(months),
        frozenset((day - 1) % 7 for day in weekdays),
        either,
    )


def _split(text: str) -> list[str]:
    if len(text.encode(errors="replace")) > CRON_BYTES:
        raise InvalidArgument.at("cron", f"is longer than {CRON_BYTES} bytes")
    stripped = text.strip(" \t")
    if stripped.startswith("@"):
        raise InvalidArgument.at(
            "cron", f"is {_quoted(stripped)}: macros are not read; write five fields, or use a fixed rate"
        )
    if "=" in stripped:
        raise InvalidArgument.at(
            "cron",
            f"is {_quoted(stripped)}: a zone does not stand in the expression; it has a field of its own",
        )
    parts = _BLANKS.split(stripped)
    if len(parts) != len(_FIELDS) or not stripped:
        count = len(parts) if stripped else 0
        raise InvalidArgument.at(
            "cron",
            f"is {_quoted(stripped)}: it has {count} fields; exactly five are read (minute, hour, day of "
            "month, month, day of week), no seconds, no year, no comment",
        )
    return parts


def _values(field: _Field, text: str) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        if not item:
            raise field.fail(text, "an entry of the list is empty")
        found.update(_item(field, item))
    return found


def _item(field: _Field, item: str) -> Iterable[int]:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise field.fail(item, _why(item))
    star, first, last, step_text = match.groups()
    if star:
        low, high = field.low, 6 if field is _WEEKDAY else field.high
    else:
        low = _number(field, first, item)
        high = low if last is None else _number(field, last, item)
    if step_text is not None and not star and last is None:
        raise field.fail(item, "a step stands behind `*` or a range a-b, not behind a single value")
    if low > high:
        rule = "a range may not run backwards; write two ranges"
        if field is _WEEKDAY and high == 0:
            rule += ", or 7 for Sunday at the end"
        raise field.fail(item, rule)
    return range(low, high + 1, _step(field, step_text, item))


def _step(field: _Field, text: str | None, item: str) -> int:
    if text is None:
        return 1
    step = int(text) if len(text) <= 4 else 10_000
    widest = 7 if field is _WEEKDAY else field.high - field.low + 1
    if not 1 <= step <= widest:
        raise field.fail(item, f"a step is 1 to {widest} here")
    return step


def _number(field: _Field, text: str, item: str) -> int:
    if text.isdigit():
        value = int(text) if len(text) <= 4 else 10_000
        if not field.low <= value <= field.high:
            raise field.fail(item, f"values are {field.low} to {field.high}")
        return value
    word = text.upper()
    if word not in field.words:
        allowed = f"words are {', '.join(field.words)}" if field.words else "only numbers are read"
        raise field.fail(item, f"{allowed} here{_foreign(item)}")
    return field.words.index(word) + field.low


def _why(item: str) -> str:
    if not item.isascii():
        return "only ASCII characters are read"
    return f"an entry is *, */n, a, a-b or a-b/n{_foreign(item)}"


def _foreign(item: str) -> str:
    odd = sorted(set(item.upper()) & set("LWH#?"))
    return f" (L, W, H, # and ? of other dialects are not read: {', '.join(odd)})" if odd else ""


def _quoted(text: str) -> str:
    """The text in quotes, cut to a length that fits a sentence."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{shown}"'
