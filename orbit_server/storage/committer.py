"""The committer: the one door to the database for writes.

While a transaction is in flight, arrivals queue; the next one takes what is there, up to a cap. Nothing ever
waits for company. Each lane runs its transactions in a task of its own, so that a caller who goes away
never reaches the driver.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection

from orbit_sdk.errors import Internal, OrbitError, ResourceExhausted, Unavailable
from orbit_server.storage.commands import Answered, Command
from orbit_server.storage.entries import Entry
from orbit_server.storage.group import GroupRunner
from orbit_server.storage.metrics import StorageMetrics
from orbit_server.storage.retry import Ladder, Lane, Waiting
from orbit_server.storage.settings import StorageSettings

log = logging.getLogger(__name__)

A = TypeVar("A")
T = TypeVar("T")

_QUEUE_RETRY_AFTER_MS = 1_000


@dataclass(slots=True, eq=False)
class _Queue:
    """Commands that wait for a lane, of both priorities."""

    lane: Lane
    waiting: dict[bool, deque[Waiting]] = field(default_factory=lambda: {False: deque(), True: deque()})
    again: deque[Waiting] = field(default_factory=deque)
    """Commands that must run once more with rows they now name."""
    jobs: deque[tuple[Callable[[Connection], Any], asyncio.Future[Any]]] = field(default_factory=deque)
    """Maintenance transactions, each on its own."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, most: int) -> list[Waiting]:
        """The next group: reruns first, then each class at least half of the room if it has any."""
        group: list[Waiting] = []
        while self.again and len(group) < most:
            if self.again[0].alone:
                return group or [self.again.popleft()]
            group.append(self.again.popleft())
        requests, background = self.waiting[False], self.waiting[True]
        room = most - len(group)
        reserved = min(len(background), room // 2)
        for source, share in ((requests, room - reserved), (background, room)):
            count = min(share, len(source), most - len(group))
            group.extend([source.popleft() for _ in range(count)])
        return group

    def __len__(self) -> int:
        return len(self.again) + len(self.waiting[False]) + len(self.waiting[True])


class Committer:
    """Groups the commands that wait and runs one transaction per group."""

    def __init__(
        self,
        runner: GroupRunner,
        settings: StorageSettings,
        metrics: StorageMetrics,
        *,
        lanes: Sequence[Lane],
        background_lanes: Sequence[Lane],
    ) -> None:
        """With no background lanes, the lanes serve both classes."""
        self._runner = runner
        self._settings = settings
        self._metrics = metrics
        shared = not background_lanes
        self._requests = [_Queue(lane) for lane in lanes]
        self._background = self._requests if shared else [_Queue(lane) for lane in background_lanes]
        self._queues = self._requests if shared else [*self._requests, *self._background]
        self._waiting = {False: 0, True: 0}
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False
        self._broken: str | None = None
        self._ladder = Ladder(runner, settings, metrics, self._on_fatal)

    # --- for everybody ---

    async def submit(self, command: Command[A], *, background: bool = False) -> A:
        """Run a command and give its answer once it is committed.

        Cancelling the caller does not stop the command. Raises the OrbitError of a refusal, ResourceExhausted
        when too many wait, Unavailable when the database does not answer in time (the command may then have
        been applied: repeat it under the same key), Internal when the command itself fails.
        """
        return (await self.post(command, background=background)).answer

    def post(self, command: Command[A], *, background: bool = False) -> asyncio.Future[Answered[A]]:
        """Queue a command; the future also tells whether the answer is that of an earlier equal request.

        A full queue or a closed committer is told by the future too.
        """
        future: asyncio.Future[Answered[A]] = asyncio.get_running_loop().create_future()
        try:
            waiting = self._admit(command, future, background=background)
        except OrbitError as error:
            future.set_exception(error)
            return future
        queues = self._background if background else self._requests
        queue = queues[zlib.crc32(command.lane.encode()) % len(queues)]
        queue.waiting[background].append(waiting)
        queue.wake.set()
        return future

    # --- for the database ---

    def start(self) -> None:
        """Start the lanes on the running event loop."""
        for queue in self._queues:
            self._tasks.append(asyncio.create_task(self._serve(queue)))

    async def close(self) -> None:
        """Refuse new commands and finish the accepted ones."""
        self._closing = True
        for queue in self._queues:
            queue.wake.set()
        await asyncio.gather(*self._tasks)

    async def transact(self, fn: Callable[[Connection], T], *, lane: str) -> T:
        """Run a maintenance transaction as background work, between groups; it may run twice."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        queue = self._background[zlib.crc32(lane.encode()) % len(self._background)]
        if self._closing or self._broken is not None:
            raise Unavailable(self._broken or "the server is stopping")
        queue.jobs.append((fn, future))
        queue.wake.set()
        return await future

    # --- inside ---

    def _admit(self, command: Command[Any], future: asyncio.Future[Any], *, background: bool) -> Waiting:
        if self._broken is not None:
            raise Unavailable(self._broken)
        if self._closing:
            raise Unavailable("the server is stopping")
        if self._waiting[background] >= self._settings.queue_max:
            self._metrics.queue_full += 1
            raise ResourceExhausted(
                "too many commands are waiting for the database", retry_after_ms=_QUEUE_RETRY_AFTER_MS
            )
        try:
            entry = Entry(command)
        except OrbitError:
            raise
        except Exception as error:
            raise Internal(f"{type(command).__name__} does not say what it needs") from error
        if not self._runner.known(entry.needs):
            raise Internal(f"{type(command).__name__} needs rows of an unknown kind: {sorted(entry.needs)}")
        self._waiting[background] += 1
        self._metrics.queued += 1
        return Waiting(entry, future, background, self._settings.clock.monotonic_us())

    def _on_fatal(self, reason: str) -> None:
        """Durability is no longer certain: refuse everything and have the process ended."""
        self._broken = reason
        self._settings.on_fatal(reason)

    async def _serve(self, queue: _Queue) -> None:
        """One lane: take what waits, settle it, again."""
        while True:
            if queue.jobs:
                await self._run_job(queue)
            group = queue.take(self._settings.group_max)
            if group:
                await self._run_group(queue, group)
            elif not queue.jobs:
                if self._closing:
                    return
                queue.wake.clear()
                await queue.wake.wait()

    async def _run_group(self, queue: _Queue, group: list[Waiting]) -> None:
        started = self._settings.clock.monotonic_us()
        for waiting in group:
            if waiting.entry.times_missing == 0:
                self._waiting[waiting.background] -= 1
                self._metrics.queued -= 1
                self._metrics.phases["wait"].observe(started - waiting.since_us)
        if self._broken is not None:
            _fail(group, Unavailable(self._broken))
            return
        try:
            queue.again.extend(await self._ladder.run(queue.lane, group))
        except OrbitError as error:
            _fail(group, error)
        except Exception as error:
            log.exception("a group could not be settled")
            internal = Internal("the command could not be settled")
            internal.__cause__ = error
            _fail(group, internal)

    async def _run_job(self, queue: _Queue) -> None:
        fn, future = queue.jobs.popleft()
        try:
            result = await self._ladder.run_alone(queue.lane, fn)
        except Exception as error:  # noqa: BLE001  # the caller gets it
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)


def _fail(group: Sequence[Waiting], error: OrbitError) -> None:
    for waiting in group:
        if not waiting.future.done():
            waiting.future.set_exception(error)
