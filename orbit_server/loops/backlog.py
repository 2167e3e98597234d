"""A look at everybody's backlog now and then, for figures.

A look reads every unsettled task in the ready index, so it takes longer the larger the backlog is. It may
take no more than a small share of the time: after a long look the next one is so much later. The figures then
stay exact and get older, and the page says how old they are.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.figures import Backlog, read_backlog
from orbit_server.storage.database import Database

_REST: Final = 20
"""A look rests for so many times as long as it took."""


class LastBacklog:
    """What the last look showed."""

    def __init__(self) -> None:
        self.seen = Backlog(0)


def backlog(database: Database, last: LastBacklog, interval_ms: int) -> Loop:
    """The loop. It only reads."""

    async def run_once(at: int) -> Report:
        last.seen = await database.read(partial(read_backlog, at=at))
        return Report(seen=len(last.seen.queues))

    return Loop("backlog", run_once, interval_ms, heeds_clock=False, rest=_REST)
