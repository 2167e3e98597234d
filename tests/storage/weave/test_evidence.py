"""What was stored beside a step may be taken for a decision, by a person who names it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orbit_sdk.errors import FailedPrecondition, InvalidArgument, NotFound
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.verify import violations
from orbit_server.weave.reviews.commands import Adopt
from tests.documents import document, end, task
from tests.storage.weave.paper import Paper

PAY = {
    "parameters": {},
    "required": [],
    "result": {"type": "object", "properties": {"receipt": {"type": "string"}}, "required": ["receipt"]},
    "recovery": "CONSERVATIVE",
    "verify": False,
}
FLOW = document(
    {"pay": task("again", "pay"), "again": task("done", "pay"), "done": end({"ref": "pay"})},
    handlers={"pay@1": PAY},
)


async def in_review(paper: Paper, worker: Any, late: Told) -> tuple[str, Any]:
    """A workflow whose first step is in review, because what it was told came too late."""
    instance = await paper.start({})
    (offer,) = await paper.held(worker, of=instance)
    assert (await worker.start(offer)).granted
    await paper.set("UPDATE tasks SET lease_until = lease_until - 60000000 WHERE id = :id", id=offer.task_id)
    await sweep_leases(paper.database, await paper.database.now())
    await paper.until(instance, "NEEDS_REVIEW")
    await worker.report(offer, late)
    return instance, (await paper.steps(instance))["pay"]


async def evidence(paper: Paper, step: Any) -> Adopt:
    ((found,),) = await paper.rows("SELECT id FROM evidence WHERE task_id = :id", id=step.task_id)
    return Adopt(found, step.task_id)


async def test_a_late_result_is_adopted_by_name_and_the_audit_says_so(migrated_url: str) -> None:
    async with Paper(migrated_url, {"pay": lambda _: Told(Said.SUCCEEDED)}) as paper:
        worker = paper.worker(recovery="CONSERVATIVE")
        worker.holding = True
        await paper.publish(FLOW)
        told = Told(Said.SUCCEEDED, result={"receipt": "R-1"})
        instance, step = await in_review(paper, worker, told)
        named = await evidence(paper, step)
        with pytest.raises(FailedPrecondition, match="does not say that no effect"):
            await paper.conclude(instance, "pay", step.revision, "RERUN", adopt=named)
        wrong = Adopt(named.evidence_id, "0" * 32)
        with pytest.raises(NotFound, match="of this step"):
            await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=wrong)
        await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=named, evidence=None)
        stored = await paper.rows("SELECT result FROM task_results WHERE task_id = :id", id=step.task_id)
        assert orjson.loads(stored[0][0]) == {"receipt": "R-1"}
        ((details,),) = await paper.rows("SELECT details FROM audit WHERE action LIKE 'workflow.review%'")
        assert orjson.loads(details)["adopted"] == {
            "evidence_id": named.evidence_id,
            "kind": "LATE_SUCCEEDED",
            "digest": orjson.loads(details)["adopted"]["digest"],
        }
        assert await paper.database.read(violations) == []


async def test_evidence_of_another_step_or_of_another_type_is_refused(migrated_url: str) -> None:
    async with Paper(migrated_url, {"pay": lambda _: Told(Said.SUCCEEDED)}) as paper:
        worker = paper.worker(recovery="CONSERVATIVE")
        worker.holding = True
        await paper.publish(FLOW)
        instance, step = await in_review(paper, worker, Told(Said.SUCCEEDED, result={"paid": True}))
        named = await evidence(paper, step)
        with pytest.raises(InvalidArgument) as caught:
            await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", adopt=named)
        assert [detail.field for detail in caught.value.details] == ["adopt.receipt"]
        await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", result={"receipt": "by hand"})
        (offer,) = await paper.held(worker, of=instance)
        await worker.start(offer)
        await worker.report(offer, Told(Said.NEEDS_PERSON, code="ASK"))
        await paper.until(instance, "NEEDS_REVIEW")
        other = (await paper.steps(instance))["again"]
        with pytest.raises(NotFound, match="of this step"):
            await paper.conclude(instance, "again", other.revision, "SUCCEEDED", adopt=named)


async def test_a_denial_of_an_earlier_task_of_the_step_says_nothing_of_the_last(migrated_url: str) -> None:
    async with Paper(migrated_url, {"pay": lambda _: Told(Said.SUCCEEDED)}) as paper:
        worker = paper.worker(recovery="CONSERVATIVE")
        worker.holding = True
        await paper.publish(FLOW)
        instance, step = await in_review(paper, worker, Told(Said.FINAL, code="NO"))
        named = await evidence(paper, step)
        await paper.set("UPDATE evidence SET kind = 'PROBE_CANNOT_HAPPEN_ANY_MORE'")
        await paper.conclude(instance, "pay", step.revision, "RERUN", adopt=named)
        (offer,) = await paper.held(worker, of=instance)
        assert offer.task_id != step.task_id
        await worker.start(offer)
        await worker.report(offer, Told(Said.NEEDS_PERSON, code="ASK"))
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["pay"]
        with pytest.raises(FailedPrecondition, match="of an earlier task of this step"):
            await paper.conclude(instance, "pay", step.revision, "RERUN", adopt=named)
