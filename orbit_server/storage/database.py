"""The database as the rest of the server sees it: reads, writes, and the committer.

database = Database("sqlite:////var/lib/orbit/orbit.db", kinds=[TASKS, ATTEMPTS], settings=StorageSettings())
async with database:
    answer = await database.committer.submit(command)
    page = await database.read(lambda conn: tasks_page(conn, namespace_id))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from orbit_sdk.errors import Unavailable
from orbit_server.storage.backends import Backend, MySqlBackend, SqliteBackend
from orbit_server.storage.clock_guard import ClockGuard
from orbit_server.storage.committer import Committer
from orbit_server.storage.dialects import code_name
from orbit_server.storage.events import EVENTS
from orbit_server.storage.faults import Fault, TransactionFailed
from orbit_server.storage.group import GroupRunner
from orbit_server.storage.idempotency import KEYS
from orbit_server.storage.kinds import Kind
from orbit_server.storage.metrics import StorageMetrics
from orbit_server.storage.migrations.state import sqlite_path
from orbit_server.storage.pipe import Pipe, piping
from orbit_server.storage.settings import StorageSettings

T = TypeVar("T")

_READ_TRIES = 3
_READ_PAUSE_S = 0.05


class Database:
    """One database of either dialect, opened for this process.

    Args:
        url: `sqlite:///<path>` or `mysql://user:password@host:port/name` (also `mariadb://`).
        kinds: every kind of row that commands may name; "events" and "idempotency" are always there.
        settings: limits and seams.
    """

    def __init__(
        self, url: str, *, kinds: Sequence[Kind[Any]] = (), settings: StorageSettings | None = None
    ) -> None:
        self.settings = settings or StorageSettings()
        self.metrics = StorageMetrics()
        self._open = False
        self._guard = ClockGuard(self.settings.lease_ms * 1_000, self.metrics)
        path = sqlite_path(url)
        self._backend: Backend = (
            MySqlBackend(url, self.settings) if path is None else SqliteBackend(path, self.settings)
        )
        runner = GroupRunner(
            [*kinds, *(own for own in (EVENTS, KEYS) if own not in kinds)],
            KEYS,
            ask_now=self._ask_now,
            monotonic_us=self.settings.clock.monotonic_us,
        )
        self.committer = Committer(
            runner,
            self.settings,
            self.metrics,
            lanes=self._backend.lanes,
            background_lanes=self._backend.background_lanes,
        )

    @property
    def clock_suspect_until(self) -> int:
        """Monotonic microseconds (the settings' clock) until which sweeping and claiming rest; 0 = never."""
        return self._guard.suspect_until

    def clock_is_suspect(self) -> bool:
        """Whether the database clock has jumped less than one lease time ago."""
        return self.settings.clock.monotonic_us() < self._guard.suspect_until

    async def open(self) -> None:
        """Check schema, session settings and clocks, and start. Raises Unavailable with the reason."""
        try:
            await self._backend.open()
            for check in self._backend.checks():
                await self.read(check)
        except DBAPIError as error:
            await self._backend.close()
            raise Unavailable(f"the database cannot be opened: {error.orig}") from error
        except BaseException:
            await self._backend.close()
            raise
        self.committer.start()
        self._open = True

    async def close(self) -> None:
        """Refuse new commands, finish the accepted ones, disconnect. Closing twice is closing once."""
        if not self._open:
            return
        self._open = False
        await self.committer.close()
        await self._backend.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run a read function on a read-only connection, without locks. Raises Unavailable."""
        for tries in range(1, _READ_TRIES + 1):
            try:
                return await self._backend.read(fn)
            except TransactionFailed as failure:
                self.metrics.retries[code_name(failure.cause)] += 1
                if failure.fault is Fault.BROKEN:
                    raise failure.cause from None
                if tries == _READ_TRIES:
                    raise Unavailable("the database does not answer", retry_after_ms=1_000) from failure.cause
            await asyncio.sleep(_READ_PAUSE_S * tries)
        raise AssertionError("every round returns or raises")

    async def write(self, fn: Callable[[Connection], T], *, lane: str = "") -> T:
        """Run a maintenance transaction (retention, heartbeats) as background work. It may run twice."""
        return await self.committer.transact(fn, lane=lane)

    async def now(self) -> int:
        """The database clock, UTC microseconds."""
        return await self.read(self._read_now)

    def _read_now(self, conn: Connection) -> int:
        with piping(conn) as pipe:
            now = self._ask_now(pipe)
            pipe.flush()
            return now()

    def _ask_now(self, pipe: Pipe) -> Callable[[], int]:
        """The database clock, watched for jumps."""
        clock = self.settings.clock
        before = clock.monotonic_us()
        answer = self._backend.ask_now(pipe)

        def now() -> int:
            found = answer()
            self._guard.observe(found, before, clock.monotonic_us())
            return found

        return now
