"""The embedded database: one file, one process, one writer thread, readers beside it.

A whole transaction runs in the writer thread over the standard driver, so that a statement costs no hop
between threads, and no cancelled coroutine can ever leave a transaction open.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from orbit_sdk.errors import Unavailable
from orbit_server.storage.dialects import classify_sqlite
from orbit_server.storage.faults import TransactionFailed, watch_statements
from orbit_server.storage.settings import StorageSettings

T = TypeVar("T")


class FileLock:
    """Keeps a second process away from the database file. The lock ends with the process, however it ends."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises Unavailable naming the process that holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise Unavailable(
                f"the database {self._path.with_suffix('')} is in use by process {holder or 'unknown'}"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def sqlite_engine(path: Path, *, busy_timeout_ms: int, read_only: bool = False) -> Engine:
    """An engine over the file. Writers begin IMMEDIATE, readers take a plain snapshot and may not write."""

    def connect() -> sqlite3.Connection:
        # Used by one thread only; a reader's connection is closed by another, after its thread has ended.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=not read_only)
        connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_ms)}")
        connection.execute("PRAGMA temp_store = MEMORY")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    # Errors are logged, payloads are not.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    @event.listens_for(engine, "begin")
    def send_begin(conn: Connection) -> None:
        _driver(conn).execute(begin)

    return engine


def _driver(conn: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", conn.connection.dbapi_connection)


class SqliteLane:
    """The one writer."""

    def __init__(self, path: Path, settings: StorageSettings) -> None:
        self._engine = sqlite_engine(path, busy_timeout_ms=settings.busy_timeout_ms)
        self._path = path
        self._file: tuple[int, int] | None = None
        self._faults = settings.faults
        if settings.faults is not None:
            watch_statements(self._engine, settings.faults)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orbit-writer")
        self._conn: Connection | None = None

    async def transact(self, fn: Callable[[Connection], T]) -> T:
        """Run BEGIN IMMEDIATE, fn and COMMIT in the writer thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, fn)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown()

    def _transact(self, fn: Callable[[Connection], T]) -> T:
        at_commit = False
        try:
            if self._conn is None:
                self._conn = self._engine.connect()
                self._file = self._file or self._in_place()
            self._conn.begin()
            result = fn(self._conn)
            at_commit = True
            if self._faults is not None:
                self._faults.before_commit()
            self._conn.commit()
            self._must_be_in_place()
            if self._faults is not None:
                self._faults.after_commit()
            return result
        except TransactionFailed:
            self._disconnect()
            raise
        except Exception as error:
            fault = classify_sqlite(error, at_commit=at_commit)
            self._roll_back()
            raise TransactionFailed(fault, error) from error

    def _in_place(self) -> tuple[int, int] | None:
        """Which file is under the name of the database."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _must_be_in_place(self) -> None:
        """A removed file takes commits for as long as it is open, and nobody finds them again."""
        if self._in_place() != self._file:
            raise FileNotFoundError(f"{self._path} was removed or replaced")

    def _roll_back(self) -> None:
        try:
            if self._conn is not None:
                self._conn.rollback()
        except Exception:  # noqa: BLE001  # whatever it is, the connection is not used again
            self._disconnect()

    def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.invalidate()
            conn.close()
        self._engine.dispose()


class SqliteReaders:
    """Read-only connections, one per thread of a small pool."""

    def __init__(self, path: Path, settings: StorageSettings) -> None:
        self._engine = sqlite_engine(path, busy_timeout_ms=settings.busy_timeout_ms, read_only=True)
        self._threads = ThreadPoolExecutor(settings.readers, thread_name_prefix="orbit-reader")
        self._own = threading.local()
        self._all: list[Connection] = []

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run fn on one snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, fn)

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        for conn in self._all:
            conn.close()
        self._engine.dispose()

    def _read(self, fn: Callable[[Connection], T]) -> T:
        conn: Connection | None = getattr(self._own, "conn", None)
        try:
            if conn is None:
                conn = self._own.conn = self._engine.connect()
                self._all.append(conn)
            conn.begin()
            try:
                return fn(conn)
            finally:
                conn.rollback()
        except sqlite3.Error as error:
            raise TransactionFailed(classify_sqlite(error, at_commit=False), error) from error
