"""Tasks that wait for their concurrency key: admitted when there is room, one key at a time."""

from __future__ import annotations

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.keys.sweeps import next_key, sweep_keys
from orbit_server.storage.database import Database


def admissions(database: Database, lines: KeyLines, interval_ms: int) -> Loop:
    """The loop over `concurrency_keys.admit_at`."""

    async def run_once(at: int) -> Report:
        found = await sweep_keys(database, at, lines)
        more = found.more and found.failed == 0
        return Report(found.seen, found.moved, found.failed, more=more, next_at=await next_key(database))

    return Loop("admissions", run_once, interval_ms)
