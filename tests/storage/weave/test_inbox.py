from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from orbit_server.pulse.tasks import operations
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.operations import Resolution, Verdict
from orbit_server.pulse.tasks.reports import Told
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASK_RESULTS, TASKS
from orbit_server.storage.commands import Done, Keyless
from orbit_server.weave.control.commands import Action
from orbit_server.weave.inbox.commands import BlockOnError
from orbit_server.weave.sweeps.inbox import sweep_inbox
from orbit_server.weave.sweeps.steps import sweep_advances, sweep_due_steps
from tests.documents import document, end, task, timer, wait
from tests.storage.weave.paper import NAMESPACE, Paper, succeeds


def two_steps() -> dict[str, Any]:
    return document(
        {
            "one": task("two", "safe"),
            "two": task("done", "safe", value={"ref": "one"}),
            "done": end({"ref": "two"}),
        }
    )


async def inbox(paper: Paper) -> list[str]:
    return [row[0] for row in await paper.rows("SELECT state FROM inbox ORDER BY created_at, id")]


async def test_a_result_whose_workflow_did_not_move_is_found_by_a_scan(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(1)}, companions=False) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(two_steps())
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        await worker.play(offer)
        assert await inbox(paper) == ["PENDING"]
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        await paper.publish(two_steps())
        paper.worker()
        await paper.until(instance, "SUCCEEDED")
        assert await inbox(paper) == ["APPLIED", "APPLIED"]


async def test_two_scans_apply_a_result_once(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(1)}, companions=False) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(two_steps())
        for _ in range(5):
            instance = await paper.start({})
            (offer,) = await paper.held(worker)
            await worker.play(offer)
            await asyncio.gather(*(sweep_inbox(paper.database, paper.weave, paper.seed) for _ in range(3)))
            found = await paper.rows("SELECT COUNT(*) FROM tasks WHERE instance_id = :i", i=instance)
            assert found[0][0] == 2
            await paper.held(worker)


async def test_a_result_that_cannot_be_applied_goes_to_review_and_is_met_once(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(1)}, companions=False) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(two_steps())
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        await worker.play(offer)
        await paper.set("UPDATE task_results SET result = '{broken' WHERE task_id = :t", t=offer.task_id)
        report = await sweep_inbox(paper.database, paper.weave, paper.seed)
        assert (report.found, report.applied, report.failed) == (1, 0, 1)
        assert await inbox(paper) == ["ERROR"]
        assert (await sweep_inbox(paper.database, paper.weave, paper.seed)).found == 0
        step = (await paper.steps(instance))["one"]
        assert (step.state, step.review_class) == ("NEEDS_REVIEW", "ENGINE_ERROR")
        worker.holding = False
        await paper.conclude(instance, "one", step.revision, "SUCCEEDED", result=3)
        await paper.until(instance, "SUCCEEDED")


async def test_one_bad_row_does_not_stop_the_others(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(1)}, companions=False) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(two_steps())
        started = [await paper.start({}) for _ in range(4)]
        for offer in await paper.held(worker, 4):
            await worker.play(offer)
            if offer.workflow_id == started[1]:
                await paper.set("UPDATE task_results SET result = 'x' WHERE task_id = :t", t=offer.task_id)
        report = await sweep_inbox(paper.database, paper.weave, paper.seed)
        assert (report.applied, report.failed) == (3, 1)
        states = [(await paper.show(instance)).row.state for instance in started]
        assert states == ["RUNNING", "NEEDS_REVIEW", "RUNNING", "RUNNING"]


async def test_a_deadline_that_cannot_be_followed_goes_to_review(migrated_url: str) -> None:
    flow = document({"sleep": timer("work"), "work": task("done", value={"ref": "input"}), "done": end()})
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.set("UPDATE steps SET due_at = 1 WHERE instance_id = :i", i=instance)
        await paper.set("UPDATE instance_inputs SET input = '{broken' WHERE instance_id = :i", i=instance)
        report = await sweep_due_steps(paper.database, paper.weave, paper.seed)
        assert (report.found, report.moved, report.failed) == (1, 0, 1)
        assert (await sweep_due_steps(paper.database, paper.weave, paper.seed)).found == 0
        step = (await paper.steps(instance))["sleep"]
        assert (step.state, step.review_class) == ("NEEDS_REVIEW", "ENGINE_ERROR")
        await paper.control(instance, Action.CANCEL)
        assert (await paper.show(instance)).row.state == "CANCELLED"


async def test_a_checkpoint_that_cannot_be_continued_sends_its_targets_to_review(migrated_url: str) -> None:
    flow = document({"ask": wait("work"), "work": task("done", value={"ref": "input"}), "done": end()})
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.control(instance, Action.PAUSE)
        await paper.signal(instance)
        await paper.set("UPDATE instances SET paused = 0, advance_due_at = 1 WHERE id = :i", i=instance)
        await paper.set("UPDATE instance_inputs SET input = '{broken' WHERE instance_id = :i", i=instance)
        report = await sweep_advances(paper.database, paper.weave, paper.seed)
        assert (report.found, report.failed) == (1, 1)
        assert (await sweep_advances(paper.database, paper.weave, paper.seed)).found == 0
        step = (await paper.steps(instance))["work"]
        assert (step.state, step.review_class) == ("NEEDS_REVIEW", "ENGINE_ERROR")


