"""Results that workflows have not seen in the transaction that stored them."""

from __future__ import annotations

from typing import Final

from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock, new_seed
from orbit_server.loops.bites import in_bites
from orbit_server.loops.loop import Loop, Report
from orbit_server.storage.database import Database
from orbit_server.weave.state.running import Weave
from orbit_server.weave.sweeps.inbox import sweep_inbox
from orbit_server.weave.sweeps.steps import SweepReport

NAME: Final = "inbox"


def inbox(database: Database, weave: Weave, clock: Clock, interval_ms: int) -> Loop:
    """The loop. It pages past rows that could not be applied, and meets them again in its next run."""

    async def bite(after: tuple[int, Id] | None) -> SweepReport:
        found = await sweep_inbox(database, weave, lambda: new_seed(clock), after=after)
        return SweepReport(found.found, found.applied, found.failed, found.last)

    async def run_once(_at: int) -> Report:
        return await in_bites(bite)

    return Loop(NAME, run_once, interval_ms)
