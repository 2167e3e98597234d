"""Probes of steps in review: once, outside all budgets, and never more than evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from orbit_sdk.errors import FailedPrecondition, InvalidArgument
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id
from orbit_server.pulse.sweeps import sweep_deadlines, sweep_leases
from orbit_server.pulse.tasks.commands import By
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Recovery, Said
from orbit_server.pulse.tasks.probes import Ask
from orbit_server.pulse.tasks.reports import Told
from orbit_server.storage.commands import CommandKey
from orbit_server.verify import violations
from orbit_server.weave.control.commands import Action
from orbit_server.weave.reviews.commands import Adopt
from orbit_server.weave.reviews.probes import ProbeStep
from orbit_server.weave.service import send
from tests.documents import document, end, task
from tests.storage.weave.paper import NAMESPACE, Paper, PaperWorker

RECEIPT = {"type": "object", "properties": {"receipt": {"type": "string"}}, "required": ["receipt"]}
PAY = {"parameters": {}, "required": [], "result": RECEIPT, "recovery": "CONSERVATIVE", "verify": True}
LOOK_UP = {
    "parameters": {"order": {"type": "string"}},
    "required": ["order"],
    "result": RECEIPT,
    "recovery": "READ_ONLY",
    "verify": False,
}


def flow(*, verify: bool = True) -> dict[str, Any]:
    looks = {"ref": "pay"}
    return document(
        {
            "pay": task("look", "pay"),
            "look": {**task("done", "look.up"), "input": {"order": {"const": "A-17"}}},
            "done": end(looks),
        },
        handlers={"pay@1": {**PAY, "verify": verify}, "look.up@1": LOOK_UP},
    )


@asynccontextmanager
async def paying(url: str, *, verify: bool = True) -> AsyncIterator[tuple[Paper, PaperWorker]]:
    """A server with a worker that pays (perhaps verifies), and looks up; sound when it is left."""
    async with Paper(url, {"pay": _doubtful, "look.up": _looked}) as paper:
        worker = paper.worker()
        paper.dispatcher.remove(worker.facts.id)
        worker.facts = replace(
            worker.facts,
            handlers={("pay", 1): Recovery.CONSERVATIVE, ("look.up", 1): Recovery.READ_ONLY},
            can_verify=frozenset({("pay", 1)}) if verify else frozenset(),
        )
        paper.dispatcher.add(worker)
        paper.announce(worker)
        await paper.publish(flow(verify=verify))
        yield paper, worker
        assert await paper.database.read(violations) == []


def _doubtful(_: Any) -> Told:
    return Told(Said.NEEDS_PERSON, code="ASK")


def _looked(_: Any) -> Told:
    return Told(Said.SUCCEEDED, result={"receipt": "R-7"})


async def in_review(paper: Paper) -> tuple[Id, Any]:
    instance = await paper.start({})
    await paper.until(instance, "NEEDS_REVIEW")
    return instance, (await paper.steps(instance))["pay"]


async def probe(paper: Paper, instance: Id, **more: Any) -> Id:
    seed = paper.seed()
    by = By("operator", "did they get it?", paper.seed())
    ask = Ask(seed.nth(0), by, attempt_timeout_ms=5_000, start_within_ms=60_000, **more)
    key = CommandKey(NAMESPACE, "workflow.probe", seed.nth(1), digest(instance))
    answer = await send(
        paper.database, paper.weave, ProbeStep(key, instance, NAMESPACE, "pay", ask, paper.weave)
    )
    return str(answer["task_id"])


async def ended(paper: Paper, task_id: Id) -> Any:
    for _ in range(400):
        ((state, code, attempts),) = await paper.rows(
            "SELECT state, error_code, attempts_used FROM tasks WHERE id = :id", id=task_id
        )
        if state in ("SUCCEEDED", "FAILED", "EXPIRED", "CANCELLED"):
            return state, code, attempts
        await paper.settled((await paper.rows("SELECT id FROM instances"))[0][0], rounds=1)
    raise AssertionError(f"the probe is {state}")


async def evidence(paper: Paper, step: Any) -> dict[str, Any]:
    rows = await paper.rows("SELECT kind, body, id FROM evidence WHERE task_id = :id", id=step.task_id)
    return {kind: (orjson.loads(body), found) for kind, body, found in rows}


async def test_a_verify_handler_is_asked_and_decides_nothing(migrated_url: str) -> None:
    async with paying(migrated_url) as (paper, worker):
        offers = []

        def asked(offer: Any) -> Told:
            offers.append(offer)
            if offer.kind is AttemptKind.RUN:
                return _doubtful(offer)
            return Told(Said.HAPPENED, result={"receipt": "R-1"}, asked_generation=offer.asked_generation)

        paper.plays["pay"] = asked
        instance, step = await in_review(paper)
        await paper.control(instance, Action.PAUSE)
        found = await probe(paper, instance)
        assert await ended(paper, found) == ("SUCCEEDED", None, 0)
        run, question = offers
        assert question.asked_generation == run.generation
        assert (question.effect_key, question.parameters) == (run.effect_key, run.parameters)
        kept = await evidence(paper, step)
        assert kept["PROBE_ASKED"][0]["task_id"] == found
        assert kept["PROBE_HAPPENED"][0] == {"receipt": "R-1"}
        assert (await paper.steps(instance))["pay"] == step, "nothing was decided, and no budget was touched"
        ((subject, details),) = await paper.rows(
            "SELECT subject_id, details FROM audit WHERE action = 'workflow.review.probe'"
        )
        assert (subject, orjson.loads(details)) == (step.id, {"probe": found})
        named = Adopt(kept["PROBE_HAPPENED"][1], step.task_id)
        await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=named, evidence=None)
        await paper.control(instance, Action.RESUME)
        assert orjson.loads((await paper.until(instance, "SUCCEEDED")).output) == {"receipt": "R-1"}
        assert worker.held == []


async def test_what_cannot_happen_any_more_is_proof_enough_to_run_again(migrated_url: str) -> None:
    async with paying(migrated_url) as (paper, _):

        def asked(offer: Any) -> Told:
            if offer.kind is AttemptKind.RUN:
                return _doubtful(offer)
            return Told(Said.CANNOT_HAPPEN_ANY_MORE, asked_generation=offer.asked_generation)

        paper.plays["pay"] = asked
        instance, step = await in_review(paper)
        await ended(paper, await probe(paper, instance))
        kept = await evidence(paper, step)
        named = Adopt(kept["PROBE_CANNOT_HAPPEN_ANY_MORE"][1], step.task_id)
        with pytest.raises(FailedPrecondition, match="holds no result"):
            await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=named)
        paper.plays["pay"] = lambda _: Told(Said.SUCCEEDED, result={"receipt": "R-2"})
        await paper.conclude(instance, "pay", step.revision, "RERUN", adopt=named, evidence=None)
        await paper.until(instance, "SUCCEEDED")


async def test_a_read_only_handler_may_be_named_and_its_types_are_checked(migrated_url: str) -> None:
    async with paying(migrated_url, verify=False) as (paper, _):
        instance, step = await in_review(paper)
        with pytest.raises(FailedPrecondition, match="has no verify handler: name a READ_ONLY handler"):
            await probe(paper, instance)
        with pytest.raises(FailedPrecondition, match="declared CONSERVATIVE"):
            await probe(paper, instance, handler=("pay", 1))
        with pytest.raises(InvalidArgument) as caught:
            await probe(paper, instance, handler=("look.up", 1), parameters='{"order":7}')
        assert [detail.field for detail in caught.value.details] == ["parameters.order"]
        found = await probe(paper, instance, handler=("look.up", 1), parameters='{"order":"A-17"}')
        assert await ended(paper, found) == ("SUCCEEDED", None, 1)
        kept = await evidence(paper, step)
        assert kept["PROBE_SUCCEEDED"][0] == {"receipt": "R-7"}
        named = Adopt(kept["PROBE_SUCCEEDED"][1], step.task_id)
        await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=named, evidence=None)
        await paper.until(instance, "SUCCEEDED")


async def test_a_worker_that_declares_more_than_reading_is_not_asked(migrated_url: str) -> None:
    async with paying(migrated_url) as (paper, _):
        instance, step = await in_review(paper)
        stranger = paper.worker(queue="side", recovery="IDEMPOTENT", handlers=("anything",))
        paper.plays["anything"] = _looked
        found = await probe(paper, instance, handler=("anything", 1), queue="side")
        paper.announce(stranger)
        assert await ended(paper, found) == ("CANCELLED", "NOT_READ_ONLY", 0)
        assert "PROBE_CANCELLED" in await evidence(paper, step)


@pytest.mark.parametrize("handler", [None, ("look.up", 1)])
async def test_a_probe_that_nobody_answers_ends_by_itself(migrated_sqlite_url: str, handler: Any) -> None:
    async with paying(migrated_sqlite_url) as (paper, worker):
        instance, step = await in_review(paper)
        paper.dispatcher.remove(worker.facts.id)
        more = {} if handler is None else {"handler": handler, "parameters": '{"order":"A"}'}
        found = await probe(paper, instance, **more)
        await paper.set(
            "UPDATE tasks SET deadline_at = 1, verify_deadline_at = 1, latest_start_at = 1 WHERE id = :id",
            id=found,
        )
        await sweep_deadlines(paper.database, await paper.database.now())
        state, code, _ = await ended(paper, found)
        assert (state, code) in (("FAILED", "EXPIRED"), ("EXPIRED", "EXPIRED"))
        assert {"PROBE_FAILED", "PROBE_EXPIRED"} & set(await evidence(paper, step))


async def test_a_lost_probe_is_over_and_what_it_says_later_is_kept_as_late(migrated_sqlite_url: str) -> None:
    async with paying(migrated_sqlite_url) as (paper, worker):
        instance, step = await in_review(paper)
        worker.holding = True
        found = await probe(paper, instance)
        (offer,) = await _taken(paper, worker, found)
        assert offer.started or (await worker.start(offer)).granted
        await paper.set("UPDATE tasks SET lease_until = 1 WHERE id = :id", id=found)
        await sweep_leases(paper.database, await paper.database.now())
        assert (await ended(paper, found))[0] == "FAILED"
        await worker.report(offer, Told(Said.HAPPENED, result={"receipt": "R-9"}))
        kept = await evidence(paper, step)
        assert kept["PROBE_FAILED"][0]["code"] == "LEASE_LOST"
        assert kept["PROBE_LATE_HAPPENED"][0] == {"receipt": "R-9"}
        assert (await paper.steps(instance))["pay"] == step


async def _taken(paper: Paper, worker: PaperWorker, task_id: Id) -> list[Any]:
    for _ in range(400):
        taken = [offer for offer in worker.held if offer.task_id == task_id]
        if taken:
            return taken
        await paper.sweep()
        paper.announce(worker)
    raise AssertionError("nobody was asked")
