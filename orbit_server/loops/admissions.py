"""Tasks that wait for their concurrency key: admitted when there is room, one key at a time."""

from __future__ import annotations

from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.keys.sweeps import next_key, sweep_keys
from orbit_server.storage.database import Database

_SPACING_US: Final = 500
"""The next task of a key waits for this loop: what comes while it looks shares its next look anyway."""


def admissions(database: Database, interval_ms: int) -> Loop:
    """The loop over `concurrency_keys.admit_at`."""

    async def run_once(at: int) -> Report:
        found = await sweep_keys(database, at)
        more = found.more and found.failed == 0
        return Report(found.seen, found.moved, found.failed, more=more, next_at=await next_key(database))

    return Loop("admissions", run_once, interval_ms, spacing_us=_SPACING_US)
