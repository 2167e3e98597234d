"""The external job, stopped at every step in every way: each stop ends as it must, and the one effect that
must not happen twice happens once.

A job is validated, waits for a person, is prepared and submitted to a channel of somebody else, which is then
asked until it is done. The worker here is made of paper; the definition is the example's own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Self

import orjson
import pytest

from examples.external_job.flow import external_job
from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.verify.rules import violations
from orbit_server.weave.control.commands import Action
from tests.storage.weave.paper import Paper, PaperWorker

DOCUMENT = external_job.compile().definition.to_json()
QUEUE = DOCUMENT["nodes"]["submit"]["queue"]
TASKS = ("validate", "prepare", "submit", "status", "report_gaps")
STEPS = ("validate", "review", "prepare", "submit", "status", "report_gaps")
DONE = {"status": "COMPLETE_WITH_GAPS", "receipt": "r-1", "left_out": 2}


@dataclass
class Channel:
    """What is outside: it remembers effect keys, and works for two questions before it is done."""

    effects: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    def submit(self, offer: Offer) -> None:
        self.effects[offer.effect_key] += 1

    def play(self, offer: Offer) -> Told:
        """What an honest worker tells about it."""
        return getattr(self, f"_{offer.handler.removeprefix('job.')}")(offer)  # type: ignore[no-any-return]

    def _validate(self, _: Offer) -> Told:
        return Told(Said.SUCCEEDED, result={"rows": 5, "usable": 3})

    def _prepare(self, _: Offer) -> Told:
        return Told(Said.SUCCEEDED, result={"content": "c", "customers": 1, "left_out": 2})

    def _submit(self, offer: Offer) -> Told:
        if offer.kind is AttemptKind.RUN:
            self.submit(offer)
        elif not self.effects[offer.effect_key]:
            return Told(Said.CANNOT_HAPPEN_ANY_MORE)
        word = Said.SUCCEEDED if offer.kind is AttemptKind.RUN else Said.HAPPENED
        return Told(word, result={"operation_id": offer.workflow_id})

    def _status(self, offer: Offer) -> Told:
        self.asked[str(offer.workflow_id)] += 1
        done = self.asked[str(offer.workflow_id)] > 2
        answer = {"state": "done", "receipt": "r-1"} if done else {"state": "processing", "receipt": None}
        return Told(Said.SUCCEEDED, result=answer)

    def _report(self, _: Offer) -> Told:
        return Told(Said.SUCCEEDED, result=2)


class Job:
    """One run of the workflow, led by the test from step to step."""

    def __init__(self, paper: Paper, worker: PaperWorker, channel: Channel) -> None:
        self.paper, self.worker, self.channel = paper, worker, channel
        self.instance = ""

    async def start(self) -> None:
        given = {"job_id": "j", "source": "orders.csv", "requested_by": "ada"}
        self.instance = await self.paper.start(given, definition_id=DOCUMENT["id"])

    async def lead(self, to: str | None) -> Offer | None:
        """Let everything run until the step `to` is reached, with its offer in hand; None: until the end.

        Offers of it are not played. An offer that is found in hand already is given back to the caller.
        """
        for _ in range(600):
            await self.paper.sweep()
            shown = await self.paper.show(self.instance)
            if shown.row.ended_at is not None:
                assert to is None, f"{to} was never reached: {shown.row.state}"
                return None
            steps = await self.paper.steps(self.instance)
            if to == "review" and "review" in steps:
                return None
            if "review" in steps and steps["review"].state == "WAITING_SIGNAL":
                await self.approve()
            held, self.worker.held = self.worker.held, []
            for offer in held:
                if offer.step_key == to:
                    return offer
                await self.play(offer)
            # Rounds and back-offs come at once: nobody waits for the clock here.
            for table in ("steps", "tasks"):
                state = "'WAITING_TIME'" if table == "steps" else "'RETRY_WAIT', 'VERIFYING', 'READY'"
                await self.paper.set(
                    f"UPDATE {table} SET due_at = 1 WHERE instance_id = :i AND due_at IS NOT NULL"
                    f" AND state IN ({state})",
                    i=self.instance,
                )
            await asyncio.sleep(0.003)
        raise AssertionError(f"neither {to} nor the end was reached: {await self.how()}")

    async def play(self, offer: Offer) -> None:
        if offer.started or (await self.worker.start(offer)).granted:
            await self.worker.report(offer, self.channel.play(offer))

    async def approve(self) -> None:
        body = {"approved": True, "comment": "looks right"}
        for _ in range(2):
            await self.paper.signal(self.instance, "job.review", "j", body, key="approval")

    async def control(self, action: Action) -> Any:
        return await self.paper.control(self.instance, action)

    async def how(self) -> dict[str, str]:
        return {key: row.state.value for key, row in (await self.paper.steps(self.instance)).items()}

    async def succeeds(self) -> None:
        """It goes on to its end as if nothing had happened, and the channel took the job once."""
        await self.lead(None)
        shown = await self.paper.show(self.instance)
        assert shown.row.state == "SUCCEEDED", await self.how()
        assert orjson.loads(shown.output) == DONE
        assert await self.effects() == [1]

    async def effects(self) -> list[int]:
        """How often the channel was given each effect key of this job's submission."""
        keys = await self.paper.rows(
            "SELECT DISTINCT s.effect_key FROM task_specs s JOIN tasks t ON t.id = s.task_id"
            " WHERE t.instance_id = :i AND t.step_key = 'submit'",
            i=self.instance,
        )
        return [self.channel.effects[key] for (key,) in keys]

    async def lose(self, offer: Offer) -> None:
        """Nobody hears of the attempt any more, and its lease ends."""
        await self.paper.set("UPDATE tasks SET lease_until = 1 WHERE id = :t", t=offer.task_id)
        await sweep_leases(self.paper.database, await self.paper.database.now())


