"""Looking through more rows than one bite holds: each bite goes on where the one before it stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from orbit_sdk.values.ids import Id
from orbit_server.loops.loop import Report
from orbit_server.weave.sweeps.steps import SweepReport

_BITES: Final = 20


async def in_bites(sweep: Callable[[tuple[int, Id] | None], Awaitable[SweepReport]]) -> Report:
    """Call `sweep` with the place to go on from, until it has seen everything or the bound is reached.

    Rows that could not be moved are passed by, and met again in the loop's next run.
    """
    seen = moved = failed = 0
    after: tuple[int, Id] | None = None
    for _ in range(_BITES):
        bite = await sweep(after)
        seen += bite.found
        moved += bite.moved
        failed += bite.failed
        after = bite.last
        if after is None:
            return Report(seen, moved, failed, next_at=bite.next_due_at)
    return Report(seen, moved, failed, more=True)
