"""Random histories of limits and keys on a real database: permits, places and waiters always agree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from orbit_sdk.errors import OrbitError, ResourceExhausted
from orbit_server.pulse.sweeps import sweep_deadlines, sweep_leases
from orbit_server.pulse.tasks.commands import CancelTask
from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from orbit_server.pulse.tasks.limits.records import limit_id_of
from orbit_server.pulse.tasks.reconnect import ReturnOffers
from orbit_server.pulse.times import PulseTimes
from tests.storage.pulse.house import SPACE, WORK, House, held
from tests.storage.pulse.test_keys import CreateInside, Gate

TIMES = PulseTimes(lease_ms=600_000)
KEYS = st.sampled_from([None, "acct:1", "acct:2", "plain"])
RECOVERY = st.sampled_from([Recovery.IDEMPOTENT, Recovery.CONSERVATIVE, Recovery.READ_ONLY])


class PermitMachine(RuleBasedStateMachine):
    """Each history begins with an empty database, so that one that failed can be replayed."""

    empty_url: Callable[[], str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.house = House(type(self).empty_url(), TIMES)
        self.run(self.house.__aenter__())
        self.worker = self.house.worker(handlers={WORK: Recovery.IDEMPOTENT}, can_verify=frozenset({WORK}))
        self.tasks: list[str] = []

    def run(self, job: Any) -> Any:
        return self.runner.run(job)

    def teardown(self) -> None:
        self.run(self.house.__aexit__())
        self.runner.close()

    def one(self, pick: int) -> str | None:
        return self.tasks[pick % len(self.tasks)] if self.tasks else None

    @rule(key=KEYS, recovery=RECOVERY, fair=st.booleans(), delay=st.booleans(), counted=st.booleans())
    def submit(self, key: str | None, recovery: Recovery, fair: bool, delay: bool, counted: bool) -> None:
        changes: dict[str, Any] = {"concurrency_key": key, "recovery": recovery}
        changes["fairness_key"] = "shop" if fair else None
        if delay:
            changes["delay_ms"] = 60_000
        if counted:
            changes["limits"] = (limit_id_of(SPACE, "jobs"), limit_id_of(SPACE))
        try:
            self.tasks.append(self.run(self.house.submit(**changes)))
        except ResourceExhausted:
            assert counted

    @rule()
    def create_inside(self) -> None:
        self.tasks.append(self.run(self.house.database.committer.submit(CreateInside(self.house))))

    @rule(slots=st.integers(1, 4))
    def claim(self, slots: int) -> None:
        self.run(self.house.claimed(self.worker, slots))

    @rule(
        pick=st.integers(0, 9),
        word=st.sampled_from([Said.SUCCEEDED, Said.EXCEPTION, Said.HAND_BACK, Said.RETRYABLE]),
    )
    def report(self, pick: int, word: Said) -> None:
        offers = self.worker.offers
        if offers:
            offer = offers.pop(pick % len(offers))
            if not offer.started:
                self.run(self.house.start(self.worker, offer))
            self.run(self.house.report(offer, word, result=1, code="E", effect_unknown=False))

    @rule(pick=st.integers(0, 9))
    def hand_back(self, pick: int) -> None:
        offers = self.worker.offers
        if offers:
            offer = offers[pick % len(offers)]
            order = ReturnOffers(SPACE, self.worker.facts.id, offers=(held(offer),), times=TIMES)
            self.run(self.house.database.committer.submit(order))

    @rule(pick=st.integers(0, 50))
    def lose(self, pick: int) -> None:
        task_id = self.one(pick)
        if task_id is None or self.run(self.house.task(task_id)).lease_until is None:
            return
        self.run(self.house.lease_ran_out(task_id))

        async def sweep() -> None:
            await sweep_leases(self.house.database, await self.house.database.now(), TIMES)

        self.run(sweep())

    @rule(pick=st.integers(0, 50))
    def cancel(self, pick: int) -> None:
        task_id = self.one(pick)
        if task_id is not None:
            order = CancelTask(None, SPACE, task_id, self.house.by())
            self.run(self.house.database.committer.submit(order))

    @rule(first=st.integers(0, 50), closed=st.booleans())
    def gate(self, first: int, closed: bool) -> None:
        ids = sorted({one for n in range(3) if (one := self.one(first + n)) is not None})
        if ids:
            self.run(self.house.database.committer.submit(Gate(ids, closed=closed)))

    @rule(pick=st.integers(0, 50))
    def due(self, pick: int) -> None:
        task_id = self.one(pick)

        async def sweep() -> None:
            now = await self.house.database.now()
            if task_id is not None and (await self.house.task(task_id)).due_at is not None:
                await self.house.set_task(task_id, due_at=now)
            await self.house.swept_due()

        self.run(sweep())

    @rule(pick=st.integers(0, 50))
    def expire(self, pick: int) -> None:
        task_id = self.one(pick)
        waits = (TaskState.READY, TaskState.SCHEDULED, TaskState.RETRY_WAIT)
        if task_id is None or self.run(self.house.task(task_id)).state not in waits:
            return

        async def sweep() -> None:
            await self.house.set_task(task_id, deadline_at=1, latest_start_at=1)
            await sweep_deadlines(self.house.database, await self.house.database.now(), TIMES)

        self.run(sweep())

    @rule(later=st.sampled_from([0, 6_000]))
    def admit(self, later: int) -> None:
        self.run(self.house.admit(later_ms=later))

    @rule(
        most=st.none() | st.integers(0, 3),
        backlog=st.none() | st.integers(1, 20),
        queue=st.sampled_from(["jobs", None]),
    )
    def limit(self, most: int | None, backlog: int | None, queue: str | None) -> None:
        try:
            self.run(self.house.limit(queue, running_max=most, backlog_max=backlog))
        except OrbitError as error:
            raise AssertionError(error) from error

    @rule(name=st.sampled_from(["acct", "default"]), most=st.integers(1, 3))
    def key_class(self, name: str, most: int) -> None:
        self.run(self.house.key_class(name, most))

    @invariant()
    def sound(self) -> None:
        self.run(self.house.sound())


def test_permits_places_and_waiters_agree_in_every_history(empty_url: Callable[[], str]) -> None:
    class Machine(PermitMachine):
        pass

    Machine.empty_url = staticmethod(empty_url)
    count = 12 if empty_url().startswith("sqlite") else 6
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Machine,
        settings=settings(
            max_examples=count,
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
