"""The rules of `orbit verify` looked at beside the work, one bite each time. Nothing is repaired."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from orbit_server.loops.loop import Loop, Report

NAME: Final = "checker"


def checker(bite: Callable[[int], Awaitable[int]], interval_ms: int) -> Loop:
    """The loop. `bite` looks at the next part and says how many violations it shows."""

    async def run_once(at: int) -> Report:
        return Report(seen=1, failed=await bite(at))

    return Loop(NAME, run_once, interval_ms, heeds_clock=False)
