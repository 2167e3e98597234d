"""One soak from its start to its report."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from orbit_sdk.client import ClientSettings, OrbitClient
from orbit_sdk.errors import OrbitError
from orbit_sdk.protocol.workflows import ReviewItem
from tests.crash.people import Reviewer, publish
from tests.soak.chaos import Chaos
from tests.soak.checks import swollen, unfinished, wrong_at_the_end, wrong_now
from tests.soak.clients import SoakClient
from tests.soak.settings import SoakSettings
from tests.soak.site import Site, site

CLIENT = ClientSettings(timeout=8, retry_for=45, backoff=0.05, max_backoff=1.0, poll=5)


@dataclass
class Outcome:
    """What a soak found. It went well when nothing is in `wrong`."""

    settings: SoakSettings
    wrong: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value}" for name, value in self.figures.items())
        head = f"soak on {self.settings.database}, seed {self.settings.seed}: {figures}"
        if not self.wrong:
            return f"{head}: nothing wrong"
        shown = "\n  ".join(self.wrong[:40])
        return f"{head}\n{len(self.wrong)} wrong (see {self.settings.folder}):\n  {shown}"


class SoakReviewer(Reviewer):
    """Decides standalone tasks too."""

    async def run(self) -> None:
        while True:
            with suppress(OrbitError):
                async for item in self.client.reviews.list():
                    await (self.decide(item) if item.kind == "STEP" else self.decide_task(item))
            await asyncio.sleep(0.5)

    async def decide_task(self, item: ReviewItem) -> None:
        assert item.task_id is not None
        task = await self.client.tasks.get(item.task_id)
        last = max([int(one.generation) async for one in self.client.tasks.attempts(task.id)], default=0)
        receipt = self.ledger.fence(task.effect_key, last)
        decision: dict[str, Any] = {
            "verdict": "FAILED" if receipt is None else "SUCCEEDED",
            "expected_revision": item.revision,
            "reason": "the channel was asked",
            "basis": "PROVEN",
            "evidence": "the channel's own list",
        }
        decision |= {"code": "NOT_DONE"} if receipt is None else {"result": {"receipt": receipt}}
        with suppress(OrbitError):
            await self.client.tasks.resolve(
                task.id, decision, operation_id=f"review-{task.id}-{item.revision}"
            )


async def soak(settings: SoakSettings, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run it. Whatever goes wrong, the outcome says so and the folder keeps what explains it."""
    outcome = Outcome(settings)
    with site(settings) as place:
        chaos = Chaos(place, settings)
        try:
            await _run(place, chaos, outcome, say)
        except Exception:  # noqa: BLE001  # it becomes part of the report
            outcome.wrong.append(traceback.format_exc())
        outcome.wrong += swollen(place)
        _keep(place, chaos, outcome)
    return outcome


async def _run(place: Site, chaos: Chaos, outcome: Outcome, say: Callable[[str], None]) -> None:
    settings, began = outcome.settings, time.monotonic()
    async with AsyncExitStack() as stack:

        async def client(number: int) -> OrbitClient:
            made = OrbitClient(place.front(number), place.at.token, settings=CLIENT)
            return await stack.enter_async_context(made)

        await publish(await client(0))
        clients = [
            SoakClient(f"c{n}", await client(n), place.ledger, settings.seed * 100 + n)
            for n in range(settings.clients)
        ]
        reviewer = SoakReviewer(await client(0), place.ledger)
        over = asyncio.Event()
        reviewing = asyncio.create_task(reviewer.run())
        asking = [asyncio.create_task(one.run(over)) for one in clients]
        storm = asyncio.create_task(chaos.run(asyncio.get_running_loop().time() + settings.seconds))
        while not storm.done():
            await asyncio.wait({storm}, timeout=settings.check_every)
            await _check(place, chaos, clients, outcome)
            say(_line(place, chaos, clients, outcome, began))
            if outcome.wrong:
                storm.cancel()
                break
        await asyncio.gather(storm, return_exceptions=True)
        over.set()
        await asyncio.to_thread(place.mend)
        await asyncio.wait(asking, timeout=CLIENT.retry_for + 15)
        if not outcome.wrong:
            await _settle(place, clients, outcome)
            outcome.wrong += wrong_at_the_end(place, [one.books for one in clients])
        for task in (*asking, reviewing):
            task.cancel()
        ended = await asyncio.gather(*asking, reviewing, return_exceptions=True)
        outcome.wrong += [
            "".join(traceback.format_exception(one)) for one in ended if isinstance(one, Exception)
        ]
    outcome.figures |= {
        "seconds": round(time.monotonic() - began),
        "kills": chaos.kills,
        "faults": chaos.counts.total(),
        "workflows": sum(len(one.books.started) for one in clients),
        "tasks": sum(len(one.books.submitted) for one in clients),
        "effects": place.ledger.count(),
        "reviews": len(reviewer.decided),
        "lost attempts": _lost(place),
    }


def _lost(place: Site) -> int:
    query = "SELECT COUNT(*) FROM attempts WHERE outcome IN ('LEASE_LOST', 'TIMED_OUT')"
    with suppress(Exception):
        return int(place.at.rows(query)[0][0])
    return -1


async def _check(place: Site, chaos: Chaos, clients: list[SoakClient], outcome: Outcome) -> None:
    place.sample()
    async with chaos.calm:
        outcome.wrong += await asyncio.to_thread(wrong_now, place, [one.books for one in clients])


async def _settle(place: Site, clients: list[SoakClient], outcome: Outcome) -> None:
    """No more faults: everything comes to its end by itself, pauses that got lost aside."""
    limit = time.monotonic() + outcome.settings.settle
    while time.monotonic() < limit:
        for one in clients:
            for key in list(one.open):
                with suppress(OrbitError):
                    await one.follow(key)
        if unfinished(place) == (0, 0):
            return
        await asyncio.sleep(0.3)
    workflows, tasks = unfinished(place)
    outcome.wrong.append(f"{workflows} workflows and {tasks} tasks never ended")


def _line(place: Site, chaos: Chaos, clients: list[SoakClient], outcome: Outcome, began: float) -> str:
    return (
        f"{time.monotonic() - began:5.0f} s  kills {chaos.kills}  faults {chaos.counts.total()}"
        f"  workflows {sum(len(one.books.started) for one in clients)}"
        f"  effects {place.ledger.count()}  wrong {len(outcome.wrong)}"
    )


def _keep(place: Site, chaos: Chaos, outcome: Outcome) -> None:
    """The report; and, after a failure, the database as it is."""
    folder = outcome.settings.folder
    database = None
    if outcome.wrong:
        with suppress(Exception):
            database = place.keep_database()
    report = {
        "seed": outcome.settings.seed,
        "database": database,
        "wrong": outcome.wrong,
        "figures": outcome.figures,
        "faults": dict(chaos.counts),
        "diary": chaos.diary,
        "largest": {
            name: [max(one.memory for one in samples), max(one.descriptors for one in samples)]
            for name, samples in place.samples.items()
        },
        "effects": [
            [one.workflow, one.step, one.key, one.recovery, one.generation] for one in place.ledger.applied
        ],
    }
    (folder / "report.json").write_text(json.dumps(report, indent=1))
