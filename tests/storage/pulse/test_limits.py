"""Limits: never more than allowed, nothing leaked, and a full backlog says no."""

from __future__ import annotations

import asyncio

import pytest

from orbit_sdk.errors import FailedPrecondition, ResourceExhausted
from orbit_server.pulse.limits.commands import SetLimits
from orbit_server.pulse.limits.queries import limit_rows
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks.commands import CancelTask
from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from orbit_server.pulse.tasks.limits.decide import Settings
from orbit_server.pulse.tasks.limits.records import LimitRow, limit_id_of
from orbit_server.pulse.tasks.reconnect import ReturnOffers
from tests.storage.pulse.house import SPACE, WORK, House, held


async def row_of(house: House, queue: str | None = "jobs") -> LimitRow:
    limit_id = limit_id_of(SPACE, queue)
    return (await house.database.read(lambda conn: limit_rows(conn, [limit_id])))[limit_id]


async def test_a_queue_runs_no_more_than_its_limit(house: House) -> None:
    await house.limit(running_max=2)
    for _ in range(5):
        await house.submit()
    worker = house.worker()
    first = await house.claimed(worker, 10)
    assert len(first) == 2
    assert (await row_of(house)).running == 2
    assert await house.claimed(worker, 10) == []
    await house.report(first[0], Said.SUCCEEDED, result=1)
    assert (await row_of(house)).running == 1
    assert len(await house.claimed(worker, 10)) == 1
    await house.sound()


async def test_a_namespace_limit_spans_its_queues(house: House) -> None:
    await house.limit(None, running_max=3)
    for _ in range(3):
        await house.submit()
        await house.submit(queue="more")
    one, two = house.worker(), house.worker(queue="more")
    await house.claimed(one, 10)
    await house.claimed(two, 10)
    assert len(one.offers) + len(two.offers) == 3
    await house.sound()


async def test_a_permit_goes_with_its_attempt_however_that_ends(house: House) -> None:
    await house.limit(running_max=1)
    careful = house.worker(handlers={WORK: Recovery.CONSERVATIVE})
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    (offer,) = await house.claimed(careful)
    back = ReturnOffers(SPACE, careful.facts.id, offers=(held(offer),), times=house.times)
    assert await house.database.committer.submit(back) == 1
    assert (await row_of(house)).running == 0
    await house.set_task(task_id, due_at=await house.database.now())
    await house.swept_due()
    (offer,) = await house.claimed(careful)
    await house.start(careful, offer)
    assert (await row_of(house)).running == 1
    await house.lease_ran_out(task_id)
    await sweep_leases(house.database, await house.database.now(), house.times)
    assert (await house.task(task_id)).state is TaskState.NEEDS_REVIEW
    assert (await row_of(house)).running == 0
    await house.sound()


async def test_cancelling_a_queued_task_frees_nothing_and_an_offered_one_its_permit(house: House) -> None:
    await house.limit(running_max=1)
    careful = house.worker(handlers={WORK: Recovery.CONSERVATIVE})
    for _ in range(2):
        await house.submit(recovery=Recovery.CONSERVATIVE)
    (offer,) = await house.claimed(careful)
    queued = await house.submit(recovery=Recovery.CONSERVATIVE)
    await house.database.committer.submit(CancelTask(None, SPACE, queued, house.by()))
    assert (await row_of(house)).running == 1
    await house.database.committer.submit(CancelTask(None, SPACE, offer.task_id, house.by()))
    assert (await row_of(house)).running == 0
    await house.sound()


async def test_a_lowered_limit_stops_nobody_and_lets_nobody_in(house: House) -> None:
    await house.limit(running_max=3)
    for _ in range(6):
        await house.submit()
    worker = house.worker()
    running = await house.claimed(worker, 10)
    await house.limit(running_max=1)
    assert [(await house.task(one.task_id)).state for one in running] == [TaskState.RUNNING] * 3
    for offer in running[:2]:
        await house.report(offer, Said.SUCCEEDED, result=1)
        assert await house.claimed(worker, 10) == []
    await house.report(running[2], Said.SUCCEEDED, result=1)
    assert len(await house.claimed(worker, 10)) == 1
    await house.limit(running_max=None)
    assert len(await house.claimed(worker, 10)) == 2
    await house.sound()


