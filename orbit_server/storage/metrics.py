"""Counters of the storage layer as plain numbers; the API turns them into whatever a collector wants."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

_BOUNDS_US = (
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    10_000_000,
)
_BOUNDS_SIZE = (1, 2, 5, 10, 20, 50, 100, 200, 500)


@dataclass(slots=True)
class Histogram:
    """Counts per upper bound; the last count is of everything above."""

    bounds: tuple[int, ...]
    counts: list[int] = field(default_factory=list)
    total: int = 0
    observations: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: int) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.observations += 1


def _micros() -> Histogram:
    return Histogram(_BOUNDS_US)


PHASES = ("wait", "load", "decide", "save", "commit")


@dataclass(slots=True)
class StorageMetrics:
    """What the committer did. Times are microseconds; wait is per command, the other phases per group."""

    groups: int = 0
    commands: int = 0
    refused: int = 0
    replayed: int = 0
    failed: int = 0
    missing: int = 0
    dropped: int = 0
    queue_full: int = 0
    queued: int = 0
    unknown_commits: int = 0
    unknown_applied: int = 0
    unknown_lost: int = 0
    clock_jumps: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    """Tries after a fault, by driver code (or exception name)."""
    group_size: Histogram = field(default_factory=lambda: Histogram(_BOUNDS_SIZE))
    phases: dict[str, Histogram] = field(default_factory=lambda: {phase: _micros() for phase in PHASES})
