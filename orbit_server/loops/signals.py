"""Pending signals whose own time is over."""

from __future__ import annotations

from typing import Final

from orbit_server.clock import Clock, new_seed
from orbit_server.loops.loop import Loop, Report
from orbit_server.storage.database import Database
from orbit_server.weave.state.running import Weave
from orbit_server.weave.sweeps.signals import sweep_signals

NAME: Final = "signals"
_BITES: Final = 20


def signals(database: Database, weave: Weave, clock: Clock, interval_ms: int) -> Loop:
    """The loop."""

    async def run_once(_at: int) -> Report:
        seen = moved = failed = 0
        after = None
        for _ in range(_BITES):
            report = await sweep_signals(database, weave, lambda: new_seed(clock), after=after)
            seen += report.found
            moved += report.moved
            failed += report.failed
            after = report.last
            if after is None:
                return Report(seen, moved, failed)
        return Report(seen, moved, failed, more=True)

    return Loop(NAME, run_once, interval_ms)
