"""What a workflow does to its tasks inside its own transaction, and what it is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text

from orbit_sdk.errors import FailedPrecondition, NotFound
from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import inbox_id_of
from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks import operations
from orbit_server.pulse.tasks.attempts import RecordResult
from orbit_server.pulse.tasks.decide.move import Body
from orbit_server.pulse.tasks.decide.stop import Resolution, Verdict
from orbit_server.pulse.tasks.hints import InboxWritten
from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs
from tests.storage.pulse.house import SPACE, House, held

FLOW, STEP = "3" * 32, "4" * 32


@dataclass(frozen=True, slots=True)
class Do(Keyless):
    """A transaction of somebody else's that works on tasks."""

    work: Callable[[Book], Any]
    tasks: tuple[Id, ...] = ()
    inbox: tuple[Id, ...] = ()
    lane: str = FLOW

    def needs(self) -> Needs:
        return {"tasks": self.tasks, "attempts": self.tasks, "inbox": self.inbox}

    def decide(self, book: Book) -> Done[Any]:
        return Done(self.work(book))


async def do(house: House, work: Callable[[Book], Any], *tasks: Id, inbox: tuple[Id, ...] = ()) -> Any:
    return await house.database.committer.submit(Do(work, tasks, inbox))


async def inbox_rows(house: House) -> list[tuple[str, int, str]]:
    rows = await house.database.read(
        lambda conn: conn.execute(
            text("SELECT task_id, source_revision, state FROM inbox ORDER BY created_at, source_revision")
        ).all()
    )
    return [(row[0], row[1], row[2]) for row in rows]


async def events(house: House) -> list[tuple[str, str]]:
    rows = await house.database.read(
        lambda conn: conn.execute(text("SELECT type, state FROM events ORDER BY occurred_at, id")).all()
    )
    return [(row[0], row[1]) for row in rows]


async def of_workflow(house: House, **changes: Any) -> Id:
    new = house.new(**({"instance_id": FLOW, "activation_id": STEP, "step_key": "pay"} | changes))
    task = await do(house, lambda book: operations.create_task(book, new))
    return str(task.id)


async def test_a_workflow_is_told_of_a_result_by_a_stored_row(house: House) -> None:
    task_id = await of_workflow(house)
    (offer,) = await house.claimed(house.worker())
    assert (offer.workflow_id, offer.step_key) == (FLOW, "pay")
    await house.report(offer, Said.SUCCEEDED, result=1)
    task = await house.task(task_id)
    assert await inbox_rows(house) == [(task_id, task.revision, "PENDING")]
    assert [hint for hint in house.hints if isinstance(hint, InboxWritten)] == [
        InboxWritten(inbox_id_of(task_id, task.revision), FLOW, task_id)
    ]
    assert await events(house) == [("task.changed", "SUCCEEDED")]


async def test_a_companion_sees_the_result_in_the_same_transaction(house: House) -> None:
    task_id = await of_workflow(house)
    (offer,) = await house.claimed(house.worker())

    def consume(book: Book) -> None:
        task = operations.task_of(book, task_id)
        operations.mark_inbox(book, inbox_id_of(task_id, task.revision), "APPLIED")

    companion = Do(consume, (task_id,))
    report = report_of(Told(Said.SUCCEEDED, 1))
    groups = house.database.metrics.groups
    await house.database.committer.submit(RecordResult(SPACE, held(offer), report, FLOW, companion))
    assert house.database.metrics.groups == groups + 1
    assert [state for _, _, state in await inbox_rows(house)] == ["APPLIED"]


