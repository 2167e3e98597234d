"""The database as the rest of the server sees it: reads, writes, and the committer.

    database = Database("sqlite:////var/lib/orbit/orbit.db", kinds=[TASKS, ATTEMPTS], settings=StorageSettings())
    async with database:
        answer = await database.committer.submit(command)
        page = await database.read(lambda conn: tasks_page(conn, namespace_id))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection

from orbit_server.storage.committer import Committer
from orbit_server.storage.kinds import Kind
from orbit_server.storage.metrics import StorageMetrics
from orbit_server.storage.settings import StorageSettings

T = TypeVar("T")


class Database:
    """One database of either dialect, opened for this process.

    Args:
        url: `sqlite:///<path>` or `mysql://user:password@host:port/name` (also `mariadb://`).
        kinds: every kind of row that commands may name; "events" and "idempotency" are always there.
        settings: limits and seams.
    """

    committer: Committer
    metrics: StorageMetrics
    clock_suspect_until: int
    """Monotonic microseconds (of the settings' clock) until which sweeping and claiming must rest; 0 = never."""

    def __init__(
        self, url: str, *, kinds: Sequence[Kind[Any]] = (), settings: StorageSettings | None = None
    ) -> None:
        raise NotImplementedError

    async def open(self) -> None:
        """Check schema, session settings and clocks, and start. Raises Unavailable with the reason."""

    async def close(self) -> None:
        """Refuse new commands, finish the accepted ones, disconnect."""

    async def __aenter__(self) -> Database:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run a read function on a read-only connection, without locks. Raises Unavailable."""
        raise NotImplementedError

    async def write(self, fn: Callable[[Connection], T], *, lane: str = "") -> T:
        """Run a maintenance transaction (retention, heartbeats) as background work. It may run twice."""
        raise NotImplementedError

    async def now(self) -> int:
        """The database clock, UTC microseconds."""
        raise NotImplementedError
