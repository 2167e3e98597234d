"""Concurrency keys: no more than allowed, nobody overtakes, nobody is left asleep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.keys.queries import due_keys
from orbit_server.pulse.queues.commands import PauseQueue
from orbit_server.pulse.sweeps import sweep_deadlines, sweep_leases
from orbit_server.pulse.tasks.commands import CancelTask
from orbit_server.pulse.tasks.keys.records import KeyRow, key_id_of
from orbit_server.pulse.tasks.keys.rows import KEYS
from orbit_server.pulse.tasks.lifecycle import Block, Recovery, Said, TaskState
from orbit_server.pulse.tasks.operations import cancel_task, create_task, gate_tasks
from orbit_server.pulse.tasks.reconnect import BindAttempts
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs
from tests.storage.pulse.house import SPACE, WORK, House, Worker, held


async def key(house: House, name: str = "acct:9") -> KeyRow:
    key_id = key_id_of(SPACE, "jobs", name)
    return (await house.database.read(lambda conn: KEYS.load(conn, [key_id])))[key_id]


async def keyed(house: House, count: int, **changes: Any) -> list[str]:
    return [await house.submit(concurrency_key="acct:9", **changes) for _ in range(count)]


async def taken(house: House, worker: Worker, slots: int = 1) -> list[Offer]:
    """What the worker gets: by the look for work, or together with what admitted it."""
    await house.claimed(worker, slots)
    offers, worker.offers = worker.offers, []
    return offers


class Gate(Keyless):
    """Pause or resume, as a workflow does it."""

    def __init__(self, ids: list[str], *, closed: bool) -> None:
        self.ids, self.closed = ids, closed

    @property
    def lane(self) -> str:
        return self.ids[0]

    def needs(self) -> Needs:
        return {"tasks": self.ids, "attempts": self.ids}

    def decide(self, book: Book) -> Done[None]:
        gate_tasks(book, self.ids, self.closed)
        return Done(None)


class CancelAll(Gate):
    """Cancel, one after the other, as a workflow does it."""

    def decide(self, book: Book) -> Done[None]:
        for task_id in self.ids:
            cancel_task(book, task_id)
        return Done(None)


async def test_one_task_of_a_key_runs_and_the_next_follows_its_end(house: House) -> None:
    first, second, third = await keyed(house, 3)
    assert [(await house.task(one)).blocked for one in (first, second, third)] == [0, Block.KEY, Block.KEY]
    worker = house.worker()
    (offer,) = await taken(house, worker, 5)
    assert offer.task_id == first
    assert (await key(house)).waiting == 2
    await house.sound()
    await house.report(offer, Said.SUCCEEDED, result=1)
    assert await house.admit() == 1
    (offer,) = await taken(house, worker, 5)
    assert offer.task_id == second
    await house.sound()


async def test_keys_do_not_hold_each_other_up(house: House) -> None:
    for name in ("acct:1", "acct:2", "plain"):
        await house.submit(concurrency_key=name)
    assert len(await taken(house, house.worker(), 5)) == 3


async def test_a_class_admits_as_many_as_its_limit(house: House) -> None:
    await house.key_class("acct", 3)
    await keyed(house, 5)
    worker = house.worker()
    await house.claimed(worker, 9)
    assert len(worker.offers) == 3
    await house.key_class("acct", 4)
    assert await house.admit(later_ms=6_000) == 1
    await house.claimed(worker, 9)
    assert len(worker.offers) == 4
    await house.key_class("acct", 1)
    for offer in worker.offers[:3]:
        await house.report(offer, Said.SUCCEEDED, result=1)
        assert await house.admit() == 0
    await house.report(worker.offers[3], Said.SUCCEEDED, result=1)
    assert await house.admit() == 1
    await house.sound()


async def test_an_arrival_does_not_overtake_those_who_wait(house: House) -> None:
    first, second = await keyed(house, 2)
    worker = house.worker()
    (offer,) = await taken(house, worker)
    await house.report(offer, Said.SUCCEEDED, result=1)
    (late,) = await keyed(house, 1)
    assert (await house.task(late)).blocked == Block.KEY
    await house.admit()
    (offer,) = await taken(house, worker, 5)
    assert offer.task_id == second
    assert first != second


async def test_the_higher_priority_is_admitted_first(house: House) -> None:
    await keyed(house, 2)
    (urgent,) = await keyed(house, 1, priority=9)
    worker = house.worker()
    (offer,) = await taken(house, worker)
    await house.report(offer, Said.SUCCEEDED, result=1)
    await house.admit()
    (offer,) = await taken(house, worker, 5)
    assert offer.task_id == urgent


async def test_a_killed_holder_gives_its_key_back_with_its_lease(house: House) -> None:
    first, _ = await keyed(house, 2)
    worker = house.worker()
    await house.claimed(worker)
    await house.lease_ran_out(first)
    await sweep_leases(house.database, await house.database.now(), house.times)
    assert (await house.task(first)).state is TaskState.RETRY_WAIT
    assert await house.admit() == 1
    await house.sound()
    await house.set_task(first, due_at=await house.database.now())
    await house.swept_due()
    assert (await house.task(first)).blocked == Block.KEY
    await house.sound()


async def test_cancelling_and_expiring_waiters_frees_nothing(house: House) -> None:
    _, second, third = await keyed(house, 3, start_within_ms=60_000)
    await house.claimed(house.worker())
    await house.database.committer.submit(CancelTask(None, SPACE, second, house.by()))
    await house.set_task(third, deadline_at=1, latest_start_at=1)
    await sweep_deadlines(house.database, await house.database.now(), house.times)
    assert (await house.task(third)).state is TaskState.EXPIRED
    row = await key(house)
    assert (row.held, row.waiting, row.admit_at) == (1, 0, None)
    await house.sound()


async def test_cancelling_an_admitted_task_passes_its_admission_on(house: House) -> None:
    first, _ = await keyed(house, 2)
    await house.database.committer.submit(CancelTask(None, SPACE, first, house.by()))
    assert await house.admit() == 1
    await house.sound()


async def test_a_paused_workflow_holds_no_key_and_waits_for_none(house: House) -> None:
    first, second, third = await keyed(house, 3)
    await house.database.committer.submit(Gate([first, second], closed=True))
    row = await key(house)
    assert (row.held, row.waiting) == (0, 1)
    await house.sound()
    assert await house.admit() == 1
    assert (await house.task(third)).blocked == 0
    await house.database.committer.submit(Gate([first, second], closed=False))
    assert [(await house.task(one)).blocked for one in (first, second)] == [Block.KEY, Block.KEY]
    assert (await key(house)).waiting == 2
    await house.sound()


async def test_pausing_withdraws_an_offer_and_frees_its_key(house: House) -> None:
    careful = house.worker(handlers={WORK: Recovery.CONSERVATIVE})
    first, second = await keyed(house, 2, recovery=Recovery.CONSERVATIVE)
    await house.claimed(careful)
    assert (await house.task(first)).state is TaskState.OFFERED
    await house.database.committer.submit(Gate([first], closed=True))
    await house.sound()
    await house.admit()
    _, offer = await taken(house, careful)
    assert offer.task_id == second


async def test_one_command_may_change_tasks_of_many_keys(house: House) -> None:
    ids = [await house.submit(concurrency_key=f"k:{n}", instance_id="1" * 32) for n in range(9)]
    await house.database.committer.submit(Gate(ids, closed=True))
    await house.sound()
    await house.database.committer.submit(Gate(ids, closed=False))
    await house.sound()
    await house.database.committer.submit(CancelAll(ids, closed=True))
    assert {(await house.task(one)).state for one in ids} == {TaskState.CANCELLED}
    await house.sound()


async def test_an_admission_nobody_claims_is_taken_back_while_others_wait(house: House) -> None:
    stuck = await house.submit(concurrency_key="acct:9", handler="nobody")
    (waiting,) = await keyed(house, 1)
    assert await house.admit(later_ms=1_000) == 0
    now = await house.database.now()

    def aged(conn: Any) -> None:
        conn.exec_driver_sql(f"UPDATE key_places SET admitted_at = {now - 6_000_000} WHERE admitted_at > 0")

    await house.database.write(aged)
    assert await house.admit(later_ms=6_000) == 1
    assert (await house.task(stuck)).blocked == Block.KEY
    (offer,) = await taken(house, house.worker(), 5)
    assert offer.task_id == waiting
    await house.sound()


async def test_keys_of_a_paused_queue_are_left_alone(house: House) -> None:
    await keyed(house, 2)
    (offer,) = await taken(house, house.worker())
    await house.database.committer.submit(PauseQueue(None, SPACE, "jobs", paused=True, by=house.by()))
    await house.report(offer, Said.SUCCEEDED, result=1)
    at = await house.database.now()
    assert await house.database.read(lambda conn: due_keys(conn, at)) == []
    await house.database.committer.submit(PauseQueue(None, SPACE, "jobs", paused=False, by=house.by()))
    assert await house.admit() == 1


class CreateInside(Keyless):
    """A task whose key is only known while it is decided, as a workflow makes it."""

    def __init__(self, house: House) -> None:
        self.new = house.new(concurrency_key="acct:9", fairness_key="shop")

    @property
    def lane(self) -> str:
        return self.new.id

    def needs(self) -> Needs:
        return {"tasks": [self.new.id]}

    def decide(self, book: Book) -> Done[str]:
        return Done(create_task(book, self.new).id)


async def test_a_key_that_was_not_at_hand_is_asked_when_the_task_is_due(house: House) -> None:
    made = [await house.database.committer.submit(CreateInside(house)) for _ in range(2)]
    assert {(await house.task(one)).state for one in made} == {TaskState.SCHEDULED}
    await house.swept_due()
    assert sorted([(await house.task(one)).blocked for one in made]) == [0, Block.KEY]
    await house.sound()


@pytest.mark.parametrize("limit", [1, 2])
async def test_release_admission_arrival_and_cancel_at_once_keep_the_key_exact(
    house: House, limit: int
) -> None:
    await house.key_class("acct", limit)
    worker = house.worker()
    for turn in range(12):
        ids = await keyed(house, 3)
        await house.claimed(worker, 5)
        offers, worker.offers = worker.offers, []
        assert len(offers) <= limit
        await asyncio.gather(
            *[house.report(offer, Said.SUCCEEDED, result=turn) for offer in offers],
            house.admit(),
            keyed(house, 1),
            house.database.committer.submit(CancelTask(None, SPACE, ids[-1], house.by())),
            house.database.committer.submit(Gate([ids[0]], closed=True)),
            house.admit(),
        )
        await house.sound()
        await house.database.committer.submit(Gate([ids[0]], closed=False))
    await _emptied(house, worker)


async def test_two_servers_admit_one_task_at_a_time(two_houses: tuple[House, House]) -> None:
    first, second = two_houses
    one, two = first.worker(), second.worker()
    await keyed(first, 20)
    done = 0
    for _ in range(200):
        await asyncio.gather(first.claimed(one, 2), second.claimed(two, 2))
        await asyncio.gather(first.dispatcher.close(), second.dispatcher.close())
        offers = [(first, offer) for offer in one.offers] + [(second, offer) for offer in two.offers]
        one.offers, two.offers = [], []
        assert len(offers) <= 1
        for house, offer in offers:
            await house.report(offer, Said.SUCCEEDED, result=1)
            done += 1
        await asyncio.gather(first.admit(), second.admit())
        await first.sound()
        if done == 20:
            break
    assert done == 20
    row = await key(first)
    assert (row.held, row.waiting, row.admit_at) == (0, 0, None)


async def _emptied(house: House, worker: Worker) -> None:
    """Everything that was submitted comes to its end: nobody is left asleep."""
    for _ in range(200):
        await house.admit()
        await house.claimed(worker, 9)
        offers, worker.offers = worker.offers, []
        for offer in offers:
            await house.report(offer, Said.SUCCEEDED, result=1)
        row = await key(house)
        if row.held == row.waiting == 0:
            return
    raise AssertionError(f"somebody is left: {row}")


async def test_many_keyed_tasks_whose_time_is_over_are_ended_by_one_claim(house: House) -> None:
    ids = [await house.submit(concurrency_key=f"k:{n}", start_within_ms=60_000) for n in range(9)]
    for task_id in ids:
        await house.set_task(task_id, latest_start_at=1)
    assert await taken(house, house.worker(), 20) == []
    assert {(await house.task(one)).state for one in ids} == {TaskState.EXPIRED}
    await house.sound()


async def test_offers_of_many_keys_go_back_when_their_worker_returns_without_having_begun(
    house: House,
) -> None:
    careful = house.worker(handlers={WORK: Recovery.CONSERVATIVE}, nonce="n" * 32)
    for n in range(9):
        await house.submit(concurrency_key=f"k:{n}", recovery=Recovery.CONSERVATIVE)
    offers = await taken(house, careful, 20)
    order = BindAttempts(SPACE, "5" * 32, "n" * 32, tuple(map(held, offers)), (), house.times)
    answers = await house.database.committer.submit(order)
    assert [one.answer for one in answers.values()] == ["STOP"] * 9
    await house.sound()
