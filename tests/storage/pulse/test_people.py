"""Submitting under a key, cancelling, reviewing, retrying, pausing a queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from orbit_sdk.errors import Conflict, FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.ids import derive_id
from orbit_server.pulse.queues.commands import PauseQueue
from orbit_server.pulse.queues.queries import figures, queue_names, queue_row
from orbit_server.pulse.tasks.commands import Basis, CancelTask, ResolveReview, RetryTask, SubmitTask
from orbit_server.pulse.tasks.decide.stop import Verdict
from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from orbit_server.pulse.tasks.lists import TaskFilter, list_tasks
from orbit_server.pulse.tasks.queries import get_task
from orbit_server.pulse.tasks.records import Task
from orbit_server.storage.commands import CommandKey
from tests.storage.pulse.house import SPACE, House

OTHER = derive_id("namespace", "other")


def key(space: str = SPACE, digest: str = "d") -> CommandKey:
    return CommandKey(space, "tasks.submit", "order-7", digest)


async def audited(house: House) -> list[tuple[str, str, str]]:
    rows = await house.database.read(
        lambda conn: conn.execute(text("SELECT action, subject_id, reason FROM audit ORDER BY at, id")).all()
    )
    return [(row[0], row[1], row[2]) for row in rows]


# --- submit ------------------------------------------------------------------------------------------------


async def test_fifty_equal_submits_at_once_make_one_task(house: House) -> None:
    answers = await asyncio.gather(
        *[house.database.committer.submit(SubmitTask(key(), house.new())) for _ in range(50)]
    )
    assert len({answer["task_id"] for answer in answers}) == 1
    tasks = await house.database.read(lambda conn: list_tasks(conn, SPACE, TaskFilter()))
    assert len(tasks) == 1


async def test_a_key_belongs_to_its_namespace_and_its_meaning(house: House) -> None:
    first = await house.submit(key=key())
    assert await house.submit(key=key(OTHER), namespace_id=OTHER) != first
    with pytest.raises(Conflict):
        await house.submit(key=key(digest="other"))


# --- cancel ------------------------------------------------------------------------------------------------


async def cancelled(house: House, task_id: str, **named: Any) -> str:
    values = {"key": None, "namespace_id": SPACE, "task_id": task_id, "by": house.by()} | named
    return str((await house.database.committer.submit(CancelTask(**values)))["state"])


async def test_a_cancel_before_the_start_is_final_and_leaves_its_trace(house: House) -> None:
    task_id = await house.submit()
    assert await cancelled(house, task_id) == "CANCELLED"
    assert await cancelled(house, task_id) == "CANCELLED"
    assert await house.claimed(house.worker()) == []
    assert await audited(house) == [("task.cancel", task_id, "because")]


async def test_a_cancel_of_what_runs_is_told_to_its_worker_and_the_truth_decides(house: House) -> None:
    task_id = await house.submit()
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    assert await cancelled(house, task_id) == "CANCELLING"
    assert worker.cancels == [offer.attempt_id]
    renewed = await house.renew(worker, offer)
    assert renewed is not None
    assert renewed.cancel_requested
    await house.report(offer, Said.SUCCEEDED, result=1)
    task = await house.task(task_id)
    assert (task.state, task.cancel_requested) == (TaskState.SUCCEEDED, True)


async def test_a_cancel_and_a_start_at_once_end_in_one_of_two_ways(house: House) -> None:
    for _ in range(20):
        task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
        worker = house.worker()
        (offer,) = await house.claimed(worker)
        answer, state = await asyncio.gather(house.start(worker, offer), cancelled(house, task_id))
        assert (answer.granted, state) in [(True, "CANCELLING"), (False, "CANCELLED")]


@pytest.mark.parametrize("order", [CancelTask, RetryTask, ResolveReview])
async def test_a_workflows_task_is_managed_by_its_workflow(house: House, order: Any) -> None:
    task_id = await house.submit(instance_id="3" * 32, activation_id="4" * 32)
    extra: dict[str, Any] = {"expected_revision": 1} if order is not CancelTask else {}
    extra |= {"attempts_max": 1} if order is RetryTask else {}
    extra |= {"verdict": Verdict.FAILED} if order is ResolveReview else {}
    with pytest.raises(FailedPrecondition, match="workflow"):
        await house.database.committer.submit(order(None, SPACE, task_id, by=house.by(), **extra))


async def test_another_namespace_does_not_see_the_task(house: House) -> None:
    task_id = await house.submit()
    with pytest.raises(NotFound):
        await cancelled(house, task_id, namespace_id=OTHER)
    assert await house.database.read(lambda conn: get_task(conn, OTHER, task_id)) is None


# --- review and retry --------------------------------------------------------------------------------------


async def in_review(house: House, **changes: Any) -> Task:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE, **changes)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.report(offer, Said.EXCEPTION, message="boom")
    task = await house.task(task_id)
    assert task.state is TaskState.NEEDS_REVIEW
    house.dispatcher.remove(worker.facts.id)
    return task


def proven(house: House, **changes: Any) -> Any:
    return house.by(**({"basis": Basis.PROVEN, "evidence": '"seen in the ledger"'} | changes))


async def resolve(house: House, task: Task, verdict: Verdict, **named: Any) -> Any:
    values = {"by": proven(house), "expected_revision": task.revision} | named
    return await house.database.committer.submit(
        ResolveReview(None, SPACE, task.id, verdict=verdict, **values)
    )


async def test_a_person_concludes_a_review_with_evidence(house: House) -> None:
    task = await in_review(house)
    answer = await resolve(house, task, Verdict.SUCCEEDED, result='{"id":1}', result_digest="d")
    assert answer["state"] == "SUCCEEDED"
    result = await house.result(task.id)
    assert result is not None
    assert result.result == '{"id":1}'
    assert await audited(house) == [("task.resolve", task.id, "because")]


async def test_a_failed_review_keeps_the_persons_code(house: House) -> None:
    task = await in_review(house)
    await resolve(house, task, Verdict.FAILED, code="LOST_GOODS", message="gone")
    result = await house.result(task.id)
    assert result is not None
    assert result.error == '{"code":"LOST_GOODS","message":"gone"}'
    other = await in_review(house)
    await resolve(house, other, Verdict.CANCELLED)
    assert (await house.task(other.id)).state is TaskState.CANCELLED


async def test_an_incomplete_decision_is_refused_by_name(house: House) -> None:
    task = await in_review(house)
    with pytest.raises(InvalidArgument) as caught:
        await resolve(house, task, Verdict.SUCCEEDED, by=house.by(reason=" "), result="1")
    assert {detail.field for detail in caught.value.details} == {"reason", "basis", "evidence"}
    with pytest.raises(FailedPrecondition, match="revision"):
        await resolve(house, task, Verdict.SUCCEEDED, expected_revision=1, result="1")
    with pytest.raises(InvalidArgument, match="result"):
        await resolve(house, task, Verdict.SUCCEEDED)
    with pytest.raises(NotFound):
        await resolve(house, task, Verdict.SUCCEEDED, adopt="0" * 32)
    assert (await house.task(task.id)) == task
    done = await house.submit()
    with pytest.raises(FailedPrecondition, match="not in review"):
        await resolve(house, await house.task(done), Verdict.FAILED)


async def test_a_person_may_adopt_a_late_result(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.lease_ran_out(task_id)
    await house.report(offer, Said.SUCCEEDED, result={"id": 9})
    await house.report(offer, Said.EXCEPTION, message="and then")
    by_kind = {one.kind: one.id for one in await house.evidence(task_id)}
    task = await house.task(task_id)
    with pytest.raises(FailedPrecondition, match="adopt"):
        await resolve(house, task, Verdict.SUCCEEDED, adopt=by_kind["LATE_EXCEPTION"])
    by = house.by(basis=Basis.PROVEN)
    await resolve(house, task, Verdict.SUCCEEDED, by=by, adopt=by_kind["LATE_SUCCEEDED"])
    result = await house.result(task_id)
    assert result is not None
    assert result.result == '{"id":9}'


async def retry(house: House, task: Task, **named: Any) -> Any:
    values = {"by": proven(house), "expected_revision": task.revision, "attempts_max": 3} | named
    return await house.database.committer.submit(RetryTask(None, SPACE, task.id, **values))


async def test_a_retry_settles_the_review_and_names_it_in_one_transaction(house: House) -> None:
    task = await in_review(house, effect_key="pay-7")
    answer = await retry(house, task, total_timeout_ms=60_000)
    old = await house.task(task.id)
    assert (old.state, old.error_code) == (TaskState.FAILED, "RESOLVED_BY_RETRY")
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    assert (offer.task_id, offer.effect_key) == (answer["task_id"], "pay-7")
    assert offer.generation == old.generation + 1, "one effect key, one line of generations"
    new = await house.task(str(answer["task_id"]))
    assert (new.attempts_max, new.attempts_used) == (3, 0)
    assert (old.generation, offer.generation) == (1, 2)
    with pytest.raises(FailedPrecondition, match="newest"):
        await retry(house, old)


async def test_a_failed_task_is_retried_without_being_touched(house: House) -> None:
    task_id = await house.submit(attempts_max=1)
    (offer,) = await house.claimed(house.worker())
    await house.report(offer, Said.FINAL, code="NO")
    failed = await house.task(task_id)
    with pytest.raises(FailedPrecondition, match="revision"):
        await retry(house, failed, expected_revision=99)
    await retry(house, failed, by=house.by())
    assert await house.task(task_id) == failed


async def test_what_is_under_way_or_succeeded_is_not_retried(house: House) -> None:
    task_id = await house.submit()
    with pytest.raises(FailedPrecondition, match="READY"):
        await retry(house, await house.task(task_id))
    (offer,) = await house.claimed(house.worker())
    await house.report(offer, Said.SUCCEEDED)
    with pytest.raises(FailedPrecondition, match="SUCCEEDED"):
        await retry(house, await house.task(task_id))


# --- lists and queues --------------------------------------------------------------------------------------


async def test_lists_are_narrowed_and_paged_newest_first(house: House) -> None:
    ids = sorted([await house.submit(business_key=f"b{n}") for n in (0, 1, 0, 1, 0)])
    page = await house.database.read(lambda conn: list_tasks(conn, SPACE, TaskFilter(), limit=2))
    assert [task.id for task in page] == ids[:2:-1]
    rest = await house.database.read(
        lambda conn: list_tasks(conn, SPACE, TaskFilter(), before=page[-1].id, limit=9)
    )
    assert [task.id for task in rest] == ids[2::-1]
    narrow = TaskFilter(
        states=("READY",), queue="jobs", business_key="b1", created_from=0, created_to=page[0].created_at
    )
    found = await house.database.read(lambda conn: list_tasks(conn, SPACE, narrow))
    assert {task.business_key for task in found} <= {"b1"}
    assert [task.id for task in found] == sorted([task.id for task in found], reverse=True)


async def test_a_paused_queue_gives_no_work_until_it_is_resumed(house: House) -> None:
    async def pause(paused: bool, **named: Any) -> Any:
        return await house.database.committer.submit(
            PauseQueue(None, SPACE, "jobs", paused, house.by(), **named)
        )

    assert (await pause(True, expected_revision=0))["revision"] == "1"
    assert (await pause(True))["revision"] == "1"
    worker = house.worker(slots=1)
    await house.submit()
    await house.dispatcher.run_once()
    await house.submit(handler="other")
    assert worker.offers == []
    (row,) = await house.database.read(lambda conn: figures(conn, SPACE, ["jobs"]))
    assert (row.paused, row.states) == (True, {"READY": 2})
    with pytest.raises(FailedPrecondition):
        await pause(False, expected_revision=7)
    await pause(False)
    await house.dispatcher.run_once()
    assert len(worker.offers) == 1
    assert await house.database.read(lambda conn: queue_names(conn, SPACE)) == ["jobs"]
    assert (await house.database.read(lambda conn: queue_row(conn, SPACE, "other"))) is None
    assert [action for action, _, _ in await audited(house)] == ["queue.pause", "queue.resume"]
