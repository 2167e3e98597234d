"""Limits under fire: several servers and workers, killed at random; no permit too many, none leaked."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.server import until

SERVERS, WORKERS = 3, int(os.environ.get("ORBIT_LIMIT_WORKERS", "4"))
TASKS = int(os.environ.get("ORBIT_LIMIT_TASKS", "200"))
RUNNING, OF_A_KEY, KEYS = 6, 2, 5
KILL_EVERY_S = 2.0

HELD = "SELECT COUNT(*) FROM attempts WHERE permits IS NOT NULL AND state <> 'CLOSED'"
OF_KEYS = """
    SELECT t.concurrency_key, COUNT(*) FROM tasks t
    WHERE t.state IN ('OFFERED', 'RUNNING') AND t.concurrency_key IS NOT NULL GROUP BY t.concurrency_key
"""


@pytest.fixture
def at(mariadb_url: str, tmp_path: Path) -> Iterator[House]:
    with house(mariadb_url, tmp_path, Ledger(linger_ms=0)) as built:
        for _ in range(SERVERS):
            built.server()
        for number in range(WORKERS):
            built.worker(built.servers[number % SERVERS].url, module="tests.crash.single")
        yield built


def order(number: int) -> dict[str, Any]:
    return {
        "queue": "storm",
        "handler": "single.reads",
        "handler_version": 1,
        "parameters": {"name": f"t{number}"},
        "recovery": "READ_ONLY",
        "retry": {"backoff_ms": 100, "max_backoff_ms": 200, "max_attempts": 20, "jitter_percent": 0},
        "concurrency_key": f"acct:{number % KEYS}" if number % 2 else None,
        "idempotency_key": secrets.token_hex(8),
    }


async def submit_all(client: OrbitClient) -> None:
    orders = [{k: v for k, v in order(n).items() if v is not None} for n in range(TASKS)]
    for first in range(0, TASKS, 500):
        found = await client.tasks.submit_batch(orders[first : first + 500])
        assert all(item.error is None for item in found.items)


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


async def test_no_limit_is_ever_exceeded_and_no_permit_lost_while_everything_dies(at: House) -> None:
    chance = random.Random(7)
    most: Counter[str] = Counter()
    async with at.client() as client:
        await client.queues.set_limits("storm", {"running_max": RUNNING, "reason": "r"})
        await client.queues.set_key_class("storm", "acct", OF_A_KEY, reason="r")
        # Until every server knows of the new row.
        await asyncio.sleep(1)
        await submit_all(client)
        killed_at = time.monotonic()

        async def over() -> bool:
            nonlocal killed_at
            ((held,),) = at.rows(HELD)
            most["queue"] = max(most["queue"], held)
            for key, count in at.rows(OF_KEYS):
                most[key] = max(most[key], count)
            left = at.rows("SELECT COUNT(*) FROM tasks WHERE settled_at IS NULL")[0][0]
            if left and time.monotonic() - killed_at > KILL_EVERY_S:
                await asyncio.to_thread(kill_one, at, chance)
                killed_at = time.monotonic()
            return not left

        await until(over, 240)
    assert most["queue"] <= RUNNING
    assert all(count <= OF_A_KEY for key, count in most.items() if key != "queue"), most
    assert at.rows("SELECT COUNT(*) FROM tasks WHERE state = 'SUCCEEDED'") == [(TASKS,)]
    assert at.rows("SELECT SUM(running) FROM limits") == [(0,)]
    assert at.rows("SELECT SUM(held), SUM(waiting), COUNT(admit_at) FROM concurrency_keys") == [(0, 0, 0)]
    assert at.rows("SELECT COUNT(*) FROM key_places") == [(0,)]
    at.check()
