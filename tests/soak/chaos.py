"""The faults: at random, but from a seed; every one is written down before it is done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.crash.proxy import Cut, Proxy
from tests.soak.settings import SoakSettings
from tests.soak.site import Killable, Site

Fault = Callable[[], Awaitable[str]]


class Chaos:
    """Puts in one fault after the other. `counts` says what was done, `diary` when."""

    def __init__(self, site: Site, settings: SoakSettings) -> None:
        self.site = site
        self.settings = settings
        self.random = random.Random(settings.seed)
        self.counts: Counter[str] = Counter()
        self.diary: list[str] = []
        self.calm = asyncio.Lock()
        """Held while the database is killed, and by whoever needs it up."""
        self._frozen: set[asyncio.Task[None]] = set()

    @property
    def kills(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith("kill"))

    async def run(self, until: float) -> None:
        """Until the loop's clock says so; what is frozen or stalled then is left to `Site.mend`."""
        clock = asyncio.get_running_loop().time
        while clock() < until:
            await asyncio.sleep(self.random.expovariate(1 / self.settings.pace))
            name, fault = self._choose()
            self.counts[name] += 1
            self.diary.append(f"{clock():.2f} {name}")
            self.diary[-1] += f" {await fault()}"
        for task in self._frozen:
            task.cancel()
        await asyncio.gather(*self._frozen, return_exceptions=True)

    def _choose(self) -> tuple[str, Fault]:
        faults: list[tuple[int, str, Fault]] = [
            (6, "kill worker", self._kill_worker),
            (4, "kill server", self._kill_server),
            (3, "freeze worker", lambda: self._freeze(self.random.choice(self.site.workers))),
            (2, "freeze server", lambda: self._freeze(self.random.choice(self.site.servers))),
            (3, "cut front", lambda: self._cut(self.random.choice(self.site.fronts))),
            (2, "stall front", lambda: self._stall(self.random.choice(self.site.fronts))),
        ]
        back = self.site.back
        if back is not None:
            faults += [
                (2, "cut database", lambda: self._cut(back)),
                (1, "stall database", lambda: self._stall(back)),
                (3, "cut commit", lambda: self._cut_commit(back)),
                (1, "kill database", self._kill_database),
            ]
        _, name, fault = self.random.choices(faults, [weight for weight, _, _ in faults])[0]
        return name, fault

    async def _kill_worker(self) -> str:
        number = self.random.randrange(len(self.site.workers))
        await asyncio.to_thread(self.site.revive_worker, number)
        return str(number)

    async def _kill_server(self) -> str:
        number = self.random.randrange(len(self.site.servers))
        async with self.calm:
            await asyncio.to_thread(self.site.revive_server, number)
        return str(number)

    async def _kill_database(self) -> str:
        away = self.random.random() * 2
        async with self.calm:
            await asyncio.to_thread(self.site.restart_database, away)
        return f"{away:.1f} s"

    async def _freeze(self, process: Killable) -> str:
        """A short stop, or one longer than lease and skew together."""
        seconds = self.random.choice([0.3, 1.0, 2.5, 6.0])
        try:
            pid = process.pid
            os.kill(pid, signal.SIGSTOP)
        except (AssertionError, ProcessLookupError):
            return "was gone"
        self._later(seconds, lambda: os.kill(pid, signal.SIGCONT))
        return f"{pid} for {seconds} s"

    async def _cut(self, between: Proxy) -> str:
        return f"{between.cut_all()} connections"

    async def _stall(self, between: Proxy) -> str:
        seconds = self.random.choice([0.2, 1.0, 3.0])
        between.stall()
        self._later(seconds, between.flow)
        return f"for {seconds} s"

    async def _cut_commit(self, between: Proxy) -> str:
        how = self.random.choice(list(Cut))
        times = self.random.randint(1, 3)
        between.cut_next_commit(how, times)
        return f"{how.value} {times} times"

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        async def wait() -> None:
            try:
                await asyncio.sleep(seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    act()

        task = asyncio.create_task(wait())
        self._frozen.add(task)
        task.add_done_callback(self._frozen.discard)
