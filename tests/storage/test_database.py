from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from orbit_sdk.errors import Internal, Unavailable
from orbit_server.clock import ManualClock, SystemClock, new_seed
from orbit_server.platform.logs import JsonFormatter
from orbit_server.storage.book import Book
from orbit_server.storage.checks import check_session, weaknesses
from orbit_server.storage.clock_guard import ClockGuard
from orbit_server.storage.commands import Done
from orbit_server.storage.database import Database
from orbit_server.storage.metrics import Histogram, StorageMetrics
from orbit_server.storage.migrations import migrate
from orbit_server.storage.settings import StorageSettings
from tests.databases import MariaDb
from tests.storage.ledger import COUNTERS, KINDS, Act, Bump, Create, cid, counter, key
from tests.storage.test_committer import rows, value
from tests.storage.trouble import Script, mysql_error, sqlite_error, unknown

Opener = Callable[..., Any]


async def test_reads_see_what_was_committed_and_may_not_write(migrated_sqlite_url: str) -> None:
    async with Database(migrated_sqlite_url, kinds=KINDS) as database:
        await database.committer.submit(Bump("a", "1"))
        assert await rows(database, "queues") == 1
        with pytest.raises(OperationalError, match="readonly"):
            await database.read(lambda conn: conn.exec_driver_sql("DELETE FROM queues"))
        assert await rows(database, "queues") == 1


async def test_a_file_that_is_no_database_is_refused_with_its_reason(sqlite_url: str) -> None:
    Path(sqlite_url.removeprefix("sqlite:///")).write_bytes(b"no database " * 1_000)
    with pytest.raises(Unavailable, match="not a database"):
        await Database(sqlite_url, kinds=KINDS).open()


async def test_reads_run_beside_a_transaction_and_do_not_wait_for_it(migrated_sqlite_url: str) -> None:
    async with Database(migrated_sqlite_url, kinds=KINDS) as database:
        began, go_on = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            began.set()
            go_on.wait()

        writing = asyncio.create_task(database.write(hold))
        await asyncio.to_thread(began.wait)
        assert await rows(database, "queues") == 0
        go_on.set()
        await writing


