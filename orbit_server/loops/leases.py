"""Attempts whose lease ended are settled by their recovery level."""

from __future__ import annotations

from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.database import Database

NAME: Final = "leases"


def leases(database: Database, times: PulseTimes, interval_ms: int) -> Loop:
    """The loop."""

    async def run_once(at: int) -> Report:
        report = await sweep_leases(database, at, times)
        return Report(report.seen, report.moved, report.failed, more=report.more)

    return Loop(NAME, run_once, interval_ms)
