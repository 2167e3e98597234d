from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError, OperationalError

from orbit_sdk.errors import FailedPrecondition, Internal, Unavailable
from orbit_server.storage import tables
from orbit_server.storage.database import Database
from orbit_server.storage.dialects import classify_mysql, classify_sqlite, code_name
from orbit_server.storage.faults import Fault
from orbit_server.storage.kinds import LockOrder, RowKind
from orbit_server.storage.settings import StorageSettings
from tests.storage.ledger import KINDS, NOTES, Bump, Counter, Create, cid, key
from tests.storage.test_committer import rows, value
from tests.storage.trouble import Script, mysql_error, sqlite_error, unknown

Opener = Callable[..., Any]


def transient(database: Database) -> BaseException:
    """What the database at hand raises when trying again helps."""
    sqlite = type(database.committer._requests[0].lane).__name__ == "SqliteLane"
    return sqlite_error(sqlite3.SQLITE_BUSY) if sqlite else mysql_error(1213)


async def test_a_fault_at_any_statement_repeats_the_group_from_its_beginning(open_database: Opener) -> None:
    script = Script()
    database = await open_database(faults=script, lanes=1, background_lanes=1)
    await database.committer.submit(Bump("a", "0"))
    count = len(script.statements)
    for place in range(1, count + 1):
        script.statements.clear()
        script.at_statement = {place: transient(database)}
        assert await database.committer.submit(Bump("a", str(place))) == place + 1
        assert script.at_statement == {}
    assert await value(database, "a") == count + 1
    assert await rows(database, "payloads") == count + 1


@pytest.mark.parametrize("code", [1205, 1213, 1020, 2013, 2006, 1047])
async def test_every_transient_code_of_mysql_is_survived_before_the_commit(
    migrated_mariadb_url: str, code: int
) -> None:
    script = Script()
    script.at_text = [("INSERT INTO payloads", mysql_error(code))]
    settings = StorageSettings(faults=script, lanes=1)
    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        assert await database.committer.submit(Bump("a", "1")) == 1
        assert await value(database, "a") == 1
        assert database.metrics.retries == {str(code): 1}


@pytest.mark.parametrize("code", [1213, 1205, 1020, 9007])
async def test_a_definite_failure_at_commit_is_repeated_as_not_applied(
    migrated_mariadb_url: str, code: int
) -> None:
    script = Script()
    script.before.append(mysql_error(code))
    settings = StorageSettings(faults=script, lanes=1)
    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        assert await database.committer.submit(Bump("a", "1")) == 1
        assert database.metrics.unknown_commits == 0


@pytest.mark.parametrize("applied", [True, False])
async def test_an_unknown_commit_gives_the_same_answer_and_one_row_either_way(
    open_database: Opener, applied: bool
) -> None:
    script = Script()
    (script.after if applied else script.before).append(unknown())
    database = await open_database(faults=script, lanes=1)
    answered = await database.committer.post(Create("a", key("k")))
    assert answered.answer == {"id": cid("a"), "name": "a"}
    assert answered.replayed is applied
    assert await rows(database, "queues") == 1
    metrics = database.metrics
    assert (metrics.unknown_commits, metrics.unknown_applied, metrics.unknown_lost) == (
        1,
        int(applied),
        int(not applied),
    )


@pytest.mark.parametrize("applied", [True, False])
async def test_a_connection_lost_at_commit_is_an_unknown_outcome(
    migrated_mariadb_url: str, applied: bool
) -> None:
    script = Script()
    (script.after if applied else script.before).append(mysql_error(2013))
    settings = StorageSettings(faults=script, lanes=1)
    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        assert await database.committer.submit(Bump("a", "1")) == 1
        assert await value(database, "a") == 1
        assert database.metrics.unknown_commits == 1


async def test_after_an_unknown_commit_a_refusal_is_given_only_once_its_key_could_be_inserted(
    open_database: Opener,
) -> None:
    script = Script()
    script.before.append(unknown())
    refusing = iter([False, True])
    database = await open_database(faults=script, lanes=1)
    with pytest.raises(FailedPrecondition):
        await database.committer.submit(Create("a", key("k"), lambda: next(refusing)))
    probes = [text for text in script.statements if "idempotency" in text and not text.startswith("SELECT")]
    assert [text.split()[0] for text in probes[-2:]] == ["INSERT", "DELETE"]
    assert await rows(database, "idempotency") == 0
    assert script.commits == 1, "the proof itself is committed"