async def test_a_wrong_read_raises_its_own_error(open_database: Opener) -> None:
    database = await open_database()
    with pytest.raises((OperationalError, ProgrammingError)):
        await database.read(lambda conn: conn.exec_driver_sql("SELECT nothing FROM nowhere"))
    with pytest.raises(ZeroDivisionError):
        await database.read(lambda _: 1 // 0)


async def test_a_read_survives_a_short_fault_and_gives_up_on_a_long_one(open_database: Opener) -> None:
    database = await open_database()
    sqlite = database.settings is not None and "Sqlite" in type(database._backend).__name__
    error = sqlite_error(sqlite3.SQLITE_BUSY) if sqlite else OperationalError("s", (), mysql_error(2006))
    faults: list[BaseException] = [error]

    def read(_: object) -> int:
        if faults:
            raise faults.pop()
        return 42

    assert await database.read(read) == 42
    faults.extend([error] * 10)
    with pytest.raises(Unavailable):
        await database.read(read)


async def test_a_cancelled_read_does_not_reach_the_driver(open_database: Opener) -> None:
    database = await open_database(readers=1)
    for _ in range(5):
        reading = asyncio.create_task(rows(database, "queues"))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert await rows(database, "queues") == 0


async def test_more_reads_than_connections_wait_their_turn(open_database: Opener) -> None:
    database = await open_database(readers=2)
    assert await asyncio.gather(*[rows(database, "queues") for _ in range(20)]) == [0] * 20


async def test_maintenance_gives_its_result_even_to_nobody(open_database: Opener) -> None:
    database = await open_database()
    callers = [
        asyncio.create_task(database.write(lambda _: 1)),
        asyncio.create_task(database.write(lambda _: 1 // 0)),
    ]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert await database.write(lambda _: 2) == 2


async def test_the_embedded_database_goes_by_the_clock_it_is_given(migrated_sqlite_url: str) -> None:
    clock = ManualClock()
    async with Database(migrated_sqlite_url, kinds=KINDS, settings=StorageSettings(clock=clock)) as database:
        assert await database.now() == clock.wall_us()
        clock.advance(5_000_000)
        assert await database.now() == clock.wall_us()
        assert not database.clock_is_suspect()
        clock.step(-3_000_000)
        await database.committer.submit(Bump("a", "1"))
        assert database.clock_is_suspect()
        assert database.clock_suspect_until == clock.monotonic_us() + 30_000_000
        clock.advance(30_000_000)
        assert not database.clock_is_suspect()
        assert database.metrics.clock_jumps == 1


def test_a_reading_that_took_long_says_nothing_about_the_clock() -> None:
    guard = ClockGuard(30_000_000, StorageMetrics())
    guard.observe(0, 0, 0)
    guard.observe(90_000_000, 0, 600_000)
    assert guard.suspect_until == 0
    guard.observe(1_600_001, 600_000, 600_000)
    assert guard.suspect_until == 30_600_000


async def test_the_server_clock_decides_and_is_near_the_machine_clock(open_database: Opener) -> None:
    database = await open_database()
    before = SystemClock().wall_us()
    now = await database.now()
    assert before - 2_000_000 <= now <= SystemClock().wall_us() + 2_000_000


async def test_a_server_refuses_a_database_whose_clock_differs_too_much(migrated_mariadb_url: str) -> None:
    clock = ManualClock(wall_us=SystemClock().wall_us() - 60_000_000)
    with pytest.raises(Unavailable, match="clocks"):
        await Database(migrated_mariadb_url, settings=StorageSettings(clock=clock)).open()


async def test_a_server_refuses_a_session_that_is_not_what_decisions_rely_on(
    migrated_mariadb_url: str,
) -> None:
    async with Database(migrated_mariadb_url) as database:
        for setting, reason in [
            ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "isolation"),
            ("SET SESSION time_zone = '+02:00'", "time zone"),
        ]:

            def spoil(conn: Any, setting: str = setting) -> None:
                conn.exec_driver_sql(setting)
                try:
                    check_session(conn)
                finally:
                    conn.exec_driver_sql("SET SESSION time_zone = '+00:00'")
                    conn.exec_driver_sql("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

            with pytest.raises(Unavailable, match=reason):
                await database.read(spoil)


async def test_a_server_refuses_a_database_that_takes_only_small_packets(new_mariadb: Any) -> None:
    server: MariaDb = new_mariadb(options=("--max-allowed-packet=1M",))
    url = server.create_database()
    migrate(url)
    with pytest.raises(Unavailable, match="max_allowed_packet"):
        await Database(url).open()


def test_weak_durability_is_named() -> None:
    strong = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}
    assert weaknesses(strong) == []
    assert weaknesses({**strong, "log_bin": "OFF", "sync_binlog": "0"}) == []
    assert len(weaknesses({**strong, "innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"})) == 2


async def test_weak_durability_is_warned_of_at_start(
    migrated_mariadb_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with Database(migrated_mariadb_url):
            pass
    assert "innodb_flush_log_at_trx_commit" in caplog.text


async def test_a_database_that_goes_away_and_comes_back_loses_nothing(new_mariadb: Any) -> None:
    server: MariaDb = new_mariadb()
    url = server.create_database()
    migrate(url)
    settings = StorageSettings(budget_ms=60_000, retries=60, lanes=2)
    async with Database(url, kinds=KINDS, settings=settings) as database:
        await database.committer.submit(Bump("a", "0"))
        waiting = [database.committer.post(Bump("a", str(place))) for place in range(1, 20)]
        server.kill()
        waiting += [database.committer.post(Bump("a", str(place))) for place in range(20, 40)]
        await asyncio.to_thread(server.start)
        await asyncio.gather(*waiting)
        assert await value(database, "a") == 40
        assert await rows(database, "payloads") == 40


async def test_a_database_that_stays_away_is_unavailable(new_mariadb: Any) -> None:
    server: MariaDb = new_mariadb()
    url = server.create_database()
    migrate(url)
    settings = StorageSettings(retries=1, lanes=1)
    async with Database(url, kinds=KINDS, settings=settings) as database:
        await database.committer.submit(Bump("a", "0"))
        server.stop()
        with pytest.raises(Unavailable):
            await database.committer.submit(Bump("a", "1"))
        with pytest.raises(Unavailable):
            await rows(database, "queues")


async def test_a_transaction_past_its_deadline_is_dropped_and_repeated(migrated_mariadb_url: str) -> None:
    settings = StorageSettings(deadline_ms=300, lanes=1)
    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        slow = iter(["SELECT SLEEP(20)"])
        assert (
            await database.write(lambda conn: conn.exec_driver_sql(next(slow, "SELECT 5")).scalar_one()) == 5
        )
        assert database.metrics.retries.total() == 1


async def test_an_idle_connection_is_renewed_before_others_cut_it(migrated_mariadb_url: str) -> None:
    clock = ManualClock(wall_us=SystemClock().wall_us())
    settings = StorageSettings(clock=clock, lanes=1, clock_skew_max_ms=3_600_000)
    seen: list[int] = []

    def look(_: Book) -> Done[None]:
        return Done(None)

    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        for wait in (0, 1, 600):
            clock.advance(wait * 1_000_000)
            seen.append(
                await database.write(lambda conn: conn.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one())
            )
        await database.committer.submit(Act("a", look))
    assert seen[0] == seen[1] != seen[2]


class Dispatch:
    """A finalizer that marks every counter of its reservation, as claiming does."""

    def __init__(self, *, fail: str = "") -> None:
        self.fail = fail
        self.ended: list[bool | None] = []
        self.runs = 0

    def open(self, commands: Sequence[Any]) -> DispatchRun | None:
        return DispatchRun(self) if any(isinstance(command, Bump) for command in commands) else None


class DispatchRun:
    def __init__(self, owner: Dispatch) -> None:
        self._owner = owner

    def needs(self) -> dict[str, tuple[str, ...]]:
        return {"counters": (cid("dispatch"),)}

    def finish(self, book: Book) -> None:
        self._owner.runs += 1
        row = book.get(COUNTERS, cid("dispatch")) or book.insert(COUNTERS, counter("dispatch"))
        book.change(COUNTERS, row, replace(row, wake_seq=row.wake_seq + 1))
        if self._owner.fail == "bug":
            raise ZeroDivisionError
        if self._owner.fail == "row":
            book.get(COUNTERS, cid("not loaded"))
        if self._owner.fail == "save":
            book.insert(COUNTERS, replace(counter("x"), wake_seq="no number"))  # type: ignore[arg-type]

    def closed(self, committed: bool | None) -> None:
        self._owner.ended.append(committed)


async def test_a_finalizer_writes_in_the_transaction_of_its_group(open_database: Opener) -> None:
    dispatch = Dispatch()
    database = await open_database(finalizers=[dispatch], lanes=1)
    await database.committer.submit(Bump("a", "1"))
    await database.committer.submit(Create("b", key("k")))
    assert dispatch.ended == [True]
    assert await value(database, "dispatch") == 1


@pytest.mark.parametrize(("fail", "ended"), [("bug", True), ("row", True), ("save", False)])
async def test_a_finalizer_that_fails_leaves_its_group_alone(
    open_database: Opener, fail: str, ended: bool
) -> None:
    dispatch = Dispatch(fail=fail)
    database = await open_database(finalizers=[dispatch], lanes=1)
    assert await database.committer.submit(Bump("a", "1")) == 1
    assert await value(database, "dispatch") is None
    assert dispatch.ended == [ended]


async def test_a_finalizer_is_told_when_its_writes_may_or_may_not_be_there(open_database: Opener) -> None:
    script = Script()
    script.before.append(unknown())
    dispatch = Dispatch()
    database = await open_database(finalizers=[dispatch], lanes=1, faults=script, retries=0)
    assert await database.committer.submit(Bump("a", "1")) == 1
    assert dispatch.ended == [None]


async def test_a_finalizer_that_cannot_open_fails_its_group_and_not_the_lane(open_database: Opener) -> None:
    class Broken(Dispatch):
        def open(self, _commands: Sequence[Any]) -> DispatchRun | None:
            self.runs += 1
            if self.runs == 1:
                raise ZeroDivisionError
            return None

    database = await open_database(finalizers=[Broken()], lanes=1)
    with pytest.raises(Internal):
        await database.committer.submit(Bump("a", "1"))
    assert await database.committer.submit(Bump("a", "1")) == 1


def test_seeds_differ_and_histograms_count() -> None:
    assert new_seed(SystemClock()) != new_seed(SystemClock())
    histogram = Histogram((10, 20))
    for observed in (1, 10, 11, 99):
        histogram.observe(observed)
    assert (histogram.counts, histogram.total, histogram.observations) == ([2, 1, 1], 121, 4)
    metrics = StorageMetrics()
    assert set(metrics.phases) >= {"wait", "commit"}


async def test_an_error_of_a_statement_never_tells_what_was_sent_with_it(database_url: str) -> None:
    migrate(database_url)
    async with Database(database_url, kinds=KINDS) as database:
        with pytest.raises(DBAPIError) as failed:
            await database.read(
                lambda conn: conn.execute(
                    text("SELECT no_such FROM queues WHERE name = :name"), {"name": "a secret"}
                )
            )
        record = logging.makeLogRecord(
            {"msg": "failed", "exc_info": (type(failed.value), failed.value, None)}
        )
        told = JsonFormatter().format(record)
        assert "no_such" in told
        assert "a secret" not in told
