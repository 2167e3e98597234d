"""Races about a concurrency key, driven on purpose: every order of two commands, and both at once.

What an admission names was read before the race, as the sweep does it. On MariaDB the two sides are two
servers. `ORBIT_STORM_KEYED` sets how many tasks the flood has (400 by default).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.keys.commands import Admit
from orbit_server.pulse.keys.queries import admission, due_keys
from orbit_server.pulse.queues.commands import PauseQueue
from orbit_server.pulse.tasks.commands import CancelTask
from orbit_server.pulse.tasks.keys.records import KeyRow, class_id_of, key_id_of
from orbit_server.pulse.tasks.keys.rows import KEYS
from orbit_server.pulse.tasks.lifecycle import Block, Said, TaskState
from tests.storage.pulse.conftest import TIMES
from tests.storage.pulse.house import SPACE, House, Worker
from tests.storage.pulse.test_keys import Gate

ROUNDS = 8
FLOOD = int(os.environ.get("ORBIT_STORM_KEYED", "400"))
KEY, CLASS = key_id_of(SPACE, "jobs", "acct:9"), class_id_of(SPACE, "jobs", "acct")
Act = Callable[[], Awaitable[Any]]


@dataclass
class Ring:
    """Two sides of a race: two servers over one MariaDB, or one over a file; a worker at the first."""

    one: House
    two: House
    worker: Worker

    async def keyed(self, count: int, **changes: Any) -> list[str]:
        return [await self.one.submit(concurrency_key="acct:9", **changes) for _ in range(count)]

    async def taken(self, slots: int = 9) -> list[Offer]:
        """What the worker gets; then it has no room, so that nothing of the race is claimed on the way."""
        await self.one.claimed(self.worker, slots)
        self.one.ready(self.worker, 0)
        offers, self.worker.offers = self.worker.offers, []
        return offers

    async def stale(self) -> Admit:
        """What a sweep has read and not sent yet."""
        at = await self.two.database.now() + 1
        return await self.two.database.read(lambda conn: admission(conn, KEY, CLASS, at))

    async def admit(self, command: Admit) -> int:
        return await self.two.database.committer.submit(command)

    async def done(self, offer: Offer) -> None:
        await self.one.report(offer, Said.SUCCEEDED, result=1)

    async def cancel(self, task_id: str) -> None:
        await self.one.database.committer.submit(CancelTask(None, SPACE, task_id, self.one.by()))

    async def gate(self, task_id: str, *, closed: bool) -> None:
        await self.one.database.committer.submit(Gate([task_id], closed=closed))

    async def pause(self, *, paused: bool) -> None:
        order = PauseQueue(None, SPACE, "jobs", paused=paused, by=self.one.by())
        await self.one.database.committer.submit(order)

    async def key(self) -> KeyRow:
        row: KeyRow = (await self.one.database.read(lambda conn: KEYS.load(conn, [KEY])))[KEY]
        return row

    async def blocked(self, ids: Sequence[str]) -> list[int]:
        return [(await self.one.task(one)).blocked for one in ids]

    async def emptied(self) -> None:
        """Everything comes to its end by the ordinary way: nobody was left asleep."""
        for _ in range(100):
            await self.one.sound()
            for offer in await self.taken():
                await self.done(offer)
            await self.one.admit()
            row = await self.key()
            if row.held == row.waiting == 0 and not self.worker.offers:
                assert row.admit_at is None
                return
        raise AssertionError(f"somebody is left: {row}")


@pytest.fixture
async def ring(migrated_url: str) -> AsyncIterator[Ring]:
    async with AsyncExitStack() as stack:
        cluster = not migrated_url.startswith("sqlite")
        one = await stack.enter_async_context(House(migrated_url, TIMES, cluster=cluster))
        two = await stack.enter_async_context(House(migrated_url, TIMES, cluster=True)) if cluster else one
        yield Ring(one, two, one.worker())


async def race(turn: int, first: Act, second: Act) -> None:
    """One before the other, the other way round, or both at once."""
    match turn % 4:
        case 0:
            await first()
            await second()
        case 1:
            await second()
            await first()
        case _:
            await asyncio.gather(first(), second())


async def test_a_release_and_an_arrival_leave_nobody_asleep(ring: Ring) -> None:
    for turn in range(ROUNDS):
        await ring.keyed(1)
        (offer,) = await ring.taken()
        late: list[str] = []

        async def arrive(late: list[str] = late) -> None:
            late.append(await ring.two.submit(concurrency_key="acct:9"))

        await race(turn, lambda offer=offer: ring.done(offer), arrive)  # type: ignore[misc]
        row = await ring.key()
        assert (row.held, row.waiting) in ((1, 0), (0, 1))
        if row.waiting:
            assert row.admit_at is not None
            assert row.admit_at <= await ring.one.database.now()
        await ring.emptied()


async def test_two_releases_and_an_arrival_admit_no_more_than_there_is_room_for(ring: Ring) -> None:
    await ring.one.key_class("acct", 2)
    for turn in range(ROUNDS):
        ids = await ring.keyed(3)
        first, second = await ring.taken()
        named = await ring.stale()
        releases: list[Awaitable[Any]] = [ring.done(first), ring.two.report(second, Said.SUCCEEDED, result=1)]
        others: list[Awaitable[Any]] = [
            ring.two.submit(concurrency_key="acct:9"),
            ring.admit(named),
            ring.one.admit(),
        ]
        await asyncio.gather(*(releases + others if turn % 2 else others + releases))
        await ring.one.sound()
        row = await ring.key()
        assert row.held <= 2
        assert row.held + row.waiting == 2
        assert (await ring.one.task(ids[2])).state is TaskState.READY
        await ring.emptied()


async def test_a_waiter_whose_workflow_pauses_is_not_admitted_and_the_next_is(ring: Ring) -> None:
    for turn in range(ROUNDS):
        _, second, third = await ring.keyed(3)
        (offer,) = await ring.taken()
        await ring.done(offer)
        named = await ring.stale()
        assert named.waiters == (second, third)
        await race(turn, lambda two=second: ring.gate(two, closed=True), lambda it=named: ring.admit(it))  # type: ignore[misc]
        await ring.one.sound()
        await ring.one.admit()
        assert await ring.blocked([second, third]) == [Block.GATE | Block.KEY, 0]
        await ring.gate(second, closed=False)
        assert (await ring.key()).waiting == 1
        await ring.emptied()


async def test_a_waiter_that_is_cancelled_is_not_admitted_and_the_next_is(ring: Ring) -> None:
    for turn in range(ROUNDS):
        _, second, third = await ring.keyed(3)
        (offer,) = await ring.taken()
        await ring.done(offer)
        named = await ring.stale()
        await race(turn, lambda two=second: ring.cancel(two), lambda it=named: ring.admit(it))  # type: ignore[misc]
        await ring.one.sound()
        await ring.one.admit()
        assert (await ring.one.task(second)).state is TaskState.CANCELLED
        assert await ring.blocked([third]) == [0]
        await ring.emptied()


async def test_two_sweeps_that_read_the_same_line_admit_one_task(ring: Ring) -> None:
    for _ in range(ROUNDS):
        await ring.keyed(3)
        (offer,) = await ring.taken()
        await ring.done(offer)
        named = await ring.stale()
        admitted = await asyncio.gather(ring.admit(named), ring.one.database.committer.submit(named))
        assert sum(admitted) == 1
        await ring.emptied()


async def test_what_is_admitted_while_its_queue_is_paused_waits_for_the_resumption(ring: Ring) -> None:
    for turn in range(ROUNDS):
        await ring.keyed(3)
        (offer,) = await ring.taken()
        await ring.done(offer)
        named = await ring.stale()
        await race(turn, lambda: ring.pause(paused=True), lambda it=named: ring.admit(it))  # type: ignore[misc]
        row = await ring.key()
        assert (row.held, row.waiting) == (1, 1)
        assert await ring.taken() == []
        await ring.pause(paused=False)
        await ring.emptied()


async def test_a_release_during_a_pause_is_seen_when_the_queue_resumes(ring: Ring) -> None:
    for turn in range(ROUNDS):
        await ring.keyed(3)
        (offer,) = await ring.taken()
        await race(turn, lambda: ring.pause(paused=True), lambda it=offer: ring.done(it))  # type: ignore[misc]
        at = await ring.one.database.now()
        assert await ring.one.database.read(lambda conn, at=at: due_keys(conn, at)) == []  # type: ignore[misc]
        assert await ring.taken() == []
        await ring.pause(paused=False)
        assert await ring.one.admit() == 1
        await ring.emptied()


async def test_a_flood_of_one_key_is_worked_off_and_its_accounts_end_at_nothing(ring: Ring) -> None:
    most = 32
    await ring.one.key_class("acct", most)
    began = time.monotonic()
    ids: list[str] = []
    for first in range(0, FLOOD, 500):
        part = range(first, min(FLOOD, first + 500))
        ids += await asyncio.gather(
            *[(ring.one, ring.two)[n % 2].submit(concurrency_key="acct:9") for n in part]
        )
    flooded = time.monotonic()
    row = await ring.key()
    assert (row.held, row.waiting) == (most, FLOOD - most)
    await asyncio.gather(*[ring.cancel(one) for one in ids[::20]])
    done = 0
    while done < FLOOD - len(ids[::20]):
        offers = await ring.taken(2 * most)
        assert len(offers) <= most
        done += len(offers)
        await asyncio.gather(*[ring.done(offer) for offer in offers], ring.one.admit(), ring.two.admit())
        if not offers:
            await ring.one.admit()
        if done % (20 * most) < len(offers):
            assert (await ring.key()).held <= most
    print(f"{FLOOD} in {flooded - began:.1f} s, off in {time.monotonic() - flooded:.1f} s")
    await ring.emptied()
    row = await ring.key()
    assert (row.held, row.waiting, row.admit_at) == (0, 0, None)
