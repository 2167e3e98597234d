"""Statements on their way to the database: what is written arrives as it was meant, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from orbit_server.storage.dialects import is_sqlite
from orbit_server.storage.faults import LostRow
from orbit_server.storage.mysql_wire import literal
from orbit_server.storage.pipe import QUEUED_MAX, piped, piping
from tests.storage.ledger import COUNTERS, counter

Opener = Callable[..., Any]

HOSTILE = (
    "it's",
    "back\\slash",
    "\\' OR 1=1; DROP TABLE queues; --",
    'double "quotes" and `ticks`',
    "per%cent %s %(name)s",
    "a; SELECT 1",
    "line\nfeed\r\ttab \x1a",
    "ünïcode 名前 🙂",
    "/* comment */ # -- ",
    "\\",
    "'",
    "''",
)


@pytest.mark.parametrize("place", range(len(HOSTILE)))
async def test_texts_arrive_as_they_were_given(open_database: Opener, place: int) -> None:
    database = await open_database()

    def act(conn: Connection) -> list[str]:
        mark = "?" if is_sqlite(conn) else "%s"
        with piping(conn) as pipe:
            reply = pipe.ask(f"SELECT {mark}, {mark}", (HOSTILE[place], place))
            pipe.flush()
        return [row[0] for row in reply.rows]

    assert await database.write(act) == [HOSTILE[place]]


async def test_what_was_written_is_there_for_the_next_question(open_database: Opener) -> None:
    database = await open_database()
    row = counter("a", 3)

    def act(conn: Connection) -> Any:
        with piping(conn):
            COUNTERS.save(conn, [row], ())
            COUNTERS.save(conn, (), [(row, replace(row, wake_seq=4))])
            return COUNTERS.load(conn, [row.id])

    assert (await database.write(act))[row.id].wake_seq == 4


async def test_a_statement_of_core_does_not_overtake_those_that_wait(open_database: Opener) -> None:
    database = await open_database()
    row = counter("a", 3)

    def act(conn: Connection) -> Any:
        with piping(conn):
            COUNTERS.save(conn, [row], ())
            return conn.execute(text("SELECT wake_seq FROM queues")).scalars().all()

    assert await database.write(act) == [3]


async def test_many_answers_come_in_the_order_of_the_questions(open_database: Opener) -> None:
    database = await open_database()

    def act(conn: Connection) -> list[Any]:
        with piping(conn) as pipe:
            replies = [pipe.ask(f"SELECT {n}, '{'x' * n}'", ()) for n in range(300)]
            pipe.flush()
        return [tuple(reply.rows[0]) for reply in replies]

    assert await database.write(act) == [(n, "x" * n) for n in range(300)]


async def test_long_texts_and_nothing_at_all_come_back_whole(open_database: Opener) -> None:
    """Lengths around those at which the protocol writes them in more bytes; beyond them packets are split."""
    database = await open_database()
    lengths = (0, 1, 250, 251, 252, 65_535, 65_536, 300_000)

    def act(conn: Connection) -> list[Any]:
        columns = ", ".join(f"'{'y' * length}'" for length in lengths)
        with piping(conn) as pipe:
            reply = pipe.ask(f"SELECT {columns}, NULL", ())
            pipe.flush()
        return list(reply.rows[0])

    assert await database.write(act) == [*("y" * length for length in lengths), None]


async def test_a_text_of_more_than_a_packet_comes_back_whole(open_database: Opener) -> None:
    database = await open_database()
    size = (1 << 24) + 5  # a packet holds one byte less than 16 MiB

    def act(conn: Connection) -> int:
        question = "SELECT hex(zeroblob(?))" if is_sqlite(conn) else "SELECT REPEAT('00', %s)"
        with piping(conn) as pipe:
            pipe.write("SELECT 1" if is_sqlite(conn) else "SET max_statement_time = 0", ())
            reply = pipe.ask(question, (size // 2 - (0 if is_sqlite(conn) else 1_000_000),))
            pipe.flush()
        return len(reply.rows[0][0])

    assert await database.write(act) > 10_000_000


async def test_more_than_the_queue_holds_is_sent_on_the_way(open_database: Opener) -> None:
    database = await open_database()
    long = "z" * (QUEUED_MAX // 3)

    def act(conn: Connection) -> list[int]:
        mark = "?" if is_sqlite(conn) else "%s"
        with piping(conn) as pipe:
            replies = [pipe.ask(f"SELECT LENGTH({mark})", (long,)) for _ in range(8)]
            sent_early = replies[0].rows
            pipe.flush()
        assert sent_early
        return [reply.rows[0][0] for reply in replies]

    assert await database.write(act) == [len(long)] * 8


async def test_the_statement_that_failed_is_named_and_none_after_it_is_run(open_database: Opener) -> None:
    database = await open_database()
    row, other = counter("a"), counter("b")

    def write(conn: Connection) -> None:
        with piping(conn):
            COUNTERS.save(conn, [row], ())
            COUNTERS.save(conn, [row], ())
            COUNTERS.save(conn, [other], ())

    def act(conn: Connection) -> tuple[str, int]:
        with pytest.raises(IntegrityError) as failed:
            write(conn)
        count = conn.execute(text("SELECT COUNT(*) FROM queues")).scalar_one()
        return str(failed.value.statement), count

    statement, count = await database.write(act)
    assert statement.startswith("INSERT INTO queues")
    assert count == 1


async def test_what_still_waits_when_a_transaction_fails_is_never_sent(open_database: Opener) -> None:
    database = await open_database(lanes=1, background_lanes=1)

    def fail(conn: Connection) -> None:
        with piping(conn):
            COUNTERS.save(conn, [counter("a")], ())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(fail)
    count = await database.write(lambda conn: conn.execute(text("SELECT COUNT(*) FROM queues")).scalar_one())
    assert count == 0


async def test_a_write_that_misses_a_row_is_told_when_it_is_sent(open_database: Opener) -> None:
    database = await open_database()
    row = counter("absent")

    def act(conn: Connection) -> None:
        with pytest.raises(LostRow, match="1 rows to change, 0 found"), piping(conn):
            COUNTERS.save(conn, (), [(row, replace(row, wake_seq=9))])

    await database.write(act)


async def test_a_wrong_statement_between_others_leaves_a_connection_that_works(open_database: Opener) -> None:
    database = await open_database()

    def ask(conn: Connection) -> None:
        with piping(conn) as pipe:
            pipe.ask("SELECT 1", ())
            pipe.ask("SELECT nothing FROM nowhere", ())
            pipe.ask("SELECT 2", ())

    def act(conn: Connection) -> int:
        with pytest.raises(DBAPIError):
            ask(conn)
        with piped(conn) as pipe:
            reply = pipe.ask("SELECT 7", ())
            pipe.flush()
        return int(reply.rows[0][0])

    assert await database.write(act) == 7


async def test_a_read_that_takes_too_long_costs_its_connection_and_no_other(open_database: Opener) -> None:
    """A connection whose answer was not read to its end is never used again."""
    database = await open_database(deadline_ms=1_000)

    def slow(conn: Connection) -> Any:
        if is_sqlite(conn):
            return conn.exec_driver_sql("SELECT 5").scalar_one()
        conn.exec_driver_sql("SET max_statement_time = 0")
        return conn.exec_driver_sql("SELECT SLEEP(3)").scalar_one()

    await asyncio.gather(database.read(slow), return_exceptions=True)
    numbers = await asyncio.gather(
        *[
            database.read(lambda conn, n=n: conn.exec_driver_sql(f"SELECT {n}").scalar_one())
            for n in range(20)
        ]
    )
    assert numbers == list(range(20))


def test_a_value_of_an_unknown_sort_is_refused() -> None:
    with pytest.raises(TypeError, match="float is no value of a column"):
        literal(1.5)
    assert (literal(True), literal(None), literal(-3), literal("a'b\\")) == ("1", "NULL", "-3", "'a\\'b\\\\'")
