from __future__ import annotations

from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from tests.storage.pulse.house import WORK, House


async def test_a_submitted_task_is_claimed_started_and_settled(house: House) -> None:
    task_id = await house.submit()
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    assert offer.started
    assert (offer.parameters, offer.effect_key, offer.attempt_no) == ('{"n":1}', "effect", 1)
    answer = await house.report(offer, Said.SUCCEEDED, result={"ok": True})
    assert answer.settled == "ACCEPTED"
    task = await house.task(task_id)
    assert (task.state, task.attempts_used, task.settled_at is not None) == (TaskState.SUCCEEDED, 1, True)
    stored = await house.result(task_id)
    assert stored is not None
    assert stored.result == '{"ok":true}'


async def test_a_task_is_claimed_in_the_transaction_that_submits_it(house: House) -> None:
    worker = house.worker(slots=3)
    task_id = await house.submit()
    (offer,) = worker.offers
    assert (offer.task_id, offer.started, offer.ready_number) == (task_id, True, 1)
    assert (await house.task(task_id)).state is TaskState.RUNNING
    await house.submit()
    await house.submit()
    await house.submit()
    assert len(worker.offers) == 3


async def test_a_conservative_task_is_offered_first_and_started_on_request(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    worker = house.worker(handlers={WORK: Recovery.IDEMPOTENT})
    (offer,) = await house.claimed(worker)
    assert not offer.started
    assert (await house.task(task_id)).state is TaskState.OFFERED
    first = await house.start(worker, offer)
    again = await house.start(worker, offer)
    other = await house.start(worker, offer, nonce="0" * 32)
    assert first.granted
    assert again.granted
    assert not other.granted
    task = await house.task(task_id)
    assert (task.state, task.attempts_used) == (TaskState.RUNNING, 1)
