"""When a plan fires: every planned instant of a cron expression in a zone, or of a fixed rate.

A cron plan is walked stretch by stretch of constant offset. In a stretch, wall times map to instants one to
one, so instants come out ascending and exact by construction, and the two policies act only where stretches
meet: `gap` on wall times that the clock jumps over, `repeat` on those that come twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol, TypeVar

from orbit_sdk.calendar.cron import Cron, parse_cron
from orbit_sdk.calendar.walls import count_walls, walls
from orbit_sdk.calendar.zones import LAST_YEAR, Change, Zone, load_zone, year_of, year_start
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.instants import Micros

__all__ = [
    "HORIZON_YEARS",
    "CronPlan",
    "Gap",
    "Plan",
    "RatePlan",
    "Repeat",
    "cron_plan",
    "has_changes",
    "next_fire",
    "next_fires",
]

HORIZON_YEARS: Final = 100
"""How far ahead a next instant is looked for: beyond the rarest date that a cron expression can name."""

_SECOND: Final = 1_000_000
_YEAR: Final = 366 * 86_400
_FIRST: Final = 0
_LAST: Final = year_start(LAST_YEAR + 1) - 1
_LOOK_BACK: Final = 2 * 86_400
_RATE_MAX_S: Final = 10 * _YEAR


class Gap(StrEnum):
    """What happens to a planned wall time that the clock jumps over."""

    SKIP = "SKIP"
    NEXT_VALID = "NEXT_VALID"


class Repeat(StrEnum):
    """What happens to a planned wall time that comes twice."""

    FIRST = "FIRST"
    BOTH = "BOTH"


P = TypeVar("P", Gap, Repeat)


class Plan(Protocol):
    """Planned instants, in UTC microseconds."""

    def fires(self, after: Micros, until: Micros | None = None) -> Iterator[Micros]:
        """Instants later than `after` and not later than `until`, ascending, made as they are asked for."""
        ...

    def count(self, after: Micros, until: Micros) -> int:
        """How many instants `fires` would give, in a time that does not grow with their number."""
        ...


def _in_years(at: Micros) -> Micros:
    """The instant, or the nearest one within the years that plans are computed in."""
    return min(max(at, _FIRST * _SECOND - 1), _LAST * _SECOND)


def next_fire(plan: Plan, after: Micros) -> Micros | None:
    """The first planned instant later than `after`, or None when there is none."""
    return next(plan.fires(after), None)


def next_fires(plan: Plan, after: Micros, count: int) -> list[Micros]:
    """The first `count` planned instants later than `after`."""
    return list(islice(plan.fires(after), count))


@dataclass(frozen=True, slots=True)
class RatePlan:
    """Every `every_s` seconds, counted from `anchor`; nothing is planned before the anchor."""

    every_s: int
    anchor: Micros

    def __post_init__(self) -> None:
        if type(self.every_s) is not int or not 1 <= self.every_s <= _RATE_MAX_S:
            raise InvalidArgument.at("every", f"must be whole seconds, 1 to {_RATE_MAX_S}")

    def fires(self, after: Micros, until: Micros | None = None) -> Iterator[Micros]:
        after, end = _in_years(after), _in_years(_LAST * _SECOND if until is None else until)
        step = self.every_s * _SECOND
        at = self.anchor + max(0, (after - self.anchor) // step + 1) * step
        while at <= end:
            yield at
            at += step

    def count(self, after: Micros, until: Micros) -> int:
        step = self.every_s * _SECOND
        passed, reached = ((_in_years(each) - self.anchor) // step + 1 for each in (after, until))
        return max(0, max(0, reached) - max(0, passed))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Wall times [start, end) that fire at `wall - offset`; `jump` is an instant that fires before them."""

    start: int
    end: int
    offset: int
    jump: int | None = None


