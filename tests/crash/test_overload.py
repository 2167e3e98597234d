"""More work than there is capacity for: what is refused is refused clearly, what was accepted is done.

`ORBIT_STORM_SECONDS` sets how long three times the capacity is submitted (2 by default).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import ClientSettings, OrbitClient
from orbit_sdk.errors import Code, OrbitError
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.server import until

SECONDS = float(os.environ.get("ORBIT_STORM_SECONDS", "2"))
ITEMS = 50
BACKLOG = 500
BUSY = {Code.RESOURCE_EXHAUSTED.value, Code.UNAVAILABLE.value}
AT_ONCE = ClientSettings(timeout=30, retry_for=0)
"""No second try: what the server says is what counts."""
OPEN = "SELECT COUNT(*) FROM tasks WHERE settled_at IS NULL"


@pytest.fixture
def at(database_url: str, tmp_path: Path) -> Iterator[House]:
    with house(database_url, tmp_path, Ledger(linger_ms=0)) as built:
        built.server("--lease-ms=10000", ORBIT_QUEUE_MAX="300", ORBIT_REQUESTS_MAX="20")
        built.worker(module="tests.crash.single", queues=("storm",))
        yield built


def items() -> list[dict[str, Any]]:
    named = {"queue": "storm", "handler": "single.reads", "handler_version": 1, "recovery": "READ_ONLY"}
    return [
        {**named, "parameters": {"name": "t"}, "idempotency_key": secrets.token_hex(8)} for _ in range(ITEMS)
    ]


class Tally:
    """What the server said to a submission: ids, and refusals by code; what was refused without a time."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.refused: Counter[str] = Counter()
        self.vague: list[str] = []

    async def send(self, client: OrbitClient) -> None:
        try:
            found = (await client.tasks.submit_batch(items())).items
        except OrbitError as error:
            self._refuse(error.code.value, error.retry_after_ms, ITEMS)
            return
        for item in found:
            if item.error is None:
                self.accepted.add(str(item.id))
            else:
                self._refuse(item.error.code, item.error.retry_after_ms, 1)

    def _refuse(self, code: str, retry_after_ms: int | None, count: int) -> None:
        self.refused[code] += count
        if retry_after_ms is None:
            self.vague.append(code)


async def capacity(at: House, client: OrbitClient) -> float:
    """Tasks a second that the worker does while they arrive."""
    began = time.monotonic()
    tally = Tally()
    await asyncio.gather(*[tally.send(client) for _ in range(6)])
    assert len(tally.accepted) == 6 * ITEMS
    await until(lambda: at.rows(OPEN) == [(0,)])
    return 6 * ITEMS / (time.monotonic() - began)


async def storm(client: OrbitClient, tally: Tally, per_s: float) -> int:
    """Submit at this rate, whatever the answers; says how many tasks were offered."""
    began, sent = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        while (passed := time.monotonic() - began) < SECONDS:
            while sent * ITEMS < passed * per_s:
                group.create_task(tally.send(client))
                sent += 1
            await asyncio.sleep(0.01)
    return sent * ITEMS


async def test_at_three_times_the_capacity_nothing_accepted_is_lost_and_refusals_are_clear(at: House) -> None:
    async with OrbitClient(at.servers[0].url, at.token, settings=AT_ONCE) as client:
        await until(lambda: at.rows("SELECT COUNT(*) FROM sessions") == [(1,)])
        rate = await capacity(at, client)
        await client.queues.set_limits("storm", {"backlog_max": BACKLOG, "reason": "r"})
        tally, offered = Tally(), 0
        while not tally.refused:
            offered += await storm(client, tally, 3 * rate)
            # Where the machine was busy while the capacity was measured, three times that may be too little.
            rate *= 2
        print(f"offered {offered}, accepted {len(tally.accepted)}, refused {tally.refused}")
        assert set(tally.refused) <= BUSY
        assert tally.vague == []
        assert len(tally.accepted) + tally.refused.total() == offered
        # Back to normal: everything is done, and there is room again.
        await until(lambda: at.rows(OPEN) == [(0,)], 60)
        after = Tally()
        await after.send(client)
        assert len(after.accepted) == ITEMS
        await until(lambda: at.rows(OPEN) == [(0,)])
    stored = {task_id for (task_id,) in at.rows("SELECT id FROM tasks WHERE state = 'SUCCEEDED'")}
    assert tally.accepted | after.accepted <= stored
    assert len(stored) == 6 * ITEMS + len(tally.accepted) + len(after.accepted)
    assert at.rows("SELECT outcome, COUNT(*) FROM attempts GROUP BY outcome") == [("SUCCEEDED", len(stored))]
    assert at.rows("SELECT backlog FROM limits") == [(0,)]
    at.check()