async def test_a_failing_companion_leaves_result_and_inbox(house: House) -> None:
    task_id = await of_workflow(house)
    (offer,) = await house.claimed(house.worker())
    companion = Do(lambda book: book.now // 0, (task_id,))
    report = report_of(Told(Said.FINAL, code="NO"))
    await house.database.committer.submit(RecordResult(SPACE, held(offer), report, FLOW, companion))
    assert (await house.task(task_id)).state is TaskState.FAILED
    assert [state for _, _, state in await inbox_rows(house)] == ["PENDING"]


async def test_a_retry_is_no_news_for_the_workflow_but_a_review_is(house: House) -> None:
    task_id = await of_workflow(house)
    (offer,) = await house.claimed(house.worker())
    await house.report(offer, Said.RETRYABLE, effect_unknown=False)
    assert await inbox_rows(house) == []
    other = await of_workflow(house, recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.lease_ran_out(other)
    await sweep_leases(house.database, await house.database.now(), house.times)
    assert [row[0] for row in await inbox_rows(house)] == [other]
    assert (await house.task(task_id)).state is TaskState.RETRY_WAIT


async def test_pausing_withdraws_offers_and_resuming_lets_them_out_again(house: House) -> None:
    offered_id = await of_workflow(house, recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    (offered,) = await house.claimed(worker)
    running_id = await of_workflow(house)
    (running,) = await house.claimed(worker)
    await do(
        house,
        lambda book: operations.gate_tasks(book, [offered_id, running_id], closed=True),
        offered_id,
        running_id,
    )
    assert not (await house.start(worker, offered)).granted
    assert await house.claimed(worker) == []
    await house.report(running, Said.RETRYABLE, effect_unknown=False)
    await house.set_task(running_id, due_at=0)
    await house.swept_due()
    assert await house.claimed(worker, 2) == []
    await do(
        house,
        lambda book: operations.gate_tasks(book, [offered_id, running_id], closed=False),
        offered_id,
        running_id,
    )
    assert {offer.task_id for offer in await house.claimed(worker, 2)} == {offered_id, running_id}


async def test_cancelling_twice_changes_nothing_and_tells_the_workflow_once(house: House) -> None:
    task_id = await of_workflow(house)
    for _ in range(2):
        await do(house, lambda book: operations.cancel_task(book, task_id, "workflow cancelled"), task_id)
    task = await house.task(task_id)
    assert task.state is TaskState.CANCELLED
    assert await inbox_rows(house) == [(task_id, task.revision, "PENDING")]


async def test_a_detached_task_settles_without_telling(house: House) -> None:
    waiting = await of_workflow(house)
    await do(house, lambda book: operations.detach_task(book, waiting), waiting)
    assert (await house.task(waiting)).error_code == "DETACHED"
    running = await of_workflow(house)
    (offer,) = await house.claimed(house.worker())
    for _ in range(2):
        await do(house, lambda book: operations.detach_task(book, running), running)
    await house.report(offer, Said.EXCEPTION, message="no answer")
    assert (await house.task(running)).state is TaskState.CANCELLED
    assert await inbox_rows(house) == []


async def test_a_recovery_settles_the_old_task_without_an_inbox_row(house: House) -> None:
    task_id = await of_workflow(house, recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    with pytest.raises(FailedPrecondition, match="not in review"):
        await do(
            house, lambda book: operations.settle_task(book, task_id, Resolution(Verdict.FAILED)), task_id
        )
    await house.report(offer, Said.EXCEPTION, message="boom")
    before = await inbox_rows(house)
    order = Resolution(
        Verdict.FAILED, Body(error=operations.error_text("NO", "x", [1])), "RESOLVED_BY_RECOVERY"
    )
    for _ in range(2):
        await do(house, lambda book: operations.settle_task(book, task_id, order, "run again"), task_id)
    assert (await house.task(task_id)).error_code == "RESOLVED_BY_RECOVERY"
    assert await inbox_rows(house) == before
    result = await house.result(task_id)
    assert result is not None
    assert result.error == (
        '{"code":"RESOLVED_BY_RECOVERY","last":{"code":"NO","details":[1],"message":"x"},'
        '"message":"a person decided to run the step again"}'
    )


async def test_what_does_not_exist_is_not_found(house: House) -> None:
    nothing = "0" * 32
    with pytest.raises(NotFound):
        await do(house, lambda book: operations.cancel_task(book, nothing), nothing)
    with pytest.raises(NotFound):
        await do(house, lambda book: operations.mark_inbox(book, nothing, "STALE"), inbox=(nothing,))


async def test_an_inbox_row_is_marked_once(house: House) -> None:
    task_id = await of_workflow(house)
    task = await do(house, lambda book: operations.cancel_task(book, task_id), task_id)
    row = inbox_id_of(task_id, task.revision)
    for _ in range(2):
        await do(house, lambda book: operations.mark_inbox(book, row, "STALE"), inbox=(row,))
    assert [state for _, _, state in await inbox_rows(house)] == ["STALE"]
