"""A server's Pulse without its edges, and workers made of lists."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import text

from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.clock import Clock, SystemClock, new_seed
from orbit_server.platform.audit import AUDIT
from orbit_server.pulse.dispatch.dispatcher import Dispatcher
from orbit_server.pulse.dispatch.sessions import HandlerKey, Offer, SessionFacts
from orbit_server.pulse.keys.sweeps import sweep_keys
from orbit_server.pulse.limits.commands import SetKeyClass, SetLimits
from orbit_server.pulse.queues.rows import KINDS as QUEUE_KINDS
from orbit_server.pulse.sweeps import SweepReport, sweep_due
from orbit_server.pulse.tasks.attempts import (
    Held,
    RecordAnswer,
    RecordResult,
    Renewal,
    RenewLeases,
    StartAnswer,
    StartAttempt,
)
from orbit_server.pulse.tasks.commands import By, SubmitTask
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.limits.decide import Settings
from orbit_server.pulse.tasks.operations import NewTask
from orbit_server.pulse.tasks.queries import attempts_of, evidence_of, get_detail
from orbit_server.pulse.tasks.records import Attempt, Evidence, Task, TaskResult
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.pulse.tasks.rows import KINDS
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.commands import CommandKey
from orbit_server.storage.database import Database
from orbit_server.storage.settings import StorageSettings
from orbit_server.verify import RULES

SPACE = derive_id("namespace", "test")
WORK: HandlerKey = ("work", 1)


@dataclass
class Worker:
    """A session that keeps what it is given."""

    facts: SessionFacts
    offers: list[Offer] = field(default_factory=list)
    cancels: list[Id] = field(default_factory=list)
    number: int = 0
    pushed: asyncio.Event = field(default_factory=asyncio.Event)

    def push(self, offers: Sequence[Offer]) -> None:
        self.offers.extend(offers)
        self.pushed.set()

    def tell_cancel(self, attempt_ids: Sequence[Id]) -> None:
        self.cancels.extend(attempt_ids)


def held(offer: Offer) -> Held:
    return Held(offer.task_id, offer.attempt_id, offer.generation)


def said(word: Said, **told: Any) -> Told:
    return Told(word, **told)


class House:
    """Everything of one node that these tests need."""

    def __init__(
        self, url: str, times: PulseTimes, *, cluster: bool = False, clock: Clock | None = None
    ) -> None:
        self.url = url
        self.times = times
        self.clock = clock or SystemClock()
        self.hints: list[object] = []
        self.dispatcher = Dispatcher(self.clock, times, cluster=cluster)
        settings = StorageSettings(
            clock=self.clock, finalizers=(self.dispatcher.finalizer,), on_commit=self._on_commit, seed=1
        )
        self.database = Database(url, kinds=[*KINDS, *QUEUE_KINDS, AUDIT], settings=settings)
        self.dispatcher.attach(self.database)

    async def __aenter__(self) -> Self:
        await self.database.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.dispatcher.close()
        await self.database.close()

    def _on_commit(self, hints: Sequence[object]) -> None:
        self.hints.extend(hints)
        self.dispatcher.on_hints(hints)

    # --- workers ---

    def worker(
        self,
        *,
        slots: int = 0,
        handlers: Mapping[HandlerKey, Recovery] | None = None,
        can_verify: frozenset[HandlerKey] = frozenset(),
        nonce: str | None = None,
        queue: str = "jobs",
    ) -> Worker:
        facts = SessionFacts(
            id=secrets.token_hex(16),
            namespace_id=SPACE,
            nonce=nonce or secrets.token_hex(16),
            worker="w",
            build="b1",
            queues=frozenset({queue}),
            handlers=handlers or {WORK: Recovery.READ_ONLY},
            can_verify=can_verify,
        )
        worker = Worker(facts)
        self.dispatcher.add(worker)
        if slots:
            self.ready(worker, slots)
        return worker

    def ready(self, worker: Worker, slots: int) -> None:
        worker.number += 1
        self.dispatcher.announce(worker.facts.id, worker.number, {}, total=slots)

    async def start(self, worker: Worker, offer: Offer, *, nonce: str | None = None) -> StartAnswer:
        return await self.database.committer.submit(
            StartAttempt(SPACE, worker.facts.id, nonce or worker.facts.nonce, held(offer), self.times)
        )

    async def report(self, offer: Offer, word: Said, **told: Any) -> RecordAnswer:
        return await self.database.committer.submit(
            RecordResult(SPACE, held(offer), report_of(Told(word, **told)), offer.task_id, times=self.times)
        )

    # --- tasks ---

    def new(self, **changes: Any) -> NewTask:
        parameters = canonical_json(changes.pop("parameters", {"n": 1}))
        values: dict[str, Any] = {
            "id": new_seed(self.clock).nth(0),
            "namespace_id": SPACE,
            "queue": "jobs",
            "handler": "work",
            "handler_version": 1,
            "parameters": parameters,
            "parameters_digest": digest(parameters),
            "effect_key": "effect",
            "recovery": Recovery.IDEMPOTENT,
        }
        return NewTask(**(values | changes))

    async def submit(self, *, key: CommandKey | None = None, **changes: Any) -> Id:
        timing = {
            name: changes.pop(name)
            for name in ("delay_ms", "start_within_ms", "total_timeout_ms", "limits")
            if name in changes
        }
        answer = await self.database.committer.submit(SubmitTask(key, self.new(**changes), **timing))
        return str(answer["task_id"])

    def by(self, **changes: Any) -> By:
        values: dict[str, Any] = {"actor": "ada", "reason": "because", "seed": new_seed(self.clock)}
        return By(**(values | changes))

    async def claimed(self, worker: Worker, slots: int = 1) -> list[Offer]:
        """Let the worker take work and give what it got."""
        before = len(worker.offers)
        self.ready(worker, slots)
        for lane in self.dispatcher._slots.served():  # a look at everything, as the loop does once a second
            self.dispatcher._mark([lane])
        await self.dispatcher.run_once()
        return worker.offers[before:]

    async def task(self, task_id: Id) -> Task:
        detail = await self.database.read(lambda conn: get_detail(conn, SPACE, task_id))
        assert detail is not None
        return detail.task

    async def result(self, task_id: Id) -> TaskResult | None:
        detail = await self.database.read(lambda conn: get_detail(conn, SPACE, task_id))
        assert detail is not None
        return detail.result

    async def attempts(self, task_id: Id) -> list[Attempt]:
        return await self.database.read(lambda conn: attempts_of(conn, task_id))

    async def evidence(self, task_id: Id) -> list[Evidence]:
        return await self.database.read(lambda conn: evidence_of(conn, task_id))

    async def set_task(self, task_id: Id, **columns: object) -> None:
        """Move a task's instants as time would, or damage its row as no code of ours does."""
        sets = ", ".join(f"{name} = :{name}" for name in columns)
        await self.database.write(
            lambda conn: conn.execute(
                text(f"UPDATE tasks SET {sets} WHERE id = :id"),
                {"id": task_id, **columns},
            )
        )

    async def swept_due(self) -> SweepReport:
        """Look for what is due, now."""
        return await sweep_due(self.database, await self.database.now(), self.times)

    async def renew(self, worker: Worker, offer: Offer) -> Renewal | None:
        order = RenewLeases(SPACE, worker.facts.id, (held(offer),), self.times)
        return (await self.database.committer.submit(order))[offer.attempt_id]

    async def reopened(self) -> House:
        """This server stopped, and another started on the same database; it is closed with this one."""
        await self.database.close()
        again = House(self.url, self.times)
        await again.database.open()
        self.database = again.database
        return again

    async def limit(self, queue: str | None = "jobs", **settings: Any) -> None:
        """Set the limits of the queue (None: of the namespace); the dispatcher learns of it by its hint."""
        order = SetLimits(None, SPACE, queue, Settings(**settings), self.by())
        await self.database.committer.submit(order)

    async def key_class(self, name: str, most: int) -> None:
        """So many tasks of each key of the class at once."""
        await self.database.committer.submit(SetKeyClass(None, SPACE, "jobs", name, most, self.by()))

    async def admit(self, *, later_ms: int = 0) -> int:
        """Look at the keys that are due; answers how many tasks were admitted."""
        at = await self.database.now() + later_ms * 1000
        return (await sweep_keys(self.database, at)).moved

    async def sound(self) -> None:
        """No rule about leases, permits and keys is broken."""
        found = await self.database.read(
            lambda conn: [
                str(finding)
                for rule in RULES
                if rule.number in (1, 2)
                for probe in rule.probes
                if "instances" not in probe.sql
                for finding in probe.run(conn, rule.number)
            ]
        )
        assert found == []

    async def lease_ran_out(self, task_id: Id, *, by_ms: int = 10_000) -> None:
        """As if the lease had ended so long ago."""
        now = await self.database.now()
        await self.set_task(task_id, lease_until=now - by_ms * 1000)
