"""From a ready task to the worker that runs it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.errors import ResourceExhausted, Unavailable
from orbit_server.clock import ManualClock, SystemClock
from orbit_server.pulse.dispatch import dispatcher as dispatching
from orbit_server.pulse.dispatch.dispatcher import Dispatcher
from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.dispatch.slots import Seat, Slot
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.tasks.attempts import KeepProgress
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Recovery, Said, TaskState
from orbit_server.pulse.times import PulseTimes
from orbit_server.pulse.workers.commands import BlockBuild
from orbit_server.storage.migrations import migrate
from tests.storage.pulse.house import SPACE, WORK, House, Worker, held


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
    await house.dispatcher.run_once()
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


async def test_work_goes_by_priority_and_then_by_age(house: House) -> None:
    ids = [await house.submit(priority=priority) for priority in (1, 9, 5, 9)]
    worker = house.worker()
    for _ in range(4):
        await house.claimed(worker)
    assert [offer.task_id for offer in worker.offers] == [ids[1], ids[3], ids[2], ids[0]]


async def test_work_goes_only_to_who_serves_the_handler_and_version(house: House) -> None:
    await house.submit(handler_version=2)
    other = house.worker(handlers={("other", 1): Recovery.READ_ONLY, ("work", 1): Recovery.READ_ONLY})
    assert await house.claimed(other) == []
    right = house.worker(handlers={("work", 2): Recovery.READ_ONLY})
    assert len(await house.claimed(right)) == 1


async def test_a_backlog_drains_as_slots_come_free(house: House) -> None:
    ids = [await house.submit() for _ in range(5)]
    worker = house.worker(slots=2)
    first = await house.dispatcher.run_once()
    assert (first.asked, first.pushed) == (2, 2)
    # A task that arrives now stands behind the backlog, though a slot is free.
    house.ready(worker, 1)
    ids.append(await house.submit())
    assert len(worker.offers) == 2
    await house.dispatcher.run_once()
    house.ready(worker, 9)
    await house.dispatcher.run_once()
    assert [offer.task_id for offer in worker.offers] == ids


async def test_sessions_take_turns(house: House) -> None:
    workers = [house.worker(slots=3) for _ in range(3)]
    for _ in range(6):
        await house.submit()
    await house.dispatcher.run_once()
    assert [len(worker.offers) for worker in workers] == [2, 2, 2]


async def test_a_result_and_the_claim_of_what_follows_share_a_transaction(house: House) -> None:
    """The retry of a task is no such case; a new task made beside the result is."""
    worker = house.worker(slots=2)
    await house.dispatcher.run_once()
    await house.submit()
    groups = house.database.metrics.groups
    next_id = await house.submit()
    assert house.database.metrics.groups == groups + 1
    assert worker.offers[-1].task_id == next_id
    assert worker.offers[-1].started


async def test_offers_for_a_session_that_left_go_back_uncharged(house: House) -> None:
    worker = house.worker(slots=1)
    await house.dispatcher.run_once()
    pending = asyncio.ensure_future(house.submit())
    await asyncio.sleep(0)
    task_id = None
    while not pending.done():
        # The claim is on its way: its slot was reserved when the group was formed.
        if house.dispatcher._slots.room((worker.facts.namespace_id, "jobs")) == 0:  # to hit the moment
            house.dispatcher.remove(worker.facts.id)
        await asyncio.sleep(0)
    task_id = await pending
    await house.dispatcher.close()
    task = await house.task(task_id)
    assert worker.offers == []
    assert (task.state, task.attempts_used) == (TaskState.READY, 0)


async def test_the_loop_brings_work_and_survives_faults(house: House) -> None:
    loop = asyncio.ensure_future(house.dispatcher.run())
    worker = house.worker()
    house.dispatcher.wake(queue_id_of(worker.facts.namespace_id, "jobs"))
    await house.submit()
    house.ready(worker, 1)
    await asyncio.wait_for(worker.pushed.wait(), 20)
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop


async def test_a_dispatcher_rests_after_the_clock_jumped(sqlite_url: str) -> None:
    migrate(sqlite_url)
    clock = ManualClock()
    async with House(sqlite_url, PulseTimes(), clock=clock) as house:
        worker = house.worker(slots=2)
        await house.dispatcher.run_once()
        clock.step(3_600_000_000)
        await house.submit()
        await house.submit()
        await house.dispatcher.run_once()
        before = len(worker.offers)
        assert await house.claimed(worker) == []
        clock.advance(31_000_000)
        assert len(await house.claimed(worker)) == 2 - before


async def test_a_dispatcher_without_a_database_says_so() -> None:
    with pytest.raises(RuntimeError, match="no database"):
        await Dispatcher(SystemClock()).run_once()


async def test_a_session_that_cannot_take_offers_harms_nobody_else(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Worker):
        def push(self, offers: Sequence[Offer]) -> None:
            raise OSError(f"the socket is gone: {len(offers)} offers")

    broken = Broken(house.worker().facts)
    house.dispatcher.remove(broken.facts.id)
    house.dispatcher.add(broken)
    house.ready(broken, 1)
    sound = house.worker(slots=1)
    await house.submit()
    await house.submit()
    await house.dispatcher.run_once()
    assert len(sound.offers) == 1
    assert "could not be given" in caplog.text


async def test_a_task_that_ended_meanwhile_gives_its_slot_back(house: House) -> None:
    task_id = await house.submit(start_within_ms=1)
    await house.set_task(task_id, latest_start_at=1)
    worker = house.worker()
    assert await house.claimed(worker) == []
    assert (await house.task(task_id)).state is TaskState.EXPIRED
    await house.submit()
    await house.dispatcher.run_once()
    assert len(worker.offers) == 1


async def test_the_finalizer_leaves_what_it_cannot_claim_to_the_ordinary_claim(house: House) -> None:
    worker = house.worker(slots=4)
    await house.dispatcher.run_once()
    # Another handler, another queue, and a verification that this worker cannot do.
    await house.submit(handler="other")
    await house.submit(queue="elsewhere")
    await house.dispatcher.run_once()
    await house.submit(can_verify=True)
    (offer,) = worker.offers
    await house.report(offer, Said.NEEDS_VERIFICATION)
    assert len(worker.offers) == 1


async def test_a_retry_is_claimed_by_the_sweep_that_makes_it_ready(house: House) -> None:
    worker = house.worker(slots=2)
    await house.dispatcher.run_once()
    task_id = await house.submit()
    await house.report(worker.offers[0], Said.RETRYABLE, effect_unknown=False)
    await house.set_task(task_id, due_at=0)
    await house.swept_due()
    assert [offer.attempt_no for offer in worker.offers] == [1, 2]


async def test_a_task_too_late_for_its_start_is_expired_by_the_transaction_that_readies_it(
    house: House,
) -> None:
    worker = house.worker(slots=1)
    await house.dispatcher.run_once()
    task_id = await house.submit(latest_start_at=1)
    assert worker.offers == []
    assert (await house.task(task_id)).state is TaskState.EXPIRED


async def test_dispatching_goes_on_after_the_database_was_away(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "_ERROR_PAUSE_S", 0)
    failures = [Unavailable("away"), ValueError("a bug")]
    read = house.database.read

    async def unreliable(fn: Any) -> Any:
        if failures:
            raise failures.pop()
        return await read(fn)

    monkeypatch.setattr(house.database, "read", unreliable)
    loop = asyncio.ensure_future(house.dispatcher.run())
    worker = house.worker(slots=1)
    while failures:
        house.ready(worker, 1)
        house.dispatcher.wake(queue_id_of(worker.facts.namespace_id, "jobs"))
        await asyncio.sleep(0)
    await house.submit()
    house.dispatcher.wake(queue_id_of(worker.facts.namespace_id, "jobs"))
    await asyncio.wait_for(worker.pushed.wait(), 20)
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop


async def test_slots_come_back_when_a_claim_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = house.worker(slots=1)
    await house.dispatcher.run_once()
    house.dispatcher.remove(worker.facts.id)
    await house.submit()
    house.dispatcher.add(worker)
    house.ready(worker, 1)
    submit = house.database.committer.submit

    async def full(*_: object, **__: object) -> Any:
        raise ResourceExhausted("too many commands wait")

    monkeypatch.setattr(house.database.committer, "submit", full)
    with pytest.raises(ResourceExhausted):
        await house.dispatcher.run_once()
    monkeypatch.setattr(house.database.committer, "submit", submit)
    await house.dispatcher.run_once()
    assert len(worker.offers) == 1


async def test_offers_that_cannot_be_handed_back_are_left_to_their_leases(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    worker = house.worker()
    await house.database.close()
    slot = Slot(Seat(worker, worker.facts, reserved=1, reserved_of={"jobs": 1}, gone=True), "jobs", 1)
    offer = Offer(
        "a" * 32, "b" * 32, "c" * 32, 1, 1, AttemptKind.RUN, True, "jobs", "work", 1,
        Recovery.READ_ONLY, 1, 1, "{}", 1, "e",
    )  # fmt: skip
    house.dispatcher._deliver([(slot, offer)], committed=True)  # the claim's own last step
    await house.dispatcher.close()
    assert "their leases will end" in caplog.text


async def test_an_offer_carries_trace_and_what_the_attempt_before_reported(house: House) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    task_id = await house.submit(trace=trace)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    assert (offer.trace, offer.previous_progress) == (trace, None)
    stranger = KeepProgress(SPACE, "0" * 32, ((held(offer), '{"page":1}'),))
    assert await house.database.committer.submit(stranger) == {}
    for page in (3, 4):
        items = ((held(offer), f'{{"page":{page}}}'),)
        kept = await house.database.committer.submit(KeepProgress(SPACE, worker.facts.id, items))
        assert kept == {offer.attempt_id: None}
    await house.report(offer, Said.EXCEPTION, code="E")
    await house.set_task(task_id, due_at=await house.database.now())
    await house.swept_due()
    await house.claimed(worker)
    offer = worker.offers[-1]
    assert (offer.attempt_no, offer.previous_progress) == (2, '{"page":4}')


async def test_workers_of_a_blocked_build_get_nothing(house: House) -> None:
    await house.submit()
    worker = house.worker()
    block = BlockBuild(None, SPACE, "b1", blocked=True, by=house.by())
    await house.database.committer.submit(block)
    assert await house.claimed(worker) == []
    await house.database.committer.submit(replace(block, blocked=False, by=house.by()))
    assert len(await house.claimed(worker)) == 1
