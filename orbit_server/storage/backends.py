"""The two backends: what a database of each dialect consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from orbit_server.storage.checks import check_clock, check_schema, check_session
from orbit_server.storage.dialects import MYSQL_NOW
from orbit_server.storage.mysql import MySqlReaders, lanes
from orbit_server.storage.pipe import Pipe
from orbit_server.storage.retry import Lane
from orbit_server.storage.settings import StorageSettings
from orbit_server.storage.sqlite import FileLock, SqliteLane, SqliteReaders

T = TypeVar("T")


class Backend(Protocol):
    """Lanes, reads and the clock of one database."""

    @property
    def lanes(self) -> Sequence[Lane]: ...
    @property
    def background_lanes(self) -> Sequence[Lane]: ...

    async def open(self) -> None: ...
    def checks(self) -> Sequence[Callable[[Connection], None]]:
        """What must hold before the first command."""
        ...

    async def read(self, fn: Callable[[Connection], T]) -> T: ...
    def ask_now(self, pipe: Pipe) -> Callable[[], int]:
        """The database's clock, UTC microseconds; the answer holds once the pipe was flushed."""
        ...

    async def close(self) -> None: ...


class SqliteBackend:
    """A file, locked for this process; one writer serves requests and background work in turn."""

    def __init__(self, path: Path, settings: StorageSettings) -> None:
        self._path = path
        self._clock = settings.clock
        self._lock = FileLock(path)
        self._readers = SqliteReaders(path, settings)
        self.lanes = [SqliteLane(path, settings)]
        self.background_lanes: list[SqliteLane] = []

    async def open(self) -> None:
        self._lock.acquire()
        self._path.touch()

    def checks(self) -> Sequence[Callable[[Connection], None]]:
        return [check_schema]

    async def read(self, fn: Callable[[Connection], T]) -> T:
        return await self._readers.read(fn)

    def ask_now(self, pipe: Pipe) -> Callable[[], int]:  # noqa: ARG002  # the other backend asks the server
        """The machine's clock is this database's clock: SQLite has none finer than a millisecond."""
        return self._clock.wall_us

    async def close(self) -> None:
        for lane in self.lanes:
            await lane.close()
        await self._readers.close()
        self._lock.release()


class MySqlBackend:
    """Connections of three kinds, so that none starves another: requests, background work, reads."""

    def __init__(self, url: str, settings: StorageSettings) -> None:
        self._settings = settings
        self._engine, self.lanes = lanes(url, settings, settings.lanes)
        self._background_engine, self.background_lanes = lanes(url, settings, settings.background_lanes)
        self._readers = MySqlReaders(url, settings)

    async def open(self) -> None:
        """Connections open by themselves when they are first used."""

    def checks(self) -> Sequence[Callable[[Connection], None]]:
        return [
            check_session,
            check_schema,
            lambda conn: check_clock(conn, self._settings.clock, self._settings),
        ]

    async def read(self, fn: Callable[[Connection], T]) -> T:
        return await self._readers.read(fn)

    def ask_now(self, pipe: Pipe) -> Callable[[], int]:
        reply = pipe.ask(MYSQL_NOW, ())
        return lambda: int(reply.rows[0][0])

    async def close(self) -> None:
        for lane in (*self.lanes, *self.background_lanes):
            await lane.close()
        await self._readers.close()
        await self._engine.dispose()
        await self._background_engine.dispose()
