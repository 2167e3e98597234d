"""Tasks whose delay, back-off or start time is over become ready."""

from __future__ import annotations

from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.sweeps import next_due, sweep_due
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.database import Database

NAME: Final = "due_tasks"


def due_tasks(database: Database, times: PulseTimes, interval_ms: int) -> Loop:
    """The loop."""

    async def run_once(at: int) -> Report:
        report = await sweep_due(database, at, times)
        next_at = None if report.more else await next_due(database)
        return Report(report.seen, report.moved, report.failed, more=report.more, next_at=next_at)

    return Loop(NAME, run_once, interval_ms)
