"""Two claimers, two servers, two workers: one attempt."""

from __future__ import annotations

import asyncio

import pytest

from orbit_server.pulse.dispatch.claim import ClaimTasks, Ticket
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks.decide.start import Claimant
from orbit_server.pulse.tasks.lifecycle import AttemptState, Recovery, Said, TaskState
from tests.storage.pulse.house import House, Worker


def ticket(worker: Worker, task_id: str, attempt_id: str) -> Ticket:
    facts = worker.facts
    who = Claimant(
        facts.id, facts.namespace_id, facts.nonce, "w", "b", Recovery.READ_ONLY, False, one_step=True
    )
    return Ticket(task_id, attempt_id, who, 1)


@pytest.mark.parametrize("recovery", [Recovery.IDEMPOTENT, Recovery.CONSERVATIVE])
async def test_two_claims_of_one_task_end_in_one_attempt(house: House, recovery: Recovery) -> None:
    one, two = house.worker(), house.worker()
    for turn in range(60):
        task_id = await house.submit(recovery=recovery)
        offers = await asyncio.gather(
            *[
                house.database.committer.submit(ClaimTasks((ticket(worker, task_id, f"{turn:031x}{place}"),)))
                for place, worker in enumerate((one, two))
            ]
        )
        assert sum(len(found) for found in offers) == 1
        assert len(await house.attempts(task_id)) == 1


async def test_two_servers_that_see_one_task_give_it_to_one_worker(two_houses: tuple[House, House]) -> None:
    first, second = two_houses
    one, two = first.worker(), second.worker()
    for turn in range(1, 201):
        task_id = await first.submit()
        await asyncio.gather(first.claimed(one), second.claimed(two))
        await asyncio.gather(first.dispatcher.close(), second.dispatcher.close())
        assert len(one.offers) + len(two.offers) == turn
        attempts = await first.attempts(task_id)
        assert [one.state for one in attempts] == [AttemptState.RUNNING]


async def test_many_tasks_and_two_servers_share_without_doubles(two_houses: tuple[House, House]) -> None:
    first, second = two_houses
    one, two = first.worker(), second.worker()
    ids = {await first.submit() for _ in range(60)}
    while len(one.offers) + len(two.offers) < len(ids):
        await asyncio.gather(first.claimed(one, 7), second.claimed(two, 7))
    taken = [offer.task_id for offer in (*one.offers, *two.offers)]
    assert sorted(taken) == sorted(ids)


async def test_another_server_hears_of_work_that_this_one_cannot_place(
    two_houses: tuple[House, House],
) -> None:
    first, second = two_houses
    worker = second.worker(slots=1)
    await second.dispatcher.run_once()
    await first.submit()
    await first.dispatcher.run_once()
    report = await second.dispatcher.run_once()
    assert report.pushed == 1
    assert len(worker.offers) == 1


async def test_a_repeated_claim_is_granted_what_it_has(house: House) -> None:
    worker = house.worker()
    task_id = await house.submit()
    command = ClaimTasks((ticket(worker, task_id, "f" * 32),))
    first = await house.database.committer.submit(command)
    again = await house.database.committer.submit(command)
    assert first == again
    assert len(await house.attempts(task_id)) == 1
    await house.report(first["f" * 32], Said.SUCCEEDED)
    assert await house.database.committer.submit(command) == {}


async def test_a_result_and_the_end_of_its_lease_at_once_settle_the_attempt_once(house: House) -> None:
    worker = house.worker()
    for _ in range(20):
        task_id = await house.submit()
        (offer,) = await house.claimed(worker)
        await house.lease_ran_out(task_id)
        now = await house.database.now()
        await asyncio.gather(
            house.report(offer, Said.SUCCEEDED, result=1), sweep_leases(house.database, now, house.times)
        )
        task = await house.task(task_id)
        assert (task.state, task.late_success) == (TaskState.RETRY_WAIT, True)
        (attempt,) = await house.attempts(task_id)
        assert attempt.outcome is Said.LEASE_LOST
        assert len(await house.evidence(task_id)) == 1


async def test_a_claim_of_a_strangers_task_or_of_nothing_gives_nothing(house: House) -> None:
    worker = house.worker()
    task_id = await house.submit(namespace_id="2" * 32)
    command = ClaimTasks((ticket(worker, task_id, "f" * 32), ticket(worker, "0" * 32, "e" * 32)))
    assert await house.database.committer.submit(command) == {}
