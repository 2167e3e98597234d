"""The one shape of background work, and the runner that owns its timing.

A loop finds its work in indexed rows, in bounded bites, and acts by ordinary commands; running it on several
nodes at once is harmless. Hints only make it look sooner. Nothing a loop meets ends it: it reports, waits a
little longer each time, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from orbit_sdk.errors import OrbitError
from orbit_server.clock import Clock, random_share
from orbit_server.storage.database import Database

log = logging.getLogger(__name__)

_SPACING_US: Final = 10_000
"""However many hints arrive, two runs are at least so far apart."""
_JITTER: Final = 0.1
_ERROR_WAIT_US: Final = 200_000
_ERROR_WAIT_MAX_US: Final = 3_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """What one run did: rows looked at, moved, and those that could not be.

    `more`: it stopped at its bound and should go on at once. `next_at`: the next instant (database time) at
    which it will have work, as far as it knows.
    """

    seen: int = 0
    moved: int = 0
    failed: int = 0
    more: bool = False
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A kind of background work. `run_once` gets the database's time.

    `heeds_clock`: rests while the database clock is not trusted, as everything that time decides must.
    `rest`: it rests at least so many times as long as a run took, which bounds its share of the database.
    """

    name: str
    run_once: Callable[[int], Awaitable[Report]]
    interval_ms: int
    heeds_clock: bool = True
    rest: int = 0


@dataclass(slots=True)
class LoopFigures:
    """Counters of one loop, for metrics."""

    runs: int = 0
    errors: int = 0
    moved: int = 0
    failed: int = 0
    errors_in_a_row: int = field(default=0, repr=False)


class Runner:
    """Runs one loop until it is cancelled."""

    def __init__(self, loop: Loop, database: Database, clock: Clock) -> None:
        self.loop = loop
        self.figures = LoopFigures()
        self._database = database
        self._clock = clock
        self._changed = asyncio.Event()
        self._look_at_us = 0
        """Monotonic time of the next run."""
        self._ahead_us = 0
        """Database time minus monotonic time, as last seen."""

    def wake(self) -> None:
        """There is work now."""
        self._look_by(self._clock.monotonic_us())

    def wake_at(self, at: int) -> None:
        """There will be work at this instant of database time."""
        self._look_by(at - self._ahead_us)

    async def run(self) -> None:
        """Look, wait, look again; for ever."""
        while True:
            await self._rest()
            began_us = self._clock.monotonic_us()
            self._look_at_us = began_us + self._interval_us()
            try:
                await self._run_once(began_us)
            except Exception as error:  # noqa: BLE001  # whatever it is, the loop goes on
                self._missed(error)

    async def _run_once(self, began_us: int) -> None:
        at = await self._database.now()
        self._ahead_us = at - self._clock.monotonic_us()
        if self.loop.heeds_clock and self._database.clock_is_suspect():
            return
        report = await self.loop.run_once(at)
        figures = self.figures
        figures.runs += 1
        figures.moved += report.moved
        figures.failed += report.failed
        if figures.errors_in_a_row:
            log.info("loop %s works again", self.loop.name, extra={"loop": self.loop.name})
            figures.errors_in_a_row = 0
        if report.more:
            self._look_by(began_us)
        elif report.next_at is not None and report.next_at > at:
            self.wake_at(report.next_at)
        if self.loop.rest:
            ended_us = self._clock.monotonic_us()
            self._look_at_us = max(self._look_at_us, ended_us + self.loop.rest * (ended_us - began_us))

    def _missed(self, error: Exception) -> None:
        figures = self.figures
        figures.errors += 1
        figures.errors_in_a_row += 1
        wait_us = min(_ERROR_WAIT_MAX_US, _ERROR_WAIT_US << min(figures.errors_in_a_row - 1, 8))
        self._look_at_us = self._clock.monotonic_us() + wait_us
        self._changed.clear()
        if figures.errors_in_a_row == 1:  # told once, until it works again
            expected = isinstance(error, OrbitError)
            log.log(
                logging.WARNING if expected else logging.ERROR,
                "loop %s rests: %s",
                self.loop.name,
                error,
                extra={"loop": self.loop.name},
                exc_info=None if expected else error,
            )

    def _interval_us(self) -> int:
        """Jitter keeps nodes that started together from looking together."""
        return int(self.loop.interval_ms * 1000 * (1 + _JITTER * (2 * random_share() - 1)))

    def _look_by(self, monotonic_us: int) -> None:
        if monotonic_us < self._look_at_us and not self.figures.errors_in_a_row:
            self._look_at_us = monotonic_us
            self._changed.set()

    async def _rest(self) -> None:
        """Until the next look is due; a hint may bring it forward."""
        earliest_us = self._clock.monotonic_us() + _SPACING_US
        while True:
            self._changed.clear()
            left_us = max(self._look_at_us, earliest_us) - self._clock.monotonic_us()
            if left_us <= 0:
                return
            try:
                async with asyncio.timeout(left_us / 1_000_000):
                    await self._changed.wait()
            except TimeoutError:
                return


class Runners:
    """All loops of a node."""

    def __init__(self, loops: list[Loop], database: Database, clock: Clock) -> None:
        self._runners = {loop.name: Runner(loop, database, clock) for loop in loops}
        self._tasks: list[asyncio.Task[None]] = []

    def __getitem__(self, name: str) -> Runner:
        return self._runners[name]

    def __iter__(self) -> Iterator[Runner]:
        return iter(self._runners.values())

    def start(self) -> None:
        """Start every loop on the running event loop."""
        self._tasks = [asyncio.create_task(runner.run(), name=f"loop {runner.loop.name}") for runner in self]

    async def stop(self) -> None:
        """Stop them all; what they have sent to the committer goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
