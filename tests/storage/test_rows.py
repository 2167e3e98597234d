from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from sqlalchemy import Connection

from orbit_server.storage import tables
from orbit_server.storage.dialects import is_sqlite
from orbit_server.storage.faults import LostRow
from orbit_server.storage.kinds import LockOrder, RowKind
from orbit_server.storage.row_sql import CHARS_MAX, IN_MAX, ROWS_MAX, chunked, padded
from tests.storage.ledger import COUNTERS, NOTES, Counter, Mood, cid, counter, note

Opener = Callable[..., Any]


async def test_rows_come_back_as_they_were_saved_flags_and_enums_included(open_database: Opener) -> None:
    database = await open_database()
    row = replace(counter("a", 7), paused=True, name=Mood.BUSY)

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, [row], ())
        return COUNTERS.load(conn, [cid("a"), cid("absent")])

    loaded = await database.write(act)
    assert loaded == {row.id: row}
    assert loaded[row.id].paused is True
    assert loaded[row.id].name is Mood.BUSY


async def test_more_rows_than_a_statement_takes_are_saved_and_loaded(open_database: Opener) -> None:
    database = await open_database()
    many = [counter(str(place), place) for place in range(ROWS_MAX + 77)]
    changed = [(row, replace(row, wake_seq=row.wake_seq + 1)) for row in many]

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, many, ())
        COUNTERS.touch(conn, [row.id for row in many])
        COUNTERS.save(conn, (), changed)
        return COUNTERS.load(conn, [row.id for row in many])

    loaded = await database.write(act)
    assert loaded == {after.id: after for _, after in changed}


async def test_only_changed_columns_are_written(open_database: Opener) -> None:
    database = await open_database()
    row = counter("a")

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, [row], ())
        conn.exec_driver_sql("UPDATE queues SET virtual_time = 42")
        COUNTERS.save(conn, (), [(row, replace(row, wake_seq=5)), (row, row)])
        return COUNTERS.load(conn, [row.id])

    assert (await database.write(act))[row.id] == replace(row, wake_seq=5, virtual_time=42)


async def test_many_different_sets_of_changes_become_one_statement(open_database: Opener) -> None:
    database = await open_database()
    before = [counter(str(place)) for place in range(6)]
    changes: list[dict[str, Any]] = [
        {"wake_seq": 1},
        {"virtual_time": 2},
        {"revision": 3},
        {"last": 4},
        {"paused": True},
        {"name": Mood.BUSY, "wake_seq": 6},
    ]
    pairs = [(row, replace(row, **change)) for row, change in zip(before, changes, strict=True)]

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, before, ())
        COUNTERS.save(conn, (), pairs)
        return COUNTERS.load(conn, [row.id for row in before])

    assert await database.write(act) == {after.id: after for _, after in pairs}


async def test_changing_a_row_that_is_gone_is_noticed(open_database: Opener) -> None:
    database = await open_database(retries=0)
    row = counter("a")

    def act(conn: Connection) -> None:
        with pytest.raises(LostRow):
            COUNTERS.save(conn, (), [(row, replace(row, wake_seq=1))])

    await database.write(act)


async def test_members_are_loaded_by_owner_and_only_live_ones_where_asked(open_database: Opener) -> None:
    @dataclass(frozen=True, slots=True)
    class Flagged:
        id: str
        namespace_id: str
        name: str
        paused: bool
        wake_seq: int
        virtual_time: int
        revision: int
        last: int

    live = RowKind(
        "live", LockOrder.COLD, tables.queues, Flagged, owner="namespace_id", owner_kind="x", live="paused"
    )
    database = await open_database()
    resting, running = counter("resting"), replace(counter("running"), paused=True)

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, [resting, running], ())
        NOTES.save(conn, [note("a", "1"), note("a", "2"), note("b", "1")], ())
        by_owner = NOTES.load(conn, [cid("a"), cid("c")])
        return live.load(conn, [running.namespace_id]), by_owner

    found, by_owner = await database.write(act)
    assert [row.id for row in found[running.namespace_id]] == [running.id]
    assert set(by_owner) == {cid("a")}
    assert len(by_owner[cid("a")]) == 2


async def test_the_joined_update_finds_its_rows_by_primary_key(migrated_mariadb_url: str) -> None:
    """A key of another character set would be compared row by row."""
    from orbit_server.storage.database import Database

    many = [counter(str(place)) for place in range(200)]

    def act(conn: Connection) -> Any:
        COUNTERS.save(conn, many, ())
        conn.exec_driver_sql("ANALYZE TABLE queues").all()
        text = COUNTERS._sql._join_text((4,), 2)
        return conn.exec_driver_sql(f"EXPLAIN {text}", (many[0].id, 1, many[1].id, 2)).mappings().all()

    async with Database(migrated_mariadb_url) as database:
        plan = {row["table"]: row for row in await database.write(act)}
    assert plan["t"]["type"] == "eq_ref"
    assert plan["t"]["key"] == "PRIMARY"


async def test_texts_of_every_plane_survive(open_database: Opener) -> None:
    database = await open_database()
    text = "汉字 🚀 'quote' \"double\" back\\slash %s ? : \n\u0000".replace("\u0000", "")
    own = replace(note("a", "1"), body=text)

    def act(conn: Connection) -> Any:
        NOTES.save(conn, [own], ())
        NOTES.save(conn, (), [(own, replace(own, body=text + text))])
        return NOTES.load(conn, [own.instance_id])

    ((row,),) = (await database.write(act)).values()
    assert row.body == text + text


def test_a_kind_is_checked_against_its_table() -> None:
    @dataclass(frozen=True, slots=True)
    class Wrong:
        id: str
        colour: str

    with pytest.raises(ValueError, match="colour"):
        RowKind("wrong", LockOrder.COLD, tables.queues, Wrong)
    with pytest.raises(ValueError, match="come together"):
        RowKind("half", LockOrder.COLD, tables.payloads, type(note("a", "b")), owner="instance_id")
    with pytest.raises(TypeError):
        COUNTERS.owner_of(counter("a"))


def test_rows_without_last_need_no_stamp() -> None:
    own = note("a", "1")
    assert NOTES.last_of(own) == 0
    assert NOTES.stamped(own, 5) is own
    assert COUNTERS.stamped(counter("a"), 5) == replace(counter("a"), last=5)
    assert isinstance(COUNTERS.stamped(counter("a"), 5), Counter)


def test_lists_of_ids_have_few_lengths_and_keep_every_id() -> None:
    for count in (0, 1, 2, 3, 5, 64, IN_MAX, IN_MAX + 1, 1000):
        ids = [str(place) for place in range(count)]
        chunks = list(padded(ids))
        assert {row_id for chunk in chunks for row_id in chunk} == set(ids)
        assert all(len(chunk) & (len(chunk) - 1) == 0 and len(chunk) <= IN_MAX for chunk in chunks)


def test_pieces_of_rows_keep_order_and_stay_below_the_bound() -> None:
    large = [("a" * (CHARS_MAX // 2), 1), ("b" * (CHARS_MAX * 2), None), ("c", 2), ("d", 3)]
    assert [len(piece) for piece in chunked(large)] == [1, 1, 2]
    assert list(chunked([])) == []


async def test_a_connection_knows_its_dialect(open_database: Opener, migrated_url: str) -> None:
    database = await open_database()
    assert await database.read(is_sqlite) is migrated_url.startswith("sqlite")
