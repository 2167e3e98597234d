"""What would follow: decided on real rows, and nothing of it stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, text

from orbit_sdk.engine import Verdict
from orbit_sdk.errors import FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.canonical import digest
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.storage.commands import CommandKey
from orbit_server.weave.control.commands import Action, ControlWorkflow
from orbit_server.weave.rehearsal.commands import Rehearse
from orbit_server.weave.reviews.commands import ResolveStep
from orbit_server.weave.reviews.examine import ExamineReview
from orbit_server.weave.service import send
from tests.documents import document, end, join, parallel, poll, ref, task, timer, wait
from tests.storage.weave.paper import NAMESPACE, Paper, succeeds

TABLES = ("instances", "steps", "signals", "tasks", "events", "audit", "idempotency", "payloads", "inbox")


async def everything(paper: Paper) -> dict[str, str]:
    """All rows of all tables that a decision could write, as text; locks may have been counted."""

    def read(conn: Connection) -> dict[str, str]:
        found = {}
        for table in TABLES:
            rows = conn.execute(text(f"SELECT * FROM {table}")).mappings().all()
            found[table] = str(sorted(str({**row, "lock_seq": 0}) for row in rows))
        return found

    return await paper.database.read(read)


def control(paper: Paper, instance: str, action: Action) -> ControlWorkflow:
    return ControlWorkflow(
        key=CommandKey(NAMESPACE, f"workflow.{action}", "k", digest(instance)),
        action=action,
        instance_id=instance,
        namespace_id=NAMESPACE,
        expected_control_version=None,
        actor="operator",
        reason="a test",
        seed=paper.seed(),
        weave=paper.weave,
    )


def decision(paper: Paper, instance: str, key: str, verdict: Verdict, **more: Any) -> ResolveStep:
    return ResolveStep(
        key=CommandKey(NAMESPACE, "workflow.review", "k", digest(key)),
        instance_id=instance,
        namespace_id=NAMESPACE,
        step_key=key,
        verdict=verdict,
        expected_revision=more.pop("revision", 0),
        actor="operator",
        reason="a test",
        basis=more.pop("basis", "PROVEN"),
        seed=paper.seed(),
        weave=paper.weave,
        **{"evidence": "seen", **more},
    )


async def rehearse(paper: Paper, command: Any) -> Any:
    return (await send(paper.database, paper.weave, Rehearse(command)))["forecast"]


async def test_a_rehearsed_cancel_tells_what_would_follow_and_changes_nothing(migrated_url: str) -> None:
    flow = document(
        {
            "first": task("fork", "safe"),
            "fork": parallel("meet", left="work", right="ask"),
            "work": task("meet", "safe"),
            "ask": wait("meet"),
            "meet": join("done"),
            "done": end(),
        }
    )
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        await worker.play(offer)
        await paper.held(worker)
        before = await everything(paper)
        forecast = await rehearse(paper, control(paper, instance, Action.CANCEL))
        assert await everything(paper) == before
        steps = {step["key"]: (step["before"], step["state"]) for step in forecast["steps"]}
        assert steps["ask"] == ("WAITING_SIGNAL", "STOPPED")
        assert [order["order"] for order in forecast["tasks"]] == ["CANCEL"]
        assert (forecast["state"], forecast["ends"]) == ("CANCELLING", False)
        assert forecast["effects_kept"] == ["first"]
        shown = await paper.control(instance, Action.CANCEL)
        assert shown["workflow"]["state"] == forecast["state"]


async def test_a_pause_and_a_resume_are_rehearsed(migrated_url: str) -> None:
    flow = document({"sleep": timer("work"), "work": task("done", "safe"), "done": end()})
    async with Paper(migrated_url) as paper:
        await paper.publish(flow)
        instance = await paper.start({})
        assert (await rehearse(paper, control(paper, instance, Action.PAUSE)))["paused"] is True
        await paper.control(instance, Action.PAUSE)
        await paper.set("UPDATE steps SET due_at = 1 WHERE instance_id = :i", i=instance)
        await paper.sweep()
        forecast = await rehearse(paper, control(paper, instance, Action.RESUME))
        (made,) = [order for order in forecast["tasks"] if order["order"] == "CREATE"]
        assert (made["step_key"], made["handler"], made["queue"]) == ("work", "safe@1", "jobs")
        with pytest.raises(FailedPrecondition):
            await rehearse(paper, control(paper, instance, Action.PAUSE))


async def test_decisions_on_a_review_are_rehearsed(migrated_url: str) -> None:
    flow = document({"pay": task("done", "risky"), "done": end(ref("pay"))})
    async with Paper(migrated_url, {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        revision = (await paper.steps(instance))["pay"].revision
        before = await everything(paper)
        order = decision(paper, instance, "pay", Verdict.SUCCEEDED, revision=revision, result=5)
        forecast = await rehearse(paper, order)
        assert (forecast["state"], forecast["ends"]) == ("SUCCEEDED", True)
        assert forecast["tasks"][0]["order"] == "SETTLE_SUCCEEDED"
        forecast = await rehearse(paper, replace(order, verdict=Verdict.FAILED, code="NO"))
        assert forecast["tasks"][0]["order"] == "SETTLE_FAILED"
        forecast = await rehearse(paper, replace(order, verdict=Verdict.RERUN))
        assert {o["order"] for o in forecast["tasks"]} == {"SETTLE_FAILED", "CREATE"}
        with pytest.raises(FailedPrecondition):
            await rehearse(paper, replace(order, verdict=Verdict.RERUN, basis="ACCEPTED_RISK"))
        with pytest.raises(InvalidArgument):
            await rehearse(paper, replace(order, evidence=None))
        with pytest.raises(NotFound):
            await rehearse(paper, replace(order, step_key="nowhere"))
        assert await everything(paper) == before


async def examine(paper: Paper, instance: str, key: str) -> Any:
    asked = ExamineReview(decision(paper, instance, key, Verdict.FAILED))
    found: Any = await send(paper.database, paper.weave, asked)
    return {item["verdict"]: item for item in found["decisions"]} | dict(found)


async def test_a_review_says_what_is_allowed_and_why_not_the_rest(migrated_url: str) -> None:
    boom = {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}
    async with Paper(migrated_url, boom) as paper:
        paper.worker()
        await paper.publish(document({"pay": task("done", "risky"), "done": end()}))
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        found = await examine(paper, instance, "pay")
        assert found["SUCCEEDED"]["allowed"]
        assert found["FAILED"]["allowed"]
        assert found["RERUN"]["needs_proof"]
        assert "may have had an effect" in found["RERUN"]["reason"]
        assert found["attempts_left"] == 2
        await paper.control(instance, Action.PAUSE)
        found = await examine(paper, instance, "pay")
        assert not found["RERUN"]["allowed"]
        assert "paused" in found["RERUN"]["reason"]


async def test_budgets_and_kinds_decide_what_a_review_allows(migrated_url: str) -> None:
    async with Paper(migrated_url, {"status": succeeds({"state": "pending"})}) as paper:
        paper.worker()
        flow = document({"ask": poll("done", rounds=1), "done": end()})
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        found = await examine(paper, instance, "ask")
        assert (found["RERUN"]["allowed"], found["rounds_left"]) == (False, 0)
        await paper.publish(document({"hold": wait("done"), "done": end()}) | {"version": 2})
        instance = await paper.start({})
        with pytest.raises(NotFound):
            await examine(paper, instance, "hold")
        await paper.set("UPDATE steps SET due_at = 1, deadline_at = 1 WHERE instance_id = :i", i=instance)
        await paper.until(instance, "NEEDS_REVIEW")
        found = await examine(paper, instance, "hold")
        assert found["SUCCEEDED"]["allowed"]
        assert "no time is left" in found["RERUN"]["reason"]
