"""What becomes of planned instants that were handled too late.

An instant is missed when it is handled more than `after_ms` after it was due; what is earlier counts as on
time under every policy. The one function here judges a whole range: it gives what runs, at which pace, and
one record for every range that does not run, each with its reason.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orbit_sdk.calendar.plans import Plan, next_fire
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.instants import Micros

__all__ = ["Cut", "Judgement", "Misfire", "MisfirePolicy", "Reason", "Run", "judge", "last_fires"]

AFTER_MS: Final = 60_000
_AFTER_MAX_MS: Final = 3_600_000
_COUNT_MAX: Final = 1_000
_WINDOW_MAX_S: Final = 366 * 86_400
_RATE_MAX: Final = 600
_MINUTE: Final = 60_000_000


class Misfire(StrEnum):
    """What happens to missed instants."""

    SKIP = "SKIP"
    COALESCE = "COALESCE"
    CATCH_UP = "CATCH_UP"


class Reason(StrEnum):
    """Why planned instants did not run, or not one by one."""

    MISFIRE_SKIPPED = "MISFIRE_SKIPPED"
    MISFIRE_MERGED = "MISFIRE_MERGED"
    CATCH_UP_WINDOW = "CATCH_UP_WINDOW"
    CATCH_UP_COUNT = "CATCH_UP_COUNT"


@dataclass(frozen=True, slots=True)
class MisfirePolicy:
    """The choice, and for `CATCH_UP` its three bounds.

    Args:
        after_ms: how late still counts as on time.
        window_s: instants older than this, counted back from now, are cut off.
        count: at most so many run; the newest are kept.
        per_minute: how many start in a minute, oldest first.
    """

    misfire: Misfire
    after_ms: int = AFTER_MS
    window_s: int = 0
    count: int = 0
    per_minute: int = 0

    def __post_init__(self) -> None:
        _within("misfire_after_ms", self.after_ms, 1_000, _AFTER_MAX_MS)
        if self.misfire is Misfire.CATCH_UP:
            _within("catch_up.window_s", self.window_s, 1, _WINDOW_MAX_S)
            _within("catch_up.count", self.count, 1, _COUNT_MAX)
            _within("catch_up.per_minute", self.per_minute, 1, _RATE_MAX)


def _within(field: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidArgument.at(field, f"must be {low} to {high}")


@dataclass(frozen=True, slots=True)
class Run:
    """One occurrence: when it was planned, when it may start, and the range it stands for when merged."""

    planned_at: Micros
    start_at: Micros
    late: bool = False
    first_at: Micros | None = None
    merged: int = 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A range of planned instants that do not run one by one; both ends are planned instants."""

    reason: Reason
    first_at: Micros
    last_at: Micros
    count: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything planned in (after, accounted_to]: each instant is in a run or in a cut."""

    runs: tuple[Run, ...]
    cuts: tuple[Cut, ...]
    accounted_to: Micros


def judge(
    plan: Plan, policy: MisfirePolicy, after: Micros, until: Micros, now: Micros, bite: int = 1_000
) -> Judgement:
    """What to do at `now` about everything planned in (after, until], which is not later than now.

    At most `bite` on-time instants are taken; `accounted_to` says how far the judgement reaches.
    """
    late_to = min(now - policy.after_ms * 1_000 - 1, until)
    runs, cuts = _late(plan, policy, after, late_to, now)
    on_time: list[Run] = []
    reached = until
    for at in plan.fires(max(after, late_to), until):
        if len(on_time) >= bite:
            reached = on_time[-1].planned_at
            break
        on_time.append(Run(at, at))
    return Judgement((*runs, *on_time), cuts, reached)


def last_fires(plan: Plan, after: Micros, until: Micros, count: int) -> list[Micros]:
    """The newest `count` planned instants in (after, until], ascending."""
    span = _MINUTE * max(1, count)
    while until - span > after and plan.count(until - span, until) < count:
        span *= 2
    return list(deque(plan.fires(max(after, until - span), until), maxlen=count))


def _late(
    plan: Plan, policy: MisfirePolicy, after: Micros, late_to: Micros, now: Micros
) -> tuple[tuple[Run, ...], tuple[Cut, ...]]:
    if late_to <= after:
        return (), ()
    missed = _cut(plan, after, late_to, Reason.MISFIRE_SKIPPED)
    if missed is None:
        return (), ()
    if policy.misfire is Misfire.SKIP:
        return (), (missed,)
    if policy.misfire is Misfire.COALESCE:
        run = Run(missed.last_at, now, late=True, first_at=missed.first_at, merged=missed.count)
        merged = Cut(Reason.MISFIRE_MERGED, missed.first_at, missed.last_at, missed.count)
        return (run,), (merged,)
    return _catch_up(plan, policy, after, late_to, now)


def _catch_up(
    plan: Plan, policy: MisfirePolicy, after: Micros, late_to: Micros, now: Micros
) -> tuple[tuple[Run, ...], tuple[Cut, ...]]:
    opens = min(late_to, max(after, now - policy.window_s * 1_000_000 - 1))
    kept = last_fires(plan, opens, late_to, policy.count)
    outside = _cut(plan, after, opens, Reason.CATCH_UP_WINDOW)
    over = _cut(plan, opens, kept[0] - 1, Reason.CATCH_UP_COUNT) if kept else None
    spacing = _MINUTE // policy.per_minute
    runs = tuple(Run(at, now + place * spacing, late=True) for place, at in enumerate(kept))
    return runs, tuple(cut for cut in (outside, over) if cut is not None)


def _cut(plan: Plan, after: Micros, until: Micros, reason: Reason) -> Cut | None:
    """The range of what is planned in (after, until], or None when nothing is."""
    if until <= after or (count := plan.count(after, until)) == 0:
        return None
    first = next_fire(plan, after)
    assert first is not None
    return Cut(reason, first, last_fires(plan, after, until, 1)[-1], count)