class Site:
    """A server over one database that may be ended and started again, with a worker and a channel."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.channel = Channel()

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert await self.paper.database.read(violations) == []
        await self.paper.__aexit__()

    async def up(self) -> None:
        self.paper = await Paper(self.url, {f"job.{name}": self.channel.play for name in TASKS}).__aenter__()
        await self.paper.publish(DOCUMENT)
        names = ("job.validate", "job.prepare", "job.submit", "job.status", "job.report")
        self.worker = self.paper.worker(QUEUE, slots=64, handlers=names, recovery="READ_ONLY")
        verifier = replace(self.worker.facts, can_verify=frozenset({("job.submit", 1)}))
        self.paper.dispatcher.remove(self.worker.facts.id)
        self.worker.facts = verifier
        self.paper.dispatcher.add(self.worker)
        self.paper.announce(self.worker)
        self.worker.holding = True

    async def killed(self) -> None:
        """The server is gone, with everything that it only knew in memory; another one starts."""
        await self.paper.__aexit__()
        await self.up()

    async def job(self) -> Job:
        job = Job(self.paper, self.worker, self.channel)
        await job.start()
        return job

    def follow(self, job: Job) -> None:
        job.paper, job.worker = self.paper, self.worker


@pytest.mark.parametrize("step", STEPS)
async def test_whatever_stops_the_job_at_a_step_it_ends_as_it_must(migrated_url: str, step: str) -> None:
    async with Site(migrated_url) as site:
        await paused(site, step)
        await cancelled(site, step)
        await cancelled_while_paused(site, step)
        if step != "review":
            await lost_before_its_effect(site, step)
            await lost_after_its_effect(site, step)
            await reviewed(site, step)
            await failed(site, step)
            await cancelled_and_lost(site, step)
        await server_killed(site, step)


async def paused(site: Site, step: str) -> None:
    """A pause: nothing new begins, what comes in is kept, and a resume goes on from there."""
    job = await site.job()
    offer = await job.lead(step)
    granted = offer is None or offer.started or (await site.worker.start(offer)).granted
    assert granted
    await job.control(Action.PAUSE)
    before = set(await job.how())
    if offer is None:
        await job.approve()
    else:
        await site.worker.report(offer, site.channel.play(offer))
    for _ in range(3):
        await site.paper.sweep()
    assert set(await job.how()) == before
    assert site.worker.held == []
    await job.control(Action.RESUME)
    await job.succeeds()


async def cancelled(site: Site, step: str) -> None:
    """A cancel: what runs tells how it went, nothing follows it, and what was done stays done."""
    job = await site.job()
    offer = await job.lead(step)
    if offer is not None and not offer.started:
        assert (await site.worker.start(offer)).granted
    shown = await job.control(Action.CANCEL)
    done = STEPS[: STEPS.index(step)]
    assert shown["effects_kept"] == [key for key in ("prepare", "submit") if key in done]
    before = set(await job.how())
    if offer is not None:
        await site.worker.report(offer, site.channel.play(offer))
    await job.paper.until(job.instance, "CANCELLED")
    assert set(await job.how()) == before
    assert await job.effects() in ([], [1])


async def cancelled_and_lost(site: Site, step: str) -> None:
    """A cancel, and then nobody hears of the attempt: what may have had an effect is found out first."""
    job = await site.job()
    offer = await job.lead(step)
    assert offer is not None
    if not offer.started:
        assert (await site.worker.start(offer)).granted
    site.channel.play(offer)
    await job.control(Action.CANCEL)
    await job.lose(offer)
    await job.paper.sweep()
    if step in ("prepare", "report_gaps"):  # may have happened, and nobody can be asked but a person
        shown = await job.paper.show(job.instance)
        assert (shown.row.state, shown.row.cancel_requested) == ("NEEDS_REVIEW", True)
        revision = (await job.paper.steps(job.instance))[step].revision
        await job.paper.conclude(job.instance, step, revision, "FAILED", code="CLOSED")
    await job.lead(None)
    assert (await job.paper.show(job.instance)).row.state == "CANCELLED"
    assert await job.effects() in ([], [1])


async def cancelled_while_paused(site: Site, step: str) -> None:
    """A cancel needs no resume; what has not begun never will."""
    job = await site.job()
    offer = await job.lead(step)
    await job.control(Action.PAUSE)
    await job.control(Action.CANCEL)
    if offer is not None:
        await job.play(offer)
    await job.paper.until(job.instance, "CANCELLED")


async def lost_before_its_effect(site: Site, step: str) -> None:
    """The worker dies before it did anything."""
    await _lost(site, step, after=False)


async def lost_after_its_effect(site: Site, step: str) -> None:
    """The worker dies after it did everything, and before it could tell."""
    await _lost(site, step, after=True)


async def _lost(site: Site, step: str, *, after: bool) -> None:
    job = await site.job()
    offer = await job.lead(step)
    assert offer is not None
    if not offer.started:
        assert (await site.worker.start(offer)).granted
    if after:
        site.channel.play(offer)
    await job.lose(offer)
    states = await job.paper.rows("SELECT state FROM tasks WHERE id = :t", t=offer.task_id)
    assert states[0][0] == ("VERIFYING" if step == "submit" else "RETRY_WAIT")
    await job.succeeds()


async def reviewed(site: Site, step: str) -> None:
    """A person is asked, finds out and says how it went: the workflow goes on with that."""
    job = await site.job()
    offer = await job.lead(step)
    assert offer is not None
    revision = await _asks_a_person(job, offer)
    told = site.channel.play(offer)
    while step == "status" and told.result["state"] != "done":
        told = site.channel.play(offer)
    await job.paper.conclude(job.instance, step, revision, "SUCCEEDED", result=told.result)
    await job.succeeds()


async def failed(site: Site, step: str) -> None:
    """A person finds out that it failed: the workflow ends as its definition says."""
    job = await site.job()
    offer = await job.lead(step)
    assert offer is not None
    revision = await _asks_a_person(job, offer)
    result = {"state": "rejected", "receipt": None} if step == "status" else None
    await job.paper.conclude(job.instance, step, revision, "FAILED", code="CLOSED", result=result)
    ended = await job.paper.until(job.instance, "FAILED")
    assert ended.error is not None


async def _asks_a_person(job: Job, offer: Offer) -> int:
    if not offer.started:
        assert (await job.worker.start(offer)).granted
    await job.worker.report(offer, Told(Said.NEEDS_PERSON, code="ASK"))
    await job.paper.until(job.instance, "NEEDS_REVIEW")
    revision: int = (await job.paper.steps(job.instance))[offer.step_key or ""].revision
    return revision


async def server_killed(site: Site, step: str) -> None:
    """The server is gone in the middle of the step; the worker tells its result to the next one."""
    job = await site.job()
    offer = await job.lead(step)
    if offer is not None and not offer.started:
        assert (await site.worker.start(offer)).granted
    old = site.worker
    await site.killed()
    site.follow(job)
    if offer is not None:
        later = PaperWorker(site.paper, old.facts)
        await later.report(offer, site.channel.play(offer))
    await job.succeeds()
