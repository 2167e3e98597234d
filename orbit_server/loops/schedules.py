"""Schedules that are due, and occurrences that have ended."""

from __future__ import annotations

from typing import Final

from orbit_server.clock import Clock, new_seed
from orbit_server.loops.loop import Loop, Report
from orbit_server.schedules.sweeps import SweepReport, sweep_ended, sweep_schedules
from orbit_server.schedules.targets import Means
from orbit_server.storage.database import Database

NAME: Final = "schedules"
ENDED: Final = "ended_fires"


def schedules(database: Database, means: Means, clock: Clock, interval_ms: int) -> Loop:
    """The loop of what the clock moves."""

    async def run_once(at: int) -> Report:
        return _report(await sweep_schedules(database, means, lambda: new_seed(clock), at))

    return Loop(NAME, run_once, interval_ms)


def ended_fires(database: Database, means: Means, clock: Clock, interval_ms: int) -> Loop:
    """The loop of what the ends of tasks and workflows move."""

    async def run_once(_at: int) -> Report:
        return _report(await sweep_ended(database, means, lambda: new_seed(clock)))

    return Loop(ENDED, run_once, interval_ms)


def _report(found: SweepReport) -> Report:
    return Report(found.seen, found.moved, found.failed, more=found.more, next_at=found.next_at)
