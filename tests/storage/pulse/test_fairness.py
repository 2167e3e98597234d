"""Fairness between keys of one queue, inside a priority."""

from __future__ import annotations

from typing import Any

from orbit_server.pulse.limits.weights import SetWeight
from orbit_server.pulse.tasks.lifecycle import Said
from tests.storage.pulse.house import SPACE, House, Worker


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
