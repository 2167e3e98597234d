from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from orbit_server.storage.faults import Fault, TransactionFailed
from orbit_server.storage.mysql import MySqlLane, MySqlReaders, lanes
from orbit_server.storage.settings import StorageSettings
from orbit_server.storage.sqlite import SqliteLane
from tests.storage.trouble import Script, mysql_error, sqlite_error

INSERT = "INSERT INTO nodes (id, started_at, seen_at) VALUES ('{}', 1, 1)"


def add(name: str) -> Any:
    return lambda conn: conn.exec_driver_sql(INSERT.format(name)).rowcount


def count(conn: Any) -> int:
    return int(conn.exec_driver_sql("SELECT COUNT(*) FROM nodes").scalar_one())


async def test_a_lane_cancelled_inside_a_statement_drops_its_connection(migrated_mariadb_url: str) -> None:
    engine, (lane,) = lanes(migrated_mariadb_url, StorageSettings(), 1)
    try:
        running = asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow(conn: Any) -> None:
            add("a")(conn)
            loop.call_soon(running.set)
            conn.exec_driver_sql("SELECT SLEEP(30)")

        task = asyncio.create_task(lane.transact(slow))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert lane._conn is None
        assert await lane.transact(count) == 0
    finally:
        await lane.close()
        await engine.dispose()


async def test_a_connection_that_cannot_even_roll_back_is_dropped(migrated_mariadb_url: str) -> None:
    engine, (lane,) = lanes(migrated_mariadb_url, StorageSettings(), 1)
    try:

        def cut(conn: Any) -> None:
            add("a")(conn)
            conn.connection.driver_connection.close()
            raise mysql_error(1213)

        with pytest.raises(TransactionFailed) as failed:
            await lane.transact(cut)
        assert failed.value.fault is Fault.TRANSIENT
        assert await lane.transact(count) == 0
    finally:
        await lane.close()
        await engine.dispose()


async def test_an_injected_outcome_drops_the_connection(migrated_mariadb_url: str) -> None:
    script = Script()
    script.before.append(TransactionFailed(Fault.UNKNOWN, ConnectionError()))
    engine, (lane,) = lanes(migrated_mariadb_url, StorageSettings(faults=script), 1)
    with pytest.raises(TransactionFailed):
        await lane.transact(add("a"))
    assert await lane.transact(count) == 0
    await lane.close()
    await engine.dispose()


async def test_an_error_between_statements_rolls_everything_back(migrated_mariadb_url: str) -> None:
    engine, (lane,) = lanes(migrated_mariadb_url, StorageSettings(), 1)

    def half(conn: Any) -> None:
        add("a")(conn)
        raise KeyError("bug")

    for code in (1062, 1064):
        with pytest.raises(TransactionFailed):
            await lane.transact(lambda conn, code=code: [add("b")(conn), _raise(mysql_error(code))])
    with pytest.raises(TransactionFailed) as failed:
        await lane.transact(half)
    assert failed.value.fault is Fault.BROKEN
    assert isinstance(lane, MySqlLane)
    assert await lane.transact(count) == 0
    await lane.close()
    await engine.dispose()


def _raise(error: BaseException) -> None:
    raise error


async def test_node_states_that_last_make_a_disconnect(migrated_mariadb_url: str) -> None:
    engine, (lane,) = lanes(migrated_mariadb_url, StorageSettings(), 1)
    first = await lane.transact(lambda conn: conn.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one())
    with pytest.raises(TransactionFailed) as failed:
        await lane.transact(
            lambda conn: conn.exec_driver_sql("SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047")
        )
    assert failed.value.fault is Fault.TRANSIENT
    second = await lane.transact(lambda conn: conn.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one())
    assert first != second
    await lane.close()
    await engine.dispose()


async def test_readers_finish_what_runs_before_they_close(migrated_mariadb_url: str) -> None:
    readers = MySqlReaders(migrated_mariadb_url, StorageSettings())
    reading = asyncio.create_task(
        readers.read(lambda conn: [conn.exec_driver_sql("SELECT SLEEP(0.05)"), 7][1])
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await readers.close()
    assert await reading == 7


async def test_a_writer_whose_rollback_fails_opens_the_file_anew(migrated_sqlite_url: str) -> None:
    lane = SqliteLane(Path(migrated_sqlite_url.removeprefix("sqlite:///")), StorageSettings())

    def cut(conn: Any) -> None:
        add("a")(conn)
        conn.connection.dbapi_connection.close()
        raise sqlite_error(sqlite3.SQLITE_BUSY)

    try:
        with pytest.raises(TransactionFailed):
            await lane.transact(cut)
        assert await lane.transact(count) == 0
        assert await lane.transact(add("b")) == 1
        assert await lane.transact(count) == 1
    finally:
        await lane.close()
