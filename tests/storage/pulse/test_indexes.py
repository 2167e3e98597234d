"""Work is found through one index that serves condition and order alike."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from orbit_server.pulse.dispatch.candidates import _QUERY
from tests.storage.pulse.house import House

_SWEEPS = ("due_at", "deadline_at", "lease_until")


def plan(conn: Connection, query: str, values: dict[str, Any]) -> str:
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    return " ".join(str(row) for row in conn.execute(text(f"{word} {query}"), values))


async def test_candidates_come_from_the_ready_index_in_its_own_order(house: House) -> None:
    for number in range(40):
        await house.submit(priority=number % 10, handler=f"h{number % 4}")
    values = {"queue_id": "0" * 32, "state": "READY", "handler": "h1", "version": 1, "most": 5}

    def explain(conn: Connection) -> str:
        query = str(_QUERY).replace("LIMIT :param_1", "LIMIT :most")
        return plan(conn, query, values | {"blocked_1": 0})

    found = await house.database.read(explain)
    assert "ix_tasks_ready" in found
    assert "TEMP B-TREE" not in found
    assert "filesort" not in found


async def test_sweeps_read_only_what_is_due(house: House) -> None:
    for _ in range(20):
        await house.submit(delay_ms=60_000, total_timeout_ms=90_000)
    for column in _SWEEPS:
        query = f"SELECT {column}, id FROM tasks WHERE {column} <= :at ORDER BY {column}, id LIMIT 5"
        found = await house.database.read(partial(plan, query=query, values={"at": 1}))
        assert f"ix_tasks_{column.split('_')[0]}" in found
        assert "TEMP B-TREE" not in found
        assert "filesort" not in found


async def test_the_next_of_a_key_is_found_without_reading_those_behind(house: House) -> None:
    for number in range(60):
        await house.submit(concurrency_key=f"k:{number % 2}", priority=number % 10)
    waiters = (
        "SELECT id FROM key_places WHERE key_id = :key AND admitted_at IS NULL"
        " ORDER BY priority DESC, virtual_start, id LIMIT 5"
    )
    due = "SELECT admit_at, id FROM concurrency_keys WHERE admit_at <= :at ORDER BY admit_at, id LIMIT 5"
    for query, values, index in (
        (waiters, {"key": "0" * 32}, "ix_key_places_order"),
        (due, {"at": 1}, "ix_concurrency_keys_admit"),
    ):
        found = await house.database.read(partial(plan, query=query, values=values))
        assert index in found
        assert "TEMP B-TREE" not in found
        assert "filesort" not in found


async def test_every_queue_is_found_with_one_seek_each(house: House) -> None:
    for number in range(30):
        await house.submit(queue=f"q{number % 3}")
    query = "SELECT queue_id FROM tasks WHERE queue_id > :last ORDER BY queue_id LIMIT 1"
    found = await house.database.read(partial(plan, query=query, values={"last": ""}))
    assert "ix_tasks_ready" in found
    assert "filesort" not in found