@dataclass(frozen=True, slots=True)
class CronPlan:
    """A cron expression on the clocks of a zone."""

    cron: Cron
    zone: Zone
    gap: Gap
    repeat: Repeat

    def fires(self, after: Micros, until: Micros | None = None) -> Iterator[Micros]:
        start = max(after // _SECOND, _FIRST - 1)
        last = _LAST if until is None else min(until // _SECOND, _LAST)
        found = False
        for stretch in self._stretches(start, last):
            if stretch.jump is not None:
                found = True
                yield stretch.jump * _SECOND
            for wall in walls(self.cron, stretch.start, stretch.end):
                at = wall - stretch.offset
                if at != stretch.jump:
                    found = True
                    yield at * _SECOND
            if not found and stretch.end - stretch.offset - start > HORIZON_YEARS * _YEAR:
                return

    def count(self, after: Micros, until: Micros) -> int:
        start = max(after // _SECOND, _FIRST - 1)
        total = 0
        for stretch in self._stretches(start, min(until // _SECOND, _LAST)):
            total += count_walls(self.cron, stretch.start, stretch.end)
            if stretch.jump is not None:
                first = stretch.jump + stretch.offset
                total += 1 - count_walls(self.cron, first, first + 1) * (stretch.start <= first)
        return total

    def jumps_over(self, change: Change) -> bool:
        """Whether a planned wall time falls into the gap of this change."""
        return next(walls(self.cron, *change.gap), None) is not None

    def _stretches(self, start: int, last: int) -> Iterator[Stretch]:
        """Every part of (start, last] in which one offset holds, cut at the years as well."""
        if start >= last:
            return
        begin = start + 1
        change = self.zone.change_before(begin, _LOOK_BACK)
        offset = self.zone.offset(begin)
        for year in range(year_of(begin), year_of(last) + 1):
            for following in self.zone.changes(year):
                if begin < following.at <= last:
                    yield self._stretch(begin, following.at, offset, change)
                    begin, offset, change = following.at, following.after, following
            end = min(year_start(year + 1), last + 1)
            yield self._stretch(begin, end, offset, change)
            begin = end

    def _stretch(self, begin: int, end: int, offset: int, change: Change | None) -> Stretch:
        start, jump = begin + offset, None
        if change is not None:
            if self.repeat is Repeat.FIRST:
                start = max(start, change.repeat[1])
            if change.at == begin and self.gap is Gap.NEXT_VALID and self.jumps_over(change):
                jump = change.at
        return Stretch(start, end + offset, offset, jump)


def cron_plan(cron: str, zone: str, gap: str | None, repeat: str | None, at: Micros) -> CronPlan:
    """A cron plan from texts. Where the zone's clock changes (around `at`), both policies must be said.

    Raises:
        InvalidArgument: naming the field that is wrong, in this order: zone, cron, gap, repeat.
    """
    place = load_zone(zone)
    parsed = parse_cron(cron)
    changes = has_changes(place, at)
    return CronPlan(
        parsed,
        place,
        _policy(Gap, gap, Gap.NEXT_VALID, "gap", f"wall times that the clock of {zone} jumps over", changes),
        _policy(Repeat, repeat, Repeat.FIRST, "repeat", f"wall times that come twice in {zone}", changes),
    )


def has_changes(zone: Zone, at: Micros) -> bool:
    """Whether the zone's clock is set forward or back in the year of `at` or the three after it."""
    year = year_of(min(max(at // _SECOND, _FIRST), _LAST))
    return any(zone.changes(each) for each in range(year, min(year + 3, LAST_YEAR) + 1))


def _policy(kind: type[P], text: str | None, default: P, field: str, what: str, needed: bool) -> P:
    choices = " or ".join(kind)
    if text is None:
        if needed:
            raise InvalidArgument.at(field, f"must say what happens to {what}: {choices}")
        return default
    try:
        return kind(text)
    except ValueError:
        raise InvalidArgument.at(field, f'is "{text[:40]}"; it must be {choices}') from None
