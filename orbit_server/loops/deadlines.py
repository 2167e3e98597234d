"""Tasks whose latest start, total deadline or time to verify has passed."""

from __future__ import annotations

from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.sweeps import sweep_deadlines
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.database import Database

NAME: Final = "deadlines"


def deadlines(database: Database, times: PulseTimes, interval_ms: int) -> Loop:
    """The loop."""

    async def run_once(at: int) -> Report:
        report = await sweep_deadlines(database, at, times)
        return Report(report.seen, report.moved, report.failed, more=report.more)

    return Loop(NAME, run_once, interval_ms)
