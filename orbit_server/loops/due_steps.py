"""Steps of workflows whose time has come: timers, time-outs, rounds and deadlines."""

from __future__ import annotations

from typing import Final

from orbit_server.clock import Clock, new_seed
from orbit_server.loops.bites import in_bites
from orbit_server.loops.loop import Loop, Report
from orbit_server.storage.database import Database
from orbit_server.weave.state.running import Weave
from orbit_server.weave.sweeps.steps import sweep_due_steps

NAME: Final = "due_steps"


def due_steps(database: Database, weave: Weave, clock: Clock, interval_ms: int) -> Loop:
    """The loop."""

    async def run_once(_at: int) -> Report:
        return await in_bites(
            lambda after: sweep_due_steps(database, weave, lambda: new_seed(clock), after=after)
        )

    return Loop(NAME, run_once, interval_ms)
