"""A whole server on paper: real database, committer, dispatcher and commands; only the worker's socket is
missing.

The paper worker answers each offer by calling a function of the test.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import text

from orbit_sdk.engine import Verdict, match_key
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id, derive_id
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_server.clock import Clock, SystemClock, new_seed
from orbit_server.platform.audit import AUDIT
from orbit_server.pulse.dispatch.dispatcher import Dispatcher
from orbit_server.pulse.dispatch.sessions import Offer, SessionFacts
from orbit_server.pulse.queues.rows import KINDS as QUEUE_KINDS
from orbit_server.pulse.sweeps import sweep_due
from orbit_server.pulse.tasks.attempts import Held, RecordResult, StartAnswer, StartAttempt
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.pulse.tasks.rows import KINDS as TASK_KINDS
from orbit_server.storage.commands import CommandKey
from orbit_server.storage.database import Database
from orbit_server.storage.faults import Faults
from orbit_server.storage.migrations import migrate
from orbit_server.storage.settings import StorageSettings
from orbit_server.weave.control.commands import Action, ControlWorkflow
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.definitions.publish import check_document, publish
from orbit_server.weave.definitions.rows import KINDS as DEFINITION_KINDS
from orbit_server.weave.instances import queries
from orbit_server.weave.instances.start import StartWorkflow
from orbit_server.weave.reviews.commands import ResolveStep
from orbit_server.weave.service import companion_factory, send
from orbit_server.weave.signals.commands import SendSignal
from orbit_server.weave.state.rows import KINDS as INSTANCE_KINDS
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.signals import KINDS as SIGNAL_KINDS
from orbit_server.weave.state.signals import signal_id
from orbit_server.weave.sweeps.inbox import sweep_inbox
from orbit_server.weave.sweeps.signals import sweep_signals
from orbit_server.weave.sweeps.steps import sweep_advances, sweep_due_steps

KINDS = (*TASK_KINDS, *QUEUE_KINDS, *DEFINITION_KINDS, *INSTANCE_KINDS, *SIGNAL_KINDS, AUDIT)
NAMESPACE = derive_id("namespace", "test")

Play = Callable[[Offer], Told]


@dataclass
class PaperWorker:
    """A session that plays every offer at once, unless it is told to hold them back."""

    server: Paper
    facts: SessionFacts
    held: list[Offer] = field(default_factory=list)
    holding: bool = False

    def push(self, offers: Sequence[Offer]) -> None:
        for offer in offers:
            if self.holding:
                self.held.append(offer)
            else:
                self.server.later(self.play(offer))

    def tell_cancel(self, attempt_ids: Sequence[Id]) -> None:
        """Nothing listens here."""

    async def play(self, offer: Offer) -> None:
        if not offer.started and not (await self.start(offer)).granted:
            return
        await self.report(offer, self.server.plays[offer.handler](offer))

    async def start(self, offer: Offer) -> StartAnswer:
        held = Held(offer.task_id, offer.attempt_id, offer.generation)
        order = StartAttempt(NAMESPACE, self.facts.id, self.facts.nonce, held)
        return await self.server.database.committer.submit(order)

    async def report(self, offer: Offer, told: Told) -> None:
        companion = None
        if offer.workflow_id is not None and self.server.companions:
            companion = self.server.companion(offer.workflow_id, offer.task_id)
        held = Held(offer.task_id, offer.attempt_id, offer.generation)
        lane = offer.workflow_id or offer.task_id
        await self.server.database.committer.submit(
            RecordResult(NAMESPACE, held, report_of(told), lane, companion)
        )
        self.server.announce(self)


class Paper:
    """See the module. `plays` maps handler names to what their worker says."""

    def __init__(
        self,
        url: str,
        plays: Mapping[str, Play] | None = None,
        *,
        clock: Clock | None = None,
        faults: Faults | None = None,
        companions: bool = True,
    ) -> None:
        self.url = url
        self.plays = dict(plays or {})
        self.clock = clock or SystemClock()
        self.faults = faults
        self.companions = companions
        self.dispatcher = Dispatcher(self.clock)
        self._jobs: set[asyncio.Task[Any]] = set()
        self._stack = AsyncExitStack()
        self._ready = itertools.count(1)
        self._keys = (f"{secrets.token_hex(4)}-{n}" for n in itertools.count(1))
        self._slots: dict[str, int] = {"jobs": 16}

    async def __aenter__(self) -> Self:
        migrate(self.url)
        settings = StorageSettings(
            clock=self.clock,
            finalizers=(self.dispatcher.finalizer,),
            on_commit=self.dispatcher.on_hints,
            seed=1,
            faults=self.faults,
        )
        self.database = await self._stack.enter_async_context(
            Database(self.url, kinds=KINDS, settings=settings)
        )
        self.dispatcher.attach(self.database)
        self.weave = Weave(Catalog(self.database))
        self.companion = companion_factory(self.weave, self.seed)
        self.later(self.dispatcher.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self._stack.aclose()

    def seed(self) -> Any:
        return new_seed(self.clock)

    def later(self, work: Any) -> None:
        job = asyncio.ensure_future(work)
        self._jobs.add(job)
        job.add_done_callback(self._done)

    def _done(self, job: asyncio.Task[Any]) -> None:
        self._jobs.discard(job)
        if not job.cancelled() and job.exception() is not None:
            raise job.exception()  # type: ignore[misc]

    def worker(
        self,
        queue: str = "jobs",
        slots: int = 16,
        handlers: Sequence[str] = (),
        recovery: str = "IDEMPOTENT",
    ) -> PaperWorker:
        facts = SessionFacts(
            id=new_seed(self.clock).nth(0),
            namespace_id=NAMESPACE,
            nonce="nonce",
            worker="paper",
            build="1",
            queues=frozenset({queue}),
            handlers={(name, 1): Recovery(recovery) for name in handlers or self.plays},
        )
        worker = PaperWorker(self, facts)
        self._slots = {queue: slots}
        self.dispatcher.add(worker)
        self.announce(worker)
        return worker

    def announce(self, worker: PaperWorker) -> None:
        self.dispatcher.announce(worker.facts.id, next(self._ready), self._slots)

    async def publish(self, document: dict[str, Any], *, current: bool = True) -> Any:
        checked = check_document(document, DEFAULT_LIMITS)
        return await publish(
            self.database,
            self.weave.catalog,
            checked,
            namespace_id=NAMESPACE,
            side=None,
            current=current,
            actor="tester",
            seed=self.seed(),
        )

    async def start(self, given: Any = None, *, key: str | None = None, **more: Any) -> Id:
        seed = self.seed()
        key = key or f"start-{next(self._keys)}"
        command = StartWorkflow(
            key=CommandKey(NAMESPACE, "workflow.start", key, digest(given)),
            instance_id=seed.nth(999_999),
            namespace_id=NAMESPACE,
            definition_id=more.pop("definition_id", "test.flow"),
            version=more.pop("version", None),
            input=given,
            started_by="tester",
            seed=seed,
            weave=self.weave,
            **more,
        )
        answer = await send(self.database, self.weave, command)
        return str(answer["id"])

    async def signal(  # a request, read by name
        self,
        instance_id: Id,
        signal: str = "approval",
        match: Any = "m",
        body: Any = None,
        key: str | None = None,
        **more: Any,
    ) -> Any:
        key = key or f"signal-{next(self._keys)}"
        command = SendSignal(
            signal_id=signal_id(instance_id, key),
            namespace_id=NAMESPACE,
            instance_id=instance_id,
            signal=signal,
            match_key=match_key(match),
            body=body,
            digest=digest([signal, match, body]),
            actor="approver",
            seed=self.seed(),
            weave=self.weave,
            **more,
        )
        return await send(self.database, self.weave, command)

    async def control(
        self, instance_id: Id, action: Action, *, expected: int | None = None, key: str | None = None
    ) -> Any:
        command = ControlWorkflow(
            key=CommandKey(
                NAMESPACE,
                f"workflow.{action}",
                key or f"operation-{next(self._keys)}",
                digest([instance_id, expected]),
            ),
            action=action,
            instance_id=instance_id,
            namespace_id=NAMESPACE,
            expected_control_version=expected,
            actor="operator",
            reason="a test",
            seed=self.seed(),
            weave=self.weave,
        )
        return await send(self.database, self.weave, command)

    async def conclude(self, instance_id: Id, step_key: str, revision: int, verdict: str, **more: Any) -> Any:
        more = {"basis": "PROVEN", "evidence": "seen in the ledger", **more}
        command = ResolveStep(
            key=CommandKey(NAMESPACE, "workflow.review", f"operation-{next(self._keys)}", digest(step_key)),
            instance_id=instance_id,
            namespace_id=NAMESPACE,
            step_key=step_key,
            verdict=Verdict(verdict),
            expected_revision=revision,
            actor="operator",
            reason="a test",
            seed=self.seed(),
            weave=self.weave,
            **more,
        )
        return await send(self.database, self.weave, command)

    async def sweep(self) -> None:
        """Every loop of Weave once, and the one that makes retries ready."""
        await sweep_due(self.database, await self.database.now())
        await sweep_inbox(self.database, self.weave, self.seed)
        await sweep_due_steps(self.database, self.weave, self.seed)
        await sweep_advances(self.database, self.weave, self.seed)
        await sweep_signals(self.database, self.weave, self.seed)

    async def show(self, instance_id: Id) -> Any:
        found = await self.database.read(lambda conn: queries.get(conn, NAMESPACE, instance_id))
        assert found is not None
        return found

    async def steps(self, instance_id: Id) -> dict[str, Any]:
        found = await self.database.read(lambda conn: queries.latest_steps(conn, instance_id))
        return {item.row.step_key: item.row for item in found}

    async def rows(self, sql: str, **values: Any) -> list[Any]:
        """What a query finds."""
        return await self.database.read(lambda conn: list(conn.execute(text(sql), values)))

    async def set(self, sql: str, **values: Any) -> None:
        """Move instants as time would, or damage rows as no code of ours does."""
        await self.database.write(lambda conn: conn.execute(text(sql), values).rowcount)

    async def held(self, worker: PaperWorker, count: int = 1, of: Id | None = None) -> list[Offer]:
        """Wait until the holding worker has so many offers (of one workflow), and take them."""
        for _ in range(500):
            taken = [offer for offer in worker.held if of in (None, offer.workflow_id)]
            if len(taken) >= count:
                worker.held = [offer for offer in worker.held if offer not in taken]
                return taken
            await self.sweep()
            await asyncio.sleep(0.01)
        raise AssertionError(f"the worker holds {len(worker.held)} offers, not {count}")

    async def settled(self, instance_id: Id, rounds: int = 6) -> Any:
        """Let everything run for a while; gives what is there then."""
        for _ in range(rounds):
            await self.sweep()
            await asyncio.sleep(0.005)
        return await self.show(instance_id)

    async def until(self, instance_id: Id, *states: str) -> Any:
        """Let everything run until the instance is in one of these states."""
        for _ in range(400):
            found = await self.show(instance_id)
            if found.row.state in states:
                return found
            await self.sweep()
            await asyncio.sleep(0.01)
        raise AssertionError(f"the instance is {found.row.state}: {await self.steps(instance_id)}")


def succeeds(result: Any = None) -> Play:
    """A worker that always succeeds."""
    return lambda _: Told(Said.SUCCEEDED, result=result)
