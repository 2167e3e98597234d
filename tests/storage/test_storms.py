from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from orbit_server.storage.database import Database
from orbit_server.storage.settings import StorageSettings
from tests.databases import MariaDb
from tests.storage.ledger import KINDS, Bump, Create, cid, key
from tests.storage.test_committer import rows, value
from tests.storage.trouble import mysql_error, sqlite_error, unknown

Opener = Callable[..., Any]


class Storm:
    """Faults at random, the same for the same seed."""

    def __init__(self, seed: int, *, sqlite: bool) -> None:
        self._random = random.Random(seed)
        self._sqlite = sqlite
        self.raised = 0

    def statement(self, _sql: str) -> None:
        codes = [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL] if self._sqlite else [1213, 1205, 1020, 2013, 1047]
        code = self._random.choice(codes)
        self._maybe(0.03, sqlite_error(code) if self._sqlite else mysql_error(code))

    def before_commit(self) -> None:
        self._maybe(0.1, unknown())

    def after_commit(self) -> None:
        self._maybe(0.1, unknown())

    def _maybe(self, share: float, error: BaseException) -> None:
        if self._random.random() < share:
            self.raised += 1
            raise error


@pytest.mark.parametrize("seed", range(4))
async def test_in_a_storm_of_faults_nothing_is_lost_and_nothing_is_done_twice(
    open_database: Opener, migrated_url: str, seed: int
) -> None:
    storm = Storm(seed, sqlite=migrated_url.startswith("sqlite"))
    database = await open_database(faults=storm, retries=50, budget_ms=100_000, group_max=8, seed=seed)
    names = [f"c{place}" for place in range(5)]
    commands: list[Any] = [Bump(name, str(place)) for name in names for place in range(12)]
    # Every request comes three times, as from a client that heard no answer.
    commands += [Create(f"n{place}", key(f"n{place}")) for place in range(20)] * 3
    random.Random(seed).shuffle(commands)
    answers = await asyncio.gather(*[database.committer.submit(command) for command in commands])
    created = {
        command.name: answer
        for command, answer in zip(commands, answers, strict=True)
        if command.key is not None
    }
    assert created == {f"n{place}": {"id": cid(f"n{place}"), "name": f"n{place}"} for place in range(20)}
    assert [await value(database, name) for name in names] == [12] * 5
    assert await rows(database, "payloads") == 60
    assert await rows(database, "queues") == 25
    assert await rows(database, "idempotency") == 20
    assert storm.raised > 0
    assert database.metrics.retries.total() > 0


async def test_when_its_connections_are_killed_a_server_loses_nothing_that_it_acknowledged(
    mariadb: MariaDb, migrated_mariadb_url: str
) -> None:
    name = urlsplit(migrated_mariadb_url).path.lstrip("/")
    settings = replace(StorageSettings(), retries=50, group_max=4, seed=1)

    def kill_all() -> None:
        found = mariadb.execute(
            "SELECT id FROM information_schema.processlist WHERE db = %s AND user = 'orbit'", name
        )
        for (session,) in found:
            mariadb._end_session(session)

    async with Database(migrated_mariadb_url, kinds=KINDS, settings=settings) as database:
        waiting = [database.committer.post(Bump(f"c{place % 4}", str(place))) for place in range(400)]
        for _ in range(6):
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            waiting = [future for future in waiting if not future.done()]
            await asyncio.to_thread(kill_all)
            if not waiting:
                break
        await asyncio.gather(*waiting)
        assert [await value(database, f"c{place}") for place in range(4)] == [100] * 4
        assert await rows(database, "payloads") == 400
        assert database.metrics.retries.total() > 0
