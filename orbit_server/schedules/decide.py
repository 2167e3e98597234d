"""What a schedule owes at an instant, purely: which occurrences, which records, and when to look again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from orbit_sdk.calendar.misfire import Cut, Run, judge, last_fires
from orbit_sdk.calendar.plans import next_fire
from orbit_sdk.values.instants import Micros
from orbit_server.schedules.lifecycle import Overlap, Why
from orbit_server.schedules.specs import Spec

__all__ = [
    "Account",
    "InForce",
    "Place",
    "account",
    "next_planned",
    "place",
    "planned_ranges",
    "span_in_force",
]

_FOR_EVER = 1 << 62


@dataclass(frozen=True, slots=True)
class InForce:
    """A version and from when on it counts."""

    version: int
    effective_at: Micros
    spec: Spec


@dataclass(frozen=True, slots=True)
class Account:
    """What became of everything planned up to `accounted_to`, each with the version in force."""

    runs: tuple[tuple[int, Run], ...]
    cuts: tuple[tuple[int, Cut], ...]
    accounted_to: Micros


def span_in_force(
    versions: Sequence[InForce], after: Micros, until: Micros
) -> Iterator[tuple[InForce, Micros, Micros]]:
    """(after, until] in pieces with one version each: the newest that has taken effect."""
    bounds = sorted({each.effective_at - 1 for each in versions if after < each.effective_at - 1 < until})
    low = after
    for high in (*bounds, until):
        effective = [each for each in versions if each.effective_at <= low + 1]
        if effective and low < high:
            yield max(effective, key=lambda each: each.version), low, high
        low = high


def account(versions: Sequence[InForce], accounted_to: Micros, now: Micros, bite: int) -> Account:
    """Judge what was planned in (accounted_to, now]; at most about `bite` occurrences that are on time."""
    runs: list[tuple[int, Run]] = []
    cuts: list[tuple[int, Cut]] = []
    for version, low, high in span_in_force(versions, accounted_to, now):
        after, until = version.spec.span(low, high)
        if after >= until:
            continue
        left = max(1, bite - len(runs))
        found = judge(version.spec.plan, version.spec.misfire, after, until, now, left)
        runs += [(version.version, run) for run in found.runs]
        cuts += [(version.version, cut) for cut in found.cuts]
        if found.accounted_to < until:
            return Account(tuple(runs), tuple(cuts), found.accounted_to)
    return Account(tuple(runs), tuple(cuts), now)


def next_planned(versions: Sequence[InForce], after: Micros) -> Micros | None:
    """The first instant later than `after` that the version in force then plans."""
    for version, low, high in span_in_force(versions, after, _FOR_EVER):
        at = version.spec.next_planned(low, high)
        if at is not None:
            return at
    return None


def planned_ranges(
    versions: Sequence[InForce], after: Micros, until: Micros
) -> Iterator[tuple[int, Micros, Micros, int]]:
    """(version, first, last, count) of what was planned in (after, until], piece by piece."""
    for version, low, high in span_in_force(versions, after, until):
        start, end = version.spec.span(low, high)
        count = version.spec.plan.count(start, end) if start < end else 0
        if count:
            first = next_fire(version.spec.plan, start)
            assert first is not None
            yield version.version, first, last_fires(version.spec.plan, start, end, 1)[-1], count


class Place(Enum):
    """What the overlap rule makes of an occurrence that may start."""

    START = auto()
    WAIT = auto()
    SKIP = auto()


def place(spec: Spec, unfinished: int, queued: int) -> tuple[Place, Why | None]:
    """Where an occurrence goes while `unfinished` have not ended and `queued` wait before it."""
    if spec.overlap is Overlap.ALLOW or (unfinished == 0 and queued == 0):
        return Place.START, None
    if spec.overlap is Overlap.SKIP:
        return Place.SKIP, Why.OVERLAP_SKIPPED
    if queued >= spec.backlog:
        return Place.SKIP, Why.OVERLAP_BACKLOG_FULL
    return Place.WAIT, Why.OVERLAP_QUEUED
