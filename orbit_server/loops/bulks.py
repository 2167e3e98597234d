"""Bulks that are planned, applied, or have had their time."""

from __future__ import annotations

from typing import Final

from orbit_server.bulk.sweeps import sweep_bulks
from orbit_server.clock import Clock, new_seed
from orbit_server.loops.loop import Loop, Report
from orbit_server.retention.bulks import purge_bulk
from orbit_server.storage.database import Database
from orbit_server.weave.state.running import Weave

NAME: Final = "bulks"


def bulks(database: Database, weave: Weave, clock: Clock, interval_ms: int) -> Loop:
    """The loop that carries bulks on."""

    async def run_once(at: int) -> Report:
        found = await sweep_bulks(database, weave, lambda: new_seed(clock), purge_bulk, at)
        return Report(found.seen, found.moved, found.failed, more=found.more, next_at=found.next_at)

    return Loop(NAME, run_once, interval_ms)
