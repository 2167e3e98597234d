"""Clients that keep their own books of what was acknowledged, and never believe anything else."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from orbit_sdk.client import OrbitClient
from orbit_sdk.errors import Code, OrbitError
from tests.crash.channel import Ledger
from tests.crash.flows import DONE, GO, Order, Status, Word, chain, fan, question
from tests.crash.people import TERMINAL

OPEN_MOST = 12
"""Workflows of one client that may be open at once."""
RECOVERIES = {
    "storm.put": "IDEMPOTENT",
    "storm.send": "VERIFIABLE",
    "storm.stamp": "MARKED",
    "storm.pay": "CONSERVATIVE",
}


@dataclass
class Books:
    """By the client's own key. `unsure` holds requests that were never answered: they may be there or not."""

    started: dict[str, tuple[str, str, Order]] = field(default_factory=dict)
    """key: (workflow id, definition id, order)"""
    submitted: dict[str, str] = field(default_factory=dict)
    signalled: dict[str, tuple[str, str]] = field(default_factory=dict)
    """key: (signal id, workflow id)"""
    cancelled: set[str] = field(default_factory=set)
    """Ids of workflows whose cancel was acknowledged."""
    maybe_cancelled: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    finished: dict[str, str] = field(default_factory=dict)
    """workflow id: the terminal state that was shown once; it may never be another one again."""
    wrong: list[str] = field(default_factory=list)


class SoakClient:
    """Starts, submits, signals, pauses, resumes and cancels; writes down what the server said."""

    def __init__(self, name: str, client: OrbitClient, ledger: Ledger, seed: int) -> None:
        self.name = name
        self.client = client
        self.ledger = ledger
        self.books = Books()
        self.random = random.Random(seed)
        self.open: list[str] = []
        self._numbers = 0

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await asyncio.sleep(self.random.random() * 0.2)
            await self.one()

    async def one(self) -> None:
        work = self.random.choices(
            [self.start, self.submit, self.repeat, self.control, self.look], [5, 2, 2, 1, 4]
        )[0]
        if work == self.start and len(self.open) >= OPEN_MOST:
            work = self.look
        try:
            await work()
        except OrbitError as error:
            if error.code not in (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED):
                self.books.wrong.append(f"{self.name} {work.__name__}: {error.code.value} {error}")

    def key(self) -> str:
        self._numbers += 1
        return f"{self.name}-{self._numbers}"

    async def start(self) -> None:
        key = self.key()
        workflow: Any = self.random.choice((chain, fan, question))
        order = Order(name=key, outcome=self.random.choice(("fine", "refused", "receipt")))
        self.books.unsure.add(key)
        handle = await self.client.start(workflow, order, idempotency_key=key, business_key=key)
        self.books.unsure.discard(key)
        self.books.started[key] = (handle.id, workflow.id, order)
        self.open.append(key)
        if workflow is fan or (workflow is question and order.outcome == "receipt"):
            await self.signal(key)

    async def signal(self, key: str) -> None:
        workflow_id, definition, _ = self.books.started[key]
        signal, body = (GO, Word(text="go")) if definition == fan.id else (DONE, Status(state="done"))
        receipt = await self.client.workflows.signal(
            workflow_id, signal.name, key, signal.dump_body(body), idempotency_key=f"signal-{key}"
        )
        known = self.books.signalled.setdefault(key, (receipt.id, workflow_id))
        if known[0] != receipt.id:
            self.books.wrong.append(f"signal-{key} was answered with {known[0]} and {receipt.id}")

    async def submit(self) -> None:
        key = self.key()
        handler = self.random.choice(list(RECOVERIES))
        task = {
            "queue": "storm",
            "handler": handler,
            "handler_version": 1,
            "recovery": RECOVERIES[handler],
            "can_verify": handler == "storm.send",
            "business_key": key,
            "parameters": {"name": key},
            "retry": {"max_attempts": 15, "backoff_ms": 100, "max_backoff_ms": 500},
        }
        if self.random.random() < 0.3:
            task["delay_ms"] = self.random.randint(100, 3000)
        self.books.unsure.add(key)
        found = await self.client.tasks.submit(task, idempotency_key=key)
        self.books.unsure.discard(key)
        self.books.submitted[key] = found.id

    async def repeat(self) -> None:
        """An old request again, under its own key: the same answer as ever."""
        if not self.books.started:
            return
        key = self.random.choice(list(self.books.started))
        workflow_id, definition, order = self.books.started[key]
        workflow: Any = {one.id: one for one in (chain, fan, question)}[definition]
        if self.random.random() < 0.2:
            await self.misuse(workflow, key)
            return
        again = await self.client.start(workflow, order, idempotency_key=key, business_key=key)
        if again.id != workflow_id:
            self.books.wrong.append(f"start {key} was answered with {workflow_id} and {again.id}")

    async def misuse(self, workflow: Any, key: str) -> None:
        """The key of another request: refused, whatever else happens."""
        try:
            await self.client.start(workflow, Order(name=f"not {key}"), idempotency_key=key, business_key=key)
        except OrbitError as error:
            if error.code is not Code.CONFLICT:
                raise
        else:
            self.books.wrong.append(f"the key {key} was accepted for another request")

    async def control(self) -> None:
        if not self.open:
            return
        key = self.random.choice(self.open)
        workflow_id = self.books.started[key][0]
        try:
            if self.random.random() < 0.4:
                self.books.maybe_cancelled.add(workflow_id)
                await self.client.workflows.cancel(workflow_id, reason="a soak", operation_id=f"c-{key}")
                self.books.cancelled.add(workflow_id)
                return
            turn = self.key()
            await self.client.workflows.pause(workflow_id, reason="a soak", operation_id=f"p-{turn}")
            await asyncio.sleep(self.random.random())
            await self.client.workflows.resume(workflow_id, reason="a soak", operation_id=f"r-{turn}")
        except OrbitError as error:
            if error.code is not Code.FAILED_PRECONDITION:  # it had ended meanwhile
                raise

    async def look(self) -> None:
        if not self.open:
            return
        key = self.random.choice(self.open)
        await self.follow(key)

    async def follow(self, key: str) -> None:
        """See whether it has ended; lift a pause that an unanswered request may have left."""
        workflow_id, definition, order = self.books.started[key]
        found = await self.client.workflows.get(workflow_id)
        if found.state in TERMINAL:
            self.books.finished[workflow_id] = found.state
            if key in self.open:
                self.open.remove(key)
            return
        if found.paused and self.random.random() < 0.5:
            try:
                await self.client.workflows.resume(workflow_id, reason="a soak")
            except OrbitError as error:
                if error.code is not Code.FAILED_PRECONDITION:
                    raise
        needs = definition == fan.id or (definition == question.id and order.outcome == "receipt")
        if needs and key not in self.books.signalled:
            await self.signal(key)
