"""Fairness between keys of one queue, inside a priority."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import pytest
from sqlalchemy import text

from orbit_server.pulse.limits.weights import SetWeight
from orbit_server.pulse.tasks.lifecycle import Said
from tests.storage.pulse.house import SPACE, House, Worker

FLOOD, FEW = int(os.environ.get("ORBIT_STORM_FLOOD", "300")), int(os.environ.get("ORBIT_STORM_FEW", "20"))
"""Tasks of the large and of the small project."""
SLOTS = 16


async def flood(house: House, key: str | None, count: int, **changes: Any) -> set[str]:
    return {await house.submit(fairness_key=key, **changes) for _ in range(count)}


async def served(house: House, worker: Worker, count: int) -> list[str]:
    """The next tasks in the order in which they are claimed, one at a time."""
    found = []
    for _ in range(count):
        await house.claimed(worker, 1)
        (offer,) = worker.offers
        worker.offers = []
        await house.report(offer, Said.SUCCEEDED, result=1)
        found.append(offer.task_id)
    return found


async def test_a_small_project_does_not_wait_for_a_large_one(house: House) -> None:
    await flood(house, "large", 40)
    worker = house.worker()
    await served(house, worker, 5)
    await house.dispatcher._raise_virtual_time(house.database)
    small = await flood(house, "small", 5)
    order = await served(house, worker, 11)
    assert small <= set(order)


async def test_delayed_tasks_that_fall_due_together_are_as_fair(house: House) -> None:
    large = await flood(house, "large", 20, delay_ms=60_000)
    small = await flood(house, "small", 3, delay_ms=60_000)
    now = await house.database.now()
    for task_id in large | small:
        await house.set_task(task_id, due_at=now)
    await house.swept_due()
    order = await served(house, house.worker(), 7)
    assert small <= set(order)


@pytest.mark.parametrize("delayed", [False, True])
async def test_whatever_one_project_queues_up_another_waits_for_its_turns_only(
    house: House, delayed: bool
) -> None:
    """Two projects take turns, so the k-th task of the small one is among the next 2 k; one bite of slots may
    have been on its way.
    """
    when: dict[str, Any] = {"delay_ms": 3_600_000} if delayed else {}
    began = time.monotonic()
    large = await many(house, "large", FLOOD, **when)
    if delayed:
        small = await many(house, "small", FEW, **when)
        await house.database.write(lambda conn: conn.execute(text("UPDATE tasks SET due_at = 1")))
        while (await house.swept_due()).moved:
            pass
    worker = house.worker()
    if not delayed:
        assert large >= await bites(house, worker, 3)
        small = await many(house, "small", FEW)
    left = set(small)
    claims = 0
    while left:
        taken = await bites(house, worker, 1)
        claims += len(taken)
        left -= taken
    print(f"{FLOOD} and {FEW}: {claims} claims, {time.monotonic() - began:.1f} s")
    assert claims <= 2 * FEW + 2 * SLOTS


async def many(house: House, key: str, count: int, **changes: Any) -> set[str]:
    found: list[str] = []
    for first in range(0, count, 500):
        part = range(min(500, count - first))
        found += await asyncio.gather(*[house.submit(fairness_key=key, **changes) for _ in part])
    return set(found)


async def bites(house: House, worker: Worker, count: int) -> set[str]:
    """What a worker with a few slots gets, so many times."""
    found = set()
    for _ in range(count):
        await house.claimed(worker, SLOTS)
        offers, worker.offers = worker.offers, []
        await asyncio.gather(*[house.report(offer, Said.SUCCEEDED, result=1) for offer in offers])
        found |= {offer.task_id for offer in offers}
    return found


async def test_a_heavier_key_gets_more_turns(house: House) -> None:
    await house.database.committer.submit(SetWeight(None, SPACE, "jobs", "heavy", 3, house.by()))
    heavy = await flood(house, "heavy", 12)
    light = await flood(house, "light", 12)
    order = await served(house, house.worker(), 8)
    assert len(heavy & set(order)) == 6
    assert len(light & set(order)) == 2


async def test_priority_goes_before_fairness(house: House) -> None:
    await flood(house, "quiet", 3)
    await flood(house, "loud", 5)
    urgent = await flood(house, "loud", 2, priority=9)
    order = await served(house, house.worker(), 2)
    assert set(order) == urgent
