"""Schedules and subscriptions while servers are killed: every instant once, every result until it is heard.

`ORBIT_STORM_SECONDS` sets how long servers are killed (8 by default), `ORBIT_STORM_SCHEDULES` how many
schedules there are, `ORBIT_STORM_RESULTS` how many results are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orbit_sdk.client import ClientSettings, OrbitClient
from orbit_sdk.errors import OrbitError
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.bootstrap import open_database
from orbit_server.settings import Settings
from orbit_server.storage.tables import (
    events,
    schedule_fires,
    schedule_records,
    schedules,
    tasks,
)
from orbit_server.verify import snapshot, violations
from tests.databases import MariaDb
from tests.server import ServerProcess, new_token, until

SECONDS = float(os.environ.get("ORBIT_STORM_SECONDS", "8"))
SCHEDULES = int(os.environ.get("ORBIT_STORM_SCHEDULES", "20"))
RESULTS = int(os.environ.get("ORBIT_STORM_RESULTS", "300"))
SECOND = 1_000_000
ANCHOR = "2026-01-01T00:00:00Z"
SERVERS = 3
PATIENT = ClientSettings(retry_for=120.0, backoff=0.05, max_backoff=0.5)


def spec(every_s: int, **changes: Any) -> dict[str, Any]:
    return {
        "timing": {"kind": "RATE", "every_s": every_s, "anchor": ANCHOR},
        "misfire": {"policy": "SKIP", "after_ms": 3_000},
        "overlap": {"policy": "ALLOW"},
        "target": {"kind": "TASK", "queue": "storm", "handler": "storm.run", "handler_version": 1},
        **changes,
    }


KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"misfire": {"policy": "COALESCE", "after_ms": 3_000}},
    {
        "misfire": {
            "policy": "CATCH_UP",
            "after_ms": 3_000,
            "catch_up": {"window_s": 60, "count": 5, "per_minute": 600},
        }
    },
    {"overlap": {"policy": "SKIP"}},
    {"overlap": {"policy": "QUEUE", "backlog": 3}},
)


class Fleet:
    """Servers over one database; any of them may be killed and started again."""

    def __init__(self, url: str, folder: Path, count: int) -> None:
        token = new_token(url)
        self.url = url
        self.servers = [
            ServerProcess(url, token, folder / f"server-{each}.log", ("--loop-ms", "200"))
            for each in range(count)
        ]

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def stop(self) -> None:
        for server in self.servers:
            with suppress(ProcessLookupError):
                server.kill()

    async def storm(self, seconds: float, chance: random.Random) -> int:
        """Kill one after the other for so long; answers how often."""
        loop = asyncio.get_running_loop()
        end, kills = loop.time() + seconds, 0
        while loop.time() < end:
            victim = chance.choice(self.servers)
            await asyncio.to_thread(victim.kill)
            kills += 1
            await asyncio.to_thread(victim.restart)
            await asyncio.sleep(chance.random())
        return kills


@pytest.fixture
def mariadb_house(tmp_path: Path) -> Iterator[MariaDb]:
    folder = tmp_path / "mariadb"
    folder.mkdir()
    server = MariaDb(folder)
    server.start()
    with ExitStack() as stack:
        stack.callback(server.stop)
        yield server


@asynccontextmanager
async def fleet(url: str, folder: Path, count: int) -> AsyncGenerator[Fleet]:
    found = Fleet(url, folder, count)
    try:
        await asyncio.to_thread(found.start)
        yield found
    finally:
        await asyncio.to_thread(found.stop)


async def account(url: str) -> tuple[list[str], Counter[str], int]:
    """What is wrong with the accounts of all schedules; how fires stand; how many instants there were."""
    async with open_database(Settings(database=url)) as database:
        rows = await database.read(
            lambda conn: (
                conn.execute(select(schedules)).all(),
                conn.execute(select(schedule_fires)).all(),
                conn.execute(select(schedule_records, schedule_records.c.count.label("missed"))).all(),
                set(conn.execute(select(tasks.c.id)).scalars()),
            )
        )
    every, fires, records, made = rows
    wrong: list[str] = []
    states: Counter[str] = Counter(fire.state for fire in fires)
    total = 0
    for schedule in every:
        step = int(schedule.name) * SECOND
        first = (schedule.created_at // step + 1) * step
        expected = range(first, schedule.accounted_to + 1, step)
        total += len(expected)
        found: Counter[int] = Counter()
        merged = {
            (record.first_at, record.last_at) for record in records if record.reason == "MISFIRE_MERGED"
        }
        for fire in fires:
            if fire.schedule_id == schedule.id and (fire.first_at, fire.planned_at) not in merged:
                found[fire.planned_at] += 1
        for record in records:
            if record.schedule_id == schedule.id:
                span = range(record.first_at, record.last_at + 1, step)
                if len(span) != record.missed:
                    wrong.append(f"{schedule.name}: a record counts {record.missed}, its range {len(span)}")
                found.update(span)
        wrong += [f"{schedule.name}: {to_rfc3339(at)} is missing" for at in expected if not found[at]]
        wrong += [f"{schedule.name}: {to_rfc3339(at)} twice" for at, times in found.items() if times > 1]
        wrong += [
            f"{schedule.name}: {to_rfc3339(at)} was never planned" for at in found if at not in expected
        ]
    started = {fire.target_id for fire in fires if fire.target_id is not None}
    if started != made:
        wrong.append(f"{len(made)} tasks were made, {len(started)} fires started one")
    return wrong, states, total


async def test_no_planned_instant_is_lost_or_doubled_while_servers_and_the_database_die(
    mariadb_house: MariaDb, tmp_path: Path
) -> None:
    url = mariadb_house.create_database()
    chance = random.Random(7)
    async with fleet(url, tmp_path, SERVERS) as servers:
        async with OrbitClient(servers.servers[0].url, servers.servers[0].token, settings=PATIENT) as client:
            for number in range(SCHEDULES):
                every_s = (1, 2, 5, 1, 10, 30, 60)[number % 7]
                await client.schedules.create(str(every_s), spec(every_s, **KINDS[number % len(KINDS)]))
        assert await servers.storm(SECONDS / 2, chance) > 0
        await asyncio.to_thread(mariadb_house.kill)
        await asyncio.to_thread(mariadb_house.start)
        await servers.storm(SECONDS / 2, chance)
        await asyncio.sleep(1)
    wrong, states, total = await account(url)
    assert not wrong, wrong[:20]
    with snapshot(url) as conn:
        assert violations(conn) == []
    assert total > 50
    assert states["STARTED"] > 0
    print(f"{total} planned instants: {dict(states)}")


async def test_a_reader_that_dies_hears_everything_until_it_has_acknowledged_it(
    sqlite_url: str, tmp_path: Path
) -> None:
    count = RESULTS
    chance = random.Random(3)
    heard: Counter[str] = Counter()
    acknowledged: set[str] = set()
    after: list[str] = []
    async with fleet(sqlite_url, tmp_path, 1) as servers:
        server = servers.servers[0]
        async with OrbitClient(server.url, server.token, settings=PATIENT) as client:
            await client.subscriptions.create(
                "all", when_full="DROP_OLDEST", visibility_ms=1_000, filter={"types": ["task.submitted"]}
            )

            async def submit() -> list[str]:
                made: list[str] = []
                while len(made) < count:
                    items = [
                        {
                            "queue": "storm",
                            "handler": "storm.run",
                            "handler_version": 1,
                            "idempotency_key": f"{len(made)}-{each}",
                        }
                        for each in range(min(100, count - len(made)))
                    ]
                    done = await client.tasks.submit_batch(items)
                    made += [item.id or "" for item in done.items]
                return made

            async def read() -> None:
                """A reader that drops about a tenth of what it takes, as one that dies would."""
                while True:
                    with suppress(OrbitError):
                        pulled = await client.subscriptions.pull("all", limit=50, wait=1.0)
                        done: list[str] = []
                        for each in pulled.items:
                            task_id = each.event.task_id or ""
                            heard[task_id] += 1
                            if task_id in acknowledged:
                                after.append(task_id)
                            if chance.random() < 0.9:
                                done.append(each.id)
                        if done:
                            await client.subscriptions.acknowledge("all", done)
                            told = {each.id: each.event.task_id or "" for each in pulled.items}
                            acknowledged.update(told[each] for each in done)

            reader = asyncio.create_task(read())
            made, _ = await asyncio.gather(submit(), servers.storm(SECONDS / 3, chance))
            await until(lambda: len(acknowledged) >= count, 120.0)
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            assert set(made) == set(heard) == acknowledged
            assert not after
            assert (await client.subscriptions.get("all")).backlog == 0
    async with open_database(Settings(database=sqlite_url)) as database:
        told = await database.read(
            lambda conn: conn.execute(select(events.c.id).where(events.c.type == "task.submitted")).all()
        )
    assert len(told) == count
    print(f"{count} events, {sum(heard.values())} deliveries")
