"""What people should know about a plan near the changes of its clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from orbit_sdk.calendar.plans import CronPlan, Gap, Repeat
from orbit_sdk.calendar.walls import walls
from orbit_sdk.calendar.zones import LAST_YEAR, Change, Zone, year_of
from orbit_sdk.values.instants import Micros

__all__ = ["local_text", "notes", "offset_text", "warnings"]

_SECOND = 1_000_000
_DAY = 86_400
_SHOWN = 4


def offset_text(seconds: int) -> str:
    """`+02:00`; seconds are shown only where there are some."""
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    text = f"{sign}{rest // 3600:02}:{rest % 3600 // 60:02}"
    return f"{text}:{rest % 60:02}" if rest % 60 else text


def local_text(zone: Zone, at: Micros) -> str:
    """Local time with its offset, as 2026-03-29T03:00:00+02:00."""
    seconds, micros = divmod(at, _SECOND)
    offset = zone.offset(seconds)
    fraction = f".{micros:06}" if micros else ""
    return f"{_wall(seconds + offset, '%Y-%m-%dT%H:%M:%S')}{fraction}{offset_text(offset)}"


def _fire_note(plan: CronPlan, at: Micros) -> str | None:
    """What is unusual about this planned instant, or None."""
    seconds = at // _SECOND
    change = plan.zone.change_before(seconds, 2 * _DAY)
    if change is None:
        return None
    if change.at == seconds and plan.jumps_over(change) and plan.gap is Gap.NEXT_VALID:
        missing = _times(plan, change.gap)
        return f"in place of {missing}, which the clock jumps over"
    low, high = change.repeat
    if low <= seconds + change.after < high:
        return "second pass of a wall time that comes twice"
    return None


def _first_pass_note(plan: CronPlan, at: Micros) -> str | None:
    """Says of an instant before a change that its wall time comes again."""
    seconds = at // _SECOND
    for change in _changes(plan.zone, seconds, seconds + 2 * _DAY):
        low, high = change.repeat
        if low <= seconds + change.before < high:
            again = "fires again" if plan.repeat is Repeat.BOTH else "does not fire again"
            return f"first pass of a wall time that comes twice; it {again}"
    return None


def warnings(plan: CronPlan, after: Micros, until: Micros) -> list[str]:
    """One sentence for every change of the clock in (after, until] at which wall times are planned."""
    return [
        said
        for change in _changes(plan.zone, after // _SECOND, until // _SECOND)
        if (said := _warning(plan, change)) is not None
    ]


def _warning(plan: CronPlan, change: Change) -> str | None:
    forward = change.after > change.before
    hidden = change.gap if forward else change.repeat
    times = _times(plan, hidden)
    if not times:
        return None
    before, after = _wall(change.at + change.before, "%H:%M"), _wall(change.at + change.after, "%H:%M")
    day = _wall(change.at + change.before, "%Y-%m-%d")
    if forward:
        does = (
            "nothing runs instead (SKIP)"
            if plan.gap is Gap.SKIP
            else f"one run at {after} instead (NEXT_VALID)"
        )
        return f"{day}: clocks go forward from {before} to {after}; planned but not there: {times}; {does}"
    does = "only the first pass runs (FIRST)" if plan.repeat is Repeat.FIRST else "both passes run (BOTH)"
    return f"{day}: clocks go back from {before} to {after}; planned and there twice: {times}; {does}"


def _times(plan: CronPlan, span: tuple[int, int]) -> str:
    """The planned wall times of a span, the first few of them."""
    found = list(islice(walls(plan.cron, *span), _SHOWN + 1))
    shown = ", ".join(_wall(wall, "%H:%M") for wall in found[:_SHOWN])
    return f"{shown} and more" if len(found) > _SHOWN else shown


def _changes(zone: Zone, after: int, until: int) -> Iterator[Change]:
    if until <= 0:
        return
    for year in range(year_of(max(after, 0)), min(year_of(until), LAST_YEAR) + 1):
        for change in zone.changes(year):
            if after < change.at <= until:
                yield change


def _wall(wall: int, form: str) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime(form)


def notes(plan: CronPlan, fires: Iterable[Micros]) -> list[str | None]:
    """A note for each planned instant."""
    return [_fire_note(plan, at) or _first_pass_note(plan, at) for at in fires]