async def test_a_row_of_a_vanished_workflow_is_marked_stale(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.set(
            "INSERT INTO inbox (id, namespace_id, instance_id, task_id, activation_id, source_revision,"
            " state, created_at) VALUES (:i, :n, :w, :t, :a, 1, 'PENDING', 1)",
            i="1" * 32, n=NAMESPACE, w="2" * 32, t="3" * 32, a="4" * 32,
        )  # fmt: skip
        report = await sweep_inbox(paper.database, paper.weave, paper.seed)
        assert (report.found, report.failed) == (1, 0)
        assert await inbox(paper) == ["STALE"]


async def test_a_long_advance_is_cut_into_pieces_and_continued_by_a_scan(migrated_url: str) -> None:
    nodes: dict[str, Any] = {}
    for number in range(6):
        nodes[f"b{number}"] = {
            "kind": "BRANCH",
            "on": {"const": "x"},
            "cases": [{"equals": ["x"], "next": f"b{number + 1}" if number < 5 else "done"}],
            "otherwise": "other",
        }
    nodes |= {"done": end(), "other": end()}
    async with Paper(migrated_url) as paper:
        paper.weave = type(paper.weave)(paper.weave.catalog, type(paper.weave.limits)(transitions=2))
        await paper.publish(document(nodes))
        instance = await paper.start({})
        assert (await paper.show(instance)).row.state == "RUNNING"
        await paper.until(instance, "SUCCEEDED")


async def test_a_review_that_ended_meanwhile_settles_nothing_twice(migrated_url: str) -> None:
    """A task that is settled, or let go, stays as it is when its workflow orders it again."""

    class Again(Keyless):
        def __init__(self, task_id: str) -> None:
            self.task_id = self.lane = task_id

        def needs(self) -> Any:
            return dict.fromkeys((TASKS.name, ATTEMPTS.name, TASK_RESULTS.name), (self.task_id,))

        def decide(self, book: Any) -> Any:
            before = operations.task_of(book, self.task_id)
            failed = Resolution(Verdict.FAILED, None, "LATE")
            assert operations.settle_task(book, self.task_id, failed) is before
            assert operations.detach_task(book, self.task_id) is before
            assert operations.cancel_task(book, self.task_id) is before
            operations.gate_tasks(book, [self.task_id], True)
            return Done(operations.task_of(book, self.task_id) is before)

    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        paper.worker()
        await paper.publish(two_steps())
        instance = await paper.start({})
        await paper.until(instance, "SUCCEEDED")
        task_id = (await paper.steps(instance))["one"].task_id
        assert await paper.database.committer.submit(Again(task_id))


async def test_a_late_report_of_an_earlier_activation_is_stale(migrated_url: str) -> None:
    flow = document({"pay": task("done", "risky"), "done": end({"ref": "pay"})})
    said = iter([Told(Said.EXCEPTION, code="BOOM"), Told(Said.SUCCEEDED, result=2)])
    async with Paper(migrated_url, {"risky": lambda _: next(said)}, companions=False) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["pay"]
        await paper.conclude(instance, "pay", step.revision, "RERUN")
        await paper.set("UPDATE inbox SET state = 'PENDING'")
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == 2
        await paper.settled(instance)
        assert sorted(await inbox(paper)) == ["APPLIED", "STALE"]


@pytest.mark.parametrize("key", ["one", "two"])
async def test_a_signal_of_a_closed_activation_serves_no_later_one(migrated_url: str, key: str) -> None:
    flow = document({"ask": wait("done"), "done": end({"ref": "ask"})})
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        first = (await paper.steps(instance))["ask"]
        await paper.set(
            "INSERT INTO inbox (id, namespace_id, instance_id, task_id, activation_id, source_revision,"
            " state, created_at) VALUES (:i, :n, :w, :t, :a, 1, 'PENDING', 1)",
            i="1" * 32, n=NAMESPACE, w=instance, t="3" * 32, a=first.id,
        )  # fmt: skip
        block = BlockOnError(instance, "3" * 32, first.id, "1" * 32, "broken", paper.seed(), paper.weave)
        assert await paper.database.committer.submit(block)
        sent = await paper.signal(instance, key=key, activation_id=first.id)
        assert sent["state"] == "PENDING"
        step = (await paper.steps(instance))["ask"]
        await paper.conclude(instance, "ask", step.revision, "RERUN")
        again = (await paper.steps(instance))["ask"]
        assert (again.activation_no, again.state) == (2, "WAITING_SIGNAL")
        assert again.deadline_at == first.deadline_at
        assert (await paper.signal(instance, key=key, activation_id=first.id))["id"] == sent["id"]
        assert (await paper.steps(instance))["ask"].state == "WAITING_SIGNAL"
        assert (await paper.signal(instance, body="now"))["state"] == "CONSUMED"
        assert orjson.loads((await paper.until(instance, "SUCCEEDED")).output) == "now"
