from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done
from orbit_server.storage.database import Database
from orbit_server.storage.settings import StorageSettings
from tests.storage.ledger import COUNTERS, KINDS, NOTES, Act, Bump, Create, cid, key, note
from tests.storage.test_committer import rows, value

ROUNDS = 25


@pytest.fixture
async def two(migrated_mariadb_url: str) -> AsyncIterator[tuple[Database, Database]]:
    """Two servers over one MariaDB, as two processes would be: they share nothing but the database."""
    settings = StorageSettings(lanes=2)
    async with (
        Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as one,
        Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as other,
    ):
        yield one, other


async def test_writers_of_one_row_on_two_servers_lose_nothing(two: tuple[Database, Database]) -> None:
    await two[0].committer.submit(Bump("a", "first"))
    await asyncio.gather(*[two[place % 2].committer.submit(Bump("a", str(place))) for place in range(100)])
    assert await value(two[0], "a") == 101
    assert await rows(two[0], "payloads") == 101


async def test_of_two_branches_that_end_at_once_exactly_one_sees_both(two: tuple[Database, Database]) -> None:
    """The join: each arm notes its end and looks for the other's, both under a touch of the owner."""

    def arm(name: str, own: str) -> Act:
        def act(book: Book) -> Done[bool]:
            book.insert(NOTES, note(name, own))
            row = book.get(COUNTERS, cid(name))
            assert row is not None
            ended = {member.body for member in book.members(NOTES, row.id)}
            joined = ended >= {'"left"', '"right"'}
            if joined:
                book.change(COUNTERS, row, replace(row, wake_seq=row.wake_seq + 1))
            return Done(joined)

        return Act(name, act, {"counters": (cid(name),), "notes": (cid(name),)})

    lost = doubled = 0
    for place in range(ROUNDS):
        name = f"join {place}"
        await two[0].committer.submit(Create(name, key(name)))
        joined = await asyncio.gather(
            two[0].committer.submit(arm(name, "left")), two[1].committer.submit(arm(name, "right"))
        )
        lost += sum(joined) == 0
        doubled += sum(joined) == 2
        assert await value(two[1], name) == 1
    assert (lost, doubled) == (0, 0)


async def test_two_servers_that_create_one_row_make_one(two: tuple[Database, Database]) -> None:
    for place in range(ROUNDS):
        name = f"new {place}"
        results = await asyncio.gather(*[own.committer.submit(Bump(name, "same")) for own in two])
        assert results == [1, 1]
    assert await rows(two[0], "queues") == ROUNDS
    assert await rows(two[0], "payloads") == ROUNDS


async def test_deadlocks_between_lanes_cost_time_and_nothing_else(two: tuple[Database, Database]) -> None:
    """Groups take rows of a later kind in whatever order their members were named; the loser runs again."""

    def both(first: str, second: str) -> Act:
        def act(book: Book) -> Done[None]:
            for name in (first, second):
                row = book.get(COUNTERS, cid(name))
                assert row is not None
                book.change(COUNTERS, row, replace(row, wake_seq=row.wake_seq + 1))
            return Done(None)

        return Act(first, act, {"counters": (cid(first), cid(second))})

    names = [f"c{place}" for place in range(6)]
    for name in names:
        await two[0].committer.submit(Create(name, key(name)))
    pairs = [(left, right) for left in names for right in names if left != right]
    await asyncio.gather(
        *[two[place % 2].committer.submit(both(*pair)) for place, pair in enumerate(pairs * 2)]
    )
    assert [await value(two[0], name) for name in names] == [len(pairs) * 2 * 2 // len(names)] * len(names)
