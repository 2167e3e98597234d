"""A look at everybody's backlog now and then, for figures."""

from __future__ import annotations

from functools import partial

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.figures import Backlog, read_backlog
from orbit_server.storage.database import Database


class LastBacklog:
    """What the last look showed."""

    def __init__(self) -> None:
        self.seen = Backlog(0)


def backlog(database: Database, last: LastBacklog, interval_ms: int) -> Loop:
    """The loop. It only reads."""

    async def run_once(at: int) -> Report:
        last.seen = await database.read(partial(read_backlog, at=at))
        return Report(seen=len(last.seen.queues))

    return Loop("backlog", run_once, interval_ms, heeds_clock=False)
