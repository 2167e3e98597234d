"""How much each row does: tiny for the test run, quick for `make bench`, full for `make bench-full`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Size:
    """Counts; seconds where it says so."""

    runs: int = 3
    workflows: int = 1_000
    idle: int = 50
    tasks: int = 3_000
    fans: int = 100
    floor: int = 1_000
    chains: int = 10
    waiting: int = 2_000
    finished: int = 9_000
    requests: int = 2_000
    blocked: int = 100_000
    timers: int = 10_000
    timers_over_s: float = 10.0
    connections: int = 1_000
    renewals: int = 100
    definitions: int = 1_000
    concurrency: int = 64
    batch: int = 100


SIZES: Final = {
    "quick": Size(),
    "full": Size(waiting=200_000, finished=1_000_000, requests=10_000, renewals=400),
    "tiny": Size(
        runs=1,
        workflows=6,
        idle=2,
        tasks=6,
        fans=1,
        floor=5,
        chains=1,
        waiting=20,
        finished=40,
        requests=20,
        blocked=20,
        timers=6,
        timers_over_s=0.1,
        connections=5,
        renewals=3,
        definitions=3,
        concurrency=4,
        batch=3,
    ),
}