async def test_a_limit_that_was_lifted_still_gets_its_permits_back(house: House) -> None:
    await house.limit(running_max=1)
    await house.submit()
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.limit(running_max=None)
    await house.report(offer, Said.SUCCEEDED, result=1)
    assert (await row_of(house)).running == 0


async def test_a_change_that_expects_another_revision_is_refused(house: House) -> None:
    await house.limit(running_max=1)
    order = SetLimits(None, SPACE, "jobs", Settings(running_max=2), house.by(), expected_revision=0)
    with pytest.raises(FailedPrecondition, match="at revision 1, not 0"):
        await house.database.committer.submit(order)


async def test_a_full_backlog_refuses_and_takes_again_when_a_task_settles(house: House) -> None:
    await house.limit(backlog_max=2)
    ids = (limit_id_of(SPACE, "jobs"),)
    first = await house.submit(limits=ids)
    await house.submit(limits=ids, delay_ms=60_000)
    with pytest.raises(ResourceExhausted, match="backlog") as caught:
        await house.submit(limits=ids)
    assert caught.value.retry_after_ms
    await house.database.committer.submit(CancelTask(None, SPACE, first, house.by()))
    await house.submit(limits=ids)
    assert (await row_of(house)).backlog == 2
    await house.sound()


async def test_tokens_are_spent_at_the_claim_and_come_back_with_time(house: House) -> None:
    await house.limit(rate=1, rate_per_ms=3_600_000, burst=3)
    for _ in range(5):
        await house.submit()
    worker = house.worker()
    assert len(await house.claimed(worker, 10)) == 3
    assert await house.claimed(worker, 10) == []
    again = await house.reopened()
    other = again.worker()
    assert await again.claimed(other, 10) == []
    row = await row_of(again)
    assert row.level < 3_600_000_000
    assert row.running == 0


async def test_two_servers_share_one_limit(two_houses: tuple[House, House]) -> None:
    first, second = two_houses
    await first.limit(running_max=3)
    for _ in range(40):
        await first.submit()
    one, two = first.worker(), second.worker()
    await first.dispatcher.limits.refresh(first.database)
    await second.dispatcher.limits.refresh(second.database)
    done = 0
    most = 0
    while done < 40:
        await asyncio.gather(first.claimed(one, 4), second.claimed(two, 4))
        await asyncio.gather(first.dispatcher.close(), second.dispatcher.close())
        await first.sound()
        running = (await row_of(first)).running
        most = max(most, running)
        assert running <= 3
        for house, worker in ((first, one), (second, two)):
            offers, worker.offers = worker.offers, []
            for offer in offers:
                await house.report(offer, Said.SUCCEEDED, result=1)
                done += 1
            await asyncio.sleep(0)
            for place in house.dispatcher._held.places():
                house.dispatcher._held.free(place)
    assert most == 3
    assert (await row_of(first)).running == 0


async def test_another_server_heeds_a_new_limit_from_its_next_look_on_and_its_changes_at_once(
    two_houses: tuple[House, House],
) -> None:
    first, second = two_houses
    for _ in range(5):
        await first.submit()
    worker = second.worker()
    await first.limit(running_max=1)
    (offer,) = await second.claimed(worker, 5)
    # From here on the other server does not look again: the row itself says what changed.
    second.dispatcher._limits_read_us = second.clock.monotonic_us() + 60_000_000
    await second.report(offer, Said.SUCCEEDED, result=1)
    await first.limit(running_max=0)
    assert await second.claimed(worker, 5) == []
    await first.limit(running_max=2)
    for place in second.dispatcher._held.places():
        second.dispatcher._held.free(place)
    assert await second.claimed(worker, 5)
    await first.sound()


async def test_claims_results_and_lost_leases_at_once_never_break_the_limit(house: House) -> None:
    await house.limit(running_max=2)
    worker = house.worker()
    for _ in range(30):
        await house.submit()
    for turn in range(15):
        offers = await house.claimed(worker, 5)
        for offer in offers[1:]:
            await house.lease_ran_out(offer.task_id)
        jobs = [house.report(offer, Said.SUCCEEDED, result=turn) for offer in offers]
        sweep = sweep_leases(house.database, await house.database.now(), house.times)
        await asyncio.gather(*jobs, sweep, house.claimed(worker, 5))
        await house.sound()
