"""Limits under fire: several servers and workers, killed at random; no permit too many, none leaked.

`ORBIT_STORM_WORKERS` sets how many workers there are (4 by default), `ORBIT_STORM_TASKS` how many tasks
(200), `ORBIT_STORM_PATIENCE` how many seconds it may take (240).
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from tests.bench.watch import connect
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.server import until

SERVERS, WORKERS = 3, int(os.environ.get("ORBIT_STORM_WORKERS", "4"))
TASKS = int(os.environ.get("ORBIT_STORM_TASKS", "200"))
PATIENCE_S = float(os.environ.get("ORBIT_STORM_PATIENCE", "240"))
RUNNING, OF_A_KEY, KEYS = 6, 2, 5
RATE, BURST = 20, 5
KILL_EVERY_S = 1.0

HELD = "SELECT COUNT(*) FROM attempts WHERE permits IS NOT NULL AND state <> 'CLOSED'"
COUNTED = "SELECT running FROM limits WHERE queue = 'storm'"
OF_KEYS = """
    SELECT concurrency_key, COUNT(*) FROM tasks
    WHERE state IN ('OFFERED', 'RUNNING', 'CANCELLING') AND concurrency_key IS NOT NULL
    GROUP BY concurrency_key
"""
SETTLED = "SELECT COUNT(*) FROM tasks WHERE settled_at IS NOT NULL"
CLAIMS = """
    SELECT a.offered_at FROM attempts a JOIN tasks t ON t.id = a.task_id
    WHERE t.queue = 'tap' ORDER BY a.offered_at
"""


@pytest.fixture
def at(mariadb_url: str, tmp_path: Path) -> Iterator[House]:
    with house(mariadb_url, tmp_path, Ledger(linger_ms=0)) as built:
        for _ in range(SERVERS):
            built.server()
        for number in range(WORKERS):
            url = built.servers[number % SERVERS].url
            built.worker(url, module="tests.crash.single", queues=("storm", "tap"))
        yield built


def order(number: int) -> dict[str, Any]:
    asked = {
        "queue": "tap" if number % 4 == 0 else "storm",
        "handler": "single.reads",
        "handler_version": 1,
        "parameters": {"name": f"t{number}"},
        "recovery": "READ_ONLY",
        "retry": {"backoff_ms": 100, "max_backoff_ms": 200, "max_attempts": 20, "jitter_percent": 0},
        "idempotency_key": secrets.token_hex(8),
    }
    return asked | {"concurrency_key": f"acct:{number % KEYS}"} if number % 2 else asked


async def submit_all(client: OrbitClient) -> None:
    orders = [order(number) for number in range(TASKS)]
    for first in range(0, TASKS, 500):
        found = await client.tasks.submit_batch(orders[first : first + 500])
        assert all(item.error is None for item in found.items)


@dataclass
class Sampler:
    """Looks at what is held, without a pause, from a thread and connection of its own."""

    most: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    settled: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def look_on(self, url: str) -> None:
        with closing(connect(url)) as connection, closing(connection.cursor()) as cursor:

            def ask(sql: str) -> list[Any]:
                cursor.execute(sql)
                return list(cursor.fetchall())

            while not self.ended.is_set():
                (held,), (counted,) = ask(HELD)[0], ask(COUNTED)[0]
                for name, count in (("queue", held), ("counted", counted), *ask(OF_KEYS)):
                    self.most[name] = max(self.most[name], count)
                self.looks += 1
                if self.looks % 20 == 0:
                    self.settled = ask(SETTLED)[0][0]
                self.ended.wait(0.002)


@contextmanager
def sampled(url: str) -> Iterator[Sampler]:
    sampler = Sampler()
    thread = threading.Thread(target=sampler.look_on, args=(url,))
    thread.start()
    try:
        yield sampler
    finally:
        sampler.ended.set()
        thread.join()


def kill_one(at: House, chance: random.Random) -> None:
    """A worker, or a server other than the client's, dies without a word and comes again."""
    if chance.random() < 0.6:
        victim = chance.choice(at.workers)
        victim.kill()
        victim.start()
    else:
        server = chance.choice(at.servers[1:])
        server.kill()
        server.restart()


async def kill_on(at: House) -> None:
    """Kill one after the other, for ever."""
    chance = random.Random(7)
    while True:
        await asyncio.sleep(KILL_EVERY_S)
        await asyncio.to_thread(kill_one, at, chance)


@pytest.mark.timeout(PATIENCE_S + 120)
async def test_no_limit_is_ever_exceeded_and_no_permit_lost_while_everything_dies(at: House) -> None:
    async with at.client() as client:
        await client.queues.set_limits("storm", {"running_max": RUNNING, "reason": "r"})
        await client.queues.set_limits(
            "tap", {"rate": {"count": RATE, "per_ms": 1_000, "burst": BURST}, "reason": "r"}
        )
        await client.queues.set_key_class("storm", "acct", OF_A_KEY, reason="r")
        # Until every server knows of the new rows.
        await asyncio.sleep(1)
        with sampled(at.url) as seen:
            await submit_all(client)
            began = time.monotonic()
            killer = asyncio.create_task(kill_on(at))
            try:
                await until(lambda: seen.settled == TASKS, PATIENCE_S)
            finally:
                killer.cancel()
                await asyncio.gather(killer, return_exceptions=True)
            print(f"{TASKS} tasks in {time.monotonic() - began:.1f} s, {seen.looks} looks: {dict(seen.most)}")
    keys = {name: count for name, count in seen.most.items() if name.startswith("acct")}
    assert max(seen.most["queue"], seen.most["counted"]) <= RUNNING
    assert all(count <= OF_A_KEY for count in keys.values()), keys
    assert at.rows("SELECT COUNT(*) FROM tasks WHERE state = 'SUCCEEDED'") == [(TASKS,)]
    assert at.rows("SELECT SUM(running) FROM limits") == [(0,)]
    assert at.rows("SELECT SUM(held), SUM(waiting), COUNT(admit_at) FROM concurrency_keys") == [(0, 0, 0)]
    assert at.rows("SELECT COUNT(*) FROM key_places") == [(0,)]
    claims = [moment for (moment,) in at.rows(CLAIMS)]
    assert len(claims) >= TASKS // 4
    assert too_many(claims) == []
    at.check()


def too_many(claims: list[int]) -> list[tuple[int, int]]:
    """(claims, microseconds) of the windows with more claims than the bucket has tokens for, whatever their
    length: the bucket as it would be if every claim were one drop.
    """
    level, before, found = float(BURST), claims[0], []
    for moment in claims:
        level = min(BURST, level + (moment - before) * RATE / 1e6) - 1
        before = moment
        if level < -1e-6:
            found.append((round(-level), moment - claims[0]))
    return found
