"""MySQL and MariaDB over aiomysql: a connection per lane for writes, a pool for reads.

Every transaction runs under one deadline inside the lane's own task. Whatever a connection said last, after a
fault it is rolled back or thrown away; it is never gone on with.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from orbit_server.storage.dialects import DISCONNECT_CODES, classify_mysql, driver_code
from orbit_server.storage.faults import Fault, TransactionFailed, watch_statements
from orbit_server.storage.mysql_wire import connect
from orbit_server.storage.pipe import flush_before_core
from orbit_server.storage.settings import StorageSettings

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 5
_ROLLBACK_TIMEOUT_S = 2
_RECYCLE_S = 240
"""Below the idle limits of servers and of the proxies in front of them."""


def mysql_url(url: str | URL, *, driver: str) -> URL:
    """The URL for a driver, whatever driver it named, with the character set said aloud."""
    return make_url(url).set(drivername=f"mysql+{driver}").update_query_dict({"charset": "utf8mb4"})


def session_command(settings: StorageSettings) -> str:
    """What every connection sets. The last part is read by MariaDB only: MySQL has no such variable."""
    lock_wait_s = max(1, settings.busy_timeout_ms // 1_000)
    statement_s = max(1, settings.deadline_ms // 1_000)
    return (
        "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
        f"innodb_lock_wait_timeout = {lock_wait_s} /*M!, max_statement_time = {statement_s} */"
    )


def mysql_engine(url: str, settings: StorageSettings, *, pooled: bool = False) -> AsyncEngine:
    """An engine at READ COMMITTED. Lanes hold their connections themselves; only reads are pooled."""
    pool: dict[str, Any] = {"poolclass": NullPool}
    if pooled:
        pool = {
            "pool_size": settings.readers,
            "max_overflow": 0,
            "pool_timeout": _CONNECT_TIMEOUT_S,
            "pool_recycle": _RECYCLE_S,
        }
    engine = create_async_engine(
        mysql_url(url, driver="aiomysql"),
        isolation_level="READ COMMITTED",
        hide_parameters=True,  # errors are logged, payloads are not
        connect_args={
            "async_creator_fn": connect,
            "connect_timeout": _CONNECT_TIMEOUT_S,
            "init_command": session_command(settings),
        },
        **pool,
    )
    event.listen(engine.sync_engine, "handle_error", _mark_disconnects)
    flush_before_core(engine.sync_engine)
    return engine


def _mark_disconnects(context: ExceptionContext) -> None:
    """A node that is not ready, shuts down or became read-only stays so: its connection is not used again."""
    error = context.original_exception
    if driver_code(error) in DISCONNECT_CODES:
        context.is_disconnect = True


class MySqlLane:
    """One writing connection, opened when needed."""

    def __init__(self, engine: AsyncEngine, settings: StorageSettings) -> None:
        self._engine = engine
        self._faults = settings.faults
        self._deadline_s = settings.deadline_ms / 1_000
        self._clock = settings.clock
        self._conn: AsyncConnection | None = None
        self._used_us = 0

    async def transact(self, fn: Callable[[Connection], T]) -> T:
        """BEGIN, fn and COMMIT under the deadline; when it passes, the connection is dropped."""
        at_commit = False
        try:
            async with asyncio.timeout(self._deadline_s):
                conn = await self._connection()
                # Said aloud: a group's statements go past Core, which would begin with its first one.
                _ = await conn.begin()
                result = await conn.run_sync(fn)
                at_commit = True
                if self._faults is not None:
                    self._faults.before_commit()
                await conn.commit()
                if self._faults is not None:
                    self._faults.after_commit()
                return result
        except TransactionFailed:
            await self._drop()
            raise
        except Exception as error:
            fault = classify_mysql(error, at_commit=at_commit)
            await self._clean_up(fault, error)
            raise TransactionFailed(fault, error) from error
        except BaseException:
            await self._drop()
            raise

    async def close(self) -> None:
        await self._drop(gently=True)

    async def _connection(self) -> AsyncConnection:
        now_us = self._clock.monotonic_us()
        if self._conn is not None and now_us - self._used_us > _RECYCLE_S * 1_000_000:
            await self._drop(gently=True)
        if self._conn is None:
            self._conn = await self._engine.connect()
        self._used_us = now_us
        return self._conn

    async def _clean_up(self, fault: Fault, error: BaseException) -> None:
        """Roll back what was not applied; a connection that is lost or in doubt is thrown away."""
        lost = isinstance(error, OSError) or (isinstance(error, DBAPIError) and error.connection_invalidated)
        if fault is Fault.UNKNOWN or lost or self._conn is None:
            await self._drop()
            return
        try:
            async with asyncio.timeout(_ROLLBACK_TIMEOUT_S):
                await self._conn.rollback()
        except Exception:  # noqa: BLE001  # whatever it is, the connection is not used again
            await self._drop()

    async def _drop(self, *, gently: bool = False) -> None:
        conn, self._conn = self._conn, None
        if conn is None:
            return
        if not gently:
            with contextlib.suppress(Exception):
                await conn.invalidate()
        with contextlib.suppress(Exception):
            await conn.close()


class MySqlReaders:
    """Pooled connections for reads, apart from those that write."""

    def __init__(self, url: str, settings: StorageSettings) -> None:
        self._engine = mysql_engine(url, settings, pooled=True)
        self._deadline_s = settings.deadline_ms / 1_000
        self._reads: set[asyncio.Task[Any]] = set()

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run fn in a task of its own, so that a caller who goes away never reaches the driver."""
        task = asyncio.create_task(self._read(fn))
        self._reads.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def close(self) -> None:
        if self._reads:
            await asyncio.wait(self._reads)
        await self._engine.dispose()

    async def _read(self, fn: Callable[[Connection], T]) -> T:
        try:
            async with asyncio.timeout(self._deadline_s), self._engine.connect() as conn:
                return await conn.run_sync(fn)
        except (DBAPIError, PoolTimeoutError, OSError) as error:
            transient = isinstance(error, PoolTimeoutError)
            fault = Fault.TRANSIENT if transient else classify_mysql(error, at_commit=False)
            raise TransactionFailed(fault, error) from error

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._reads.discard(task)
        if not task.cancelled():
            task.exception()


def lanes(url: str, settings: StorageSettings, count: int) -> tuple[AsyncEngine, list[MySqlLane]]:
    """An engine of its own with so many lanes."""
    engine = mysql_engine(url, settings)
    if settings.faults is not None:
        watch_statements(engine.sync_engine, settings.faults)
    return engine, [MySqlLane(engine, settings) for _ in range(count)]
