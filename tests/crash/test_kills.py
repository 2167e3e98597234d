"""Fifty workflows of three kinds while the server and its workers are killed eight times."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from tests.crash.channel import Ledger
from tests.crash.flows import DONE, GO, Order, Status, Word, chain, fan, question
from tests.crash.house import House, house
from tests.crash.people import Reviewer, ended, publish, unlike_what_happened, wrongs_of_effects
from tests.server import until

INSTANCES, KILLS = 50, 8
KINDS = (chain, fan, question)
OUTCOMES = ("fine", "refused", "receipt")


class Storm:
    """Starts workflows and kills what runs them, by a plan that follows from the seed alone."""

    def __init__(self, at: House, client: OrbitClient, seed: int) -> None:
        self.at = at
        self.client = client
        self.random = random.Random(seed)
        self.orders: dict[str, tuple[str, Order]] = {}
        self.signals: set[asyncio.Task[Any]] = set()

    async def start(self, number: int) -> None:
        workflow = KINDS[number % 3]
        order = Order(name=f"order-{number}", outcome=OUTCOMES[number // 3 % 3])
        handle = await self.client.start(workflow, order, idempotency_key=f"start-{number}")
        self.orders[handle.id] = (workflow.id, order)
        if workflow is fan or (workflow is question and order.outcome == "receipt"):
            self.signals.add(asyncio.create_task(self.signal(handle, workflow, order)))

    async def signal(self, handle: Any, workflow: Any, order: Order) -> None:
        await asyncio.sleep(self.random.random() * 0.5)
        signal, body = (GO, Word(text="go")) if workflow is fan else (DONE, Status(state="done"))
        for _ in range(2):  # whoever sends it is not sure that it arrived
            await handle.send(signal, body, match=order.name, idempotency_key=f"signal-{order.name}")

    async def kill(self, number: int) -> None:
        """Wait for a few more effects, so that something is under way; then no warning at all."""
        effects = self.at.ledger.count() + self.random.randint(1, 6)
        await until(lambda: self.at.ledger.count() >= effects)
        await asyncio.sleep(self.random.random() * 0.05)
        if number % 2 == 0:
            worker = self.at.workers[number // 2 % len(self.at.workers)]
            worker.kill()
            worker.start()
        else:
            server = self.at.servers[0]
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.restart)


@pytest.fixture
def at(database_url: str, tmp_path: Path) -> Iterator[House]:
    with house(database_url, tmp_path, Ledger(seed=11)) as built:
        built.server()
        built.worker()
        built.worker()
        yield built


@pytest.mark.timeout(240)
async def test_workflows_survive_every_kill_and_effects_keep_to_their_recovery_levels(at: House) -> None:
    async with at.client() as client:
        await publish(client)
        storm = Storm(at, client, seed=7)
        reviewer = Reviewer(client, at.ledger)
        reviewing = asyncio.create_task(reviewer.run())
        started = 0
        for kill in range(KILLS):
            until_now = INSTANCES * (kill + 1) // KILLS
            starts = [asyncio.create_task(storm.start(number)) for number in range(started, until_now)]
            started = until_now
            await storm.kill(kill)
            await asyncio.gather(*starts)
        await asyncio.gather(*storm.signals)
        found = await ended(client, storm.orders, 120)
        reviewing.cancel()
        await asyncio.gather(reviewing, return_exceptions=True)
    at.check()
    lost = at.rows("SELECT id FROM attempts WHERE outcome IN ('LEASE_LOST', 'TIMED_OUT')")
    assert lost, "no kill hit anything: the test shows nothing"
    assert not wrongs_of_effects(at.ledger)
    assert len(found) == INSTANCES
    for one, detail in found.items():
        kind, order = storm.orders[one]
        assert detail.state == "SUCCEEDED", (kind, order, detail.error, reviewer.refused)
        _judge(at.ledger, one, kind, order, detail.output)


def _judge(ledger: Ledger, workflow: str, kind: str, order: Order, output: Any) -> None:
    """What it says it did is what happened outside."""
    wrong = unlike_what_happened(ledger, workflow, kind, order.outcome, output)
    assert not wrong, (kind, order, wrong)