async def test_after_an_unknown_commit_a_failing_command_proves_its_key_absent_too(
    open_database: Opener,
) -> None:
    script = Script()
    script.before.append(unknown())
    divisors = iter([1, 0])
    database = await open_database(faults=script, lanes=1)
    with pytest.raises(Internal):
        await database.committer.submit(Create("a", key("k"), lambda: 1 // next(divisors) > 1))
    assert any(text.startswith("DELETE FROM idempotency") for text in script.statements)


async def test_a_refused_twin_after_an_unknown_commit_gives_way_to_the_accepted_one(
    open_database: Opener,
) -> None:
    script = Script()
    script.before.append(unknown())
    refusing = iter([False, True, False])
    database = await open_database(faults=script, lanes=1)
    first, second = await asyncio.gather(
        database.committer.submit(Create("a", key("k"), lambda: next(refusing))),
        database.committer.submit(Create("a", key("k"), lambda: next(refusing))),
        return_exceptions=True,
    )
    assert isinstance(first, FailedPrecondition)
    assert second == {"id": cid("a"), "name": "a"}
    assert await rows(database, "idempotency") == 1


async def test_a_fault_that_stays_ends_in_unavailable_and_nothing_is_stored(open_database: Opener) -> None:
    script = Script()
    database = await open_database(faults=script, lanes=1, retries=1)
    script.always_at_text = [("INSERT INTO payloads", transient(database))]
    results = await asyncio.gather(
        *[database.committer.submit(Bump("a", str(place))) for place in range(3)], return_exceptions=True
    )
    assert [type(result) for result in results] == [Unavailable] * 3
    script.always_at_text = []
    assert await value(database, "a") is None
    assert await database.committer.submit(Bump("a", "1")) == 1


async def test_an_outcome_that_stays_unknown_says_so(open_database: Opener) -> None:
    script = Script()
    script.before.extend([unknown(), unknown()])
    database = await open_database(faults=script, lanes=1, retries=1)
    with pytest.raises(Unavailable, match="same key"):
        await database.committer.submit(Create("a", key("k")))


async def test_when_the_budget_is_spent_nothing_more_is_tried(open_database: Opener) -> None:
    script = Script()
    database = await open_database(faults=script, lanes=1, budget_ms=0)
    script.at_text = [("payloads", transient(database))]
    results = await asyncio.gather(
        *[database.committer.submit(Bump("a", str(place))) for place in range(2)], return_exceptions=True
    )
    assert [type(result) for result in results] == [Unavailable] * 2


class Fragile(RowKind[Counter]):
    """Counters of which one row makes every transaction fail that saves it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("counters", LockOrder.QUEUES, tables.queues, Counter, touchable=True)
        self._error = error
        self.saves: list[int] = []

    def save(
        self, conn: Connection, inserted: Sequence[Counter], changed: Sequence[tuple[Counter, Counter]]
    ) -> None:
        self.saves.append(len(inserted))
        if any(row.id == cid("guilty") for row in inserted):
            raise self._error
        super().save(conn, inserted, changed)


async def test_the_command_whose_fault_stays_is_found_by_halving_and_the_others_are_stored(
    open_database: Opener,
) -> None:
    plain = await open_database()
    error = transient(plain)
    await plain.close()
    kind = Fragile(error)
    database = await open_database(kinds=[kind, NOTES], lanes=1, retries=1)
    names = ["c0", "c1", "c2", "guilty", "c4", "c5"]
    results = await asyncio.gather(
        *[database.committer.submit(Bump(name, "1")) for name in names], return_exceptions=True
    )
    assert isinstance(results.pop(3), Unavailable)
    assert results == [1] * 5
    assert await value(database, "guilty") is None
    assert kind.saves[:3] == [6, 6, 3], "the whole group twice, then its halves"


async def test_maintenance_is_repeated_and_its_own_errors_come_through(open_database: Opener) -> None:
    script = Script()
    database = await open_database(faults=script, retries=2)
    script.at_text = [("SELECT 41", transient(database))]
    assert await database.write(lambda conn: conn.exec_driver_sql("SELECT 41 + 1").scalar_one()) == 42
    with pytest.raises(ZeroDivisionError):
        await database.write(lambda _: 1 // 0)
    script.always_at_text = [("SELECT 43", transient(database))]
    with pytest.raises(Unavailable):
        await database.write(lambda conn: conn.exec_driver_sql("SELECT 43"))


async def test_an_io_error_at_commit_ends_the_process_and_refuses_everything(
    migrated_sqlite_url: str,
) -> None:
    script = Script()
    script.before.append(sqlite_error(sqlite3.SQLITE_IOERR))
    ended: list[str] = []
    settings = StorageSettings(faults=script, on_fatal=ended.append)
    async with Database(migrated_sqlite_url, kinds=KINDS, settings=settings) as database:
        first = database.committer.post(Bump("a", "1"))
        await asyncio.sleep(0)
        second = database.committer.post(Bump("a", "2"))
        with pytest.raises(Unavailable, match="same key"):
            await first
        with pytest.raises(Unavailable):
            await second
        with pytest.raises(Unavailable):
            await database.committer.submit(Bump("a", "3"))
        with pytest.raises(Unavailable):
            await database.write(lambda _: None)
    assert len(ended) == 1


@pytest.mark.parametrize("replaced", [False, True])
async def test_what_is_written_into_a_removed_file_is_never_acknowledged(
    migrated_sqlite_url: str, replaced: bool
) -> None:
    ended: list[str] = []
    path = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    async with Database(
        migrated_sqlite_url, kinds=KINDS, settings=StorageSettings(on_fatal=ended.append)
    ) as database:
        assert await database.committer.submit(Bump("a", "1")) == 1
        moved = path.rename(path.with_name("moved.db"))
        if replaced:
            path.write_bytes(moved.read_bytes())
        with pytest.raises(Unavailable):
            await database.committer.submit(Bump("a", "2"))
    assert len(ended) == 1


async def test_an_io_error_at_the_commit_of_maintenance_is_as_final(migrated_sqlite_url: str) -> None:
    script = Script()
    script.before.append(sqlite_error(sqlite3.SQLITE_CORRUPT))
    async with Database(migrated_sqlite_url, settings=StorageSettings(faults=script)) as database:
        with pytest.raises(Unavailable):
            await database.write(lambda _: None)


async def test_equal_requests_to_two_processes_make_one_row_and_get_equal_answers(
    migrated_mariadb_url: str,
) -> None:
    settings = StorageSettings(lanes=4)
    async with (
        Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as one,
        Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as two,
    ):
        for place in range(20):
            name = f"race {place}"
            answers = await asyncio.gather(
                *[own.committer.submit(Create(name, key(name))) for own in (one, two) for _ in range(3)]
            )
            assert answers == [{"id": cid(name), "name": name}] * 6
        assert await rows(one, "queues") == 20


def wrapped(error: Exception, kind: type = OperationalError) -> Exception:
    return kind("statement", (), error)


@pytest.mark.parametrize(
    ("error", "at_commit", "fault"),
    [
        (mysql_error(1213), False, Fault.TRANSIENT),
        (mysql_error(1213), True, Fault.TRANSIENT),
        (mysql_error(2013), False, Fault.TRANSIENT),
        (mysql_error(2013), True, Fault.UNKNOWN),
        (mysql_error(1180), True, Fault.UNKNOWN),
        (TimeoutError(), False, Fault.TRANSIENT),
        (TimeoutError(), True, Fault.UNKNOWN),
        (mysql_error(1062), False, Fault.DUPLICATE),
        (mysql_error(1062), True, Fault.UNKNOWN),
        (mysql_error(1064), False, Fault.BROKEN),
        (KeyError("bug"), False, Fault.BROKEN),
        (OperationalError("s", (), mysql_error(9999), connection_invalidated=True), False, Fault.TRANSIENT),
    ],
)
def test_errors_of_mysql_mean(error: Exception, at_commit: bool, fault: Fault) -> None:
    assert classify_mysql(error, at_commit=at_commit) is fault


def constraint(code: int) -> Exception:
    error = sqlite3.IntegrityError("constraint")
    error.sqlite_errorcode = code
    return wrapped(error, IntegrityError)


@pytest.mark.parametrize(
    ("error", "at_commit", "fault"),
    [
        (sqlite_error(sqlite3.SQLITE_BUSY), False, Fault.TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT), False, Fault.TRANSIENT),
        (wrapped(sqlite_error(sqlite3.SQLITE_FULL)), True, Fault.TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_IOERR_WRITE), False, Fault.TRANSIENT),
        (sqlite_error(sqlite3.SQLITE_IOERR_FSYNC), True, Fault.FATAL),
        (constraint(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY), False, Fault.DUPLICATE),
        (constraint(sqlite3.SQLITE_CONSTRAINT_NOTNULL), False, Fault.BROKEN),
        (sqlite3.ProgrammingError("no code"), False, Fault.BROKEN),
    ],
)
def test_errors_of_sqlite_mean(error: Exception, at_commit: bool, fault: Fault) -> None:
    assert classify_sqlite(error, at_commit=at_commit) is fault


def test_metrics_call_an_error_by_its_code_or_its_name() -> None:
    assert code_name(mysql_error(1213)) == "1213"
    assert code_name(ConnectionError()) == "ConnectionError"
