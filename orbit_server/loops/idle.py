"""Removes what concurrency keys, fairness keys and lifted limits leave behind."""

from __future__ import annotations

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.retention import clear_idle, walks
from orbit_server.storage.database import Database


def idle(database: Database, interval_ms: int) -> Loop:
    """The loop; every run goes on where the one before stopped."""
    ways = walks()

    async def run_once(at: int) -> Report:
        seen, removed = await clear_idle(database, at, ways)
        return Report(seen, removed)

    return Loop("idle", run_once, interval_ms)
