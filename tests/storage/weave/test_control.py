from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from orbit_sdk.errors import FailedPrecondition, NotFound
from orbit_server.clock import ManualClock
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.weave.control.commands import Action
from tests.documents import document, end, join, parallel, poll, task, timer, wait
from tests.storage.weave.paper import Paper, succeeds

MINUTE_US = 60_000_000


def sleeper() -> dict[str, Any]:
    return document(
        {"sleep": timer("work", seconds=3600), "work": task("done", "safe"), "done": end({"ref": "work"})}
    )


async def due(paper: Paper, instance: str) -> None:
    await paper.set("UPDATE steps SET due_at = 1 WHERE instance_id = :i AND due_at IS NOT NULL", i=instance)


async def test_a_timer_that_is_due_during_a_pause_starts_one_task_after_it(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(7)}) as paper:
        paper.worker()
        await paper.publish(sleeper())
        instance = await paper.start({})
        await paper.control(instance, Action.PAUSE)
        await due(paper, instance)
        await asyncio.gather(paper.sweep(), paper.sweep())
        assert "work" not in await paper.steps(instance)
        await paper.control(instance, Action.RESUME)
        assert orjson.loads((await paper.until(instance, "SUCCEEDED")).output) == 7
        tasks = await paper.rows("SELECT COUNT(*) FROM tasks WHERE instance_id = :i", i=instance)
        assert tasks[0][0] == 1


async def test_a_pause_moves_no_limit(migrated_sqlite_url: str) -> None:
    flow = document(
        {
            "both": parallel("meet", left="ask", right="query"),
            "ask": wait("meet", on_timeout={"next": "gave_up"}),
            "gave_up": task("meet", "safe"),
            "query": poll("meet", every=1200, within=3600),
            "meet": join("done"),
            "done": end(),
        }
    )
    flow["nodes"]["ask"]["next"] = "said"
    flow["nodes"]["said"] = task("meet", "safe")
    clock = ManualClock()
    pending = {"status": succeeds({"state": "pending"}), "safe": succeeds(1)}
    async with Paper(migrated_sqlite_url, pending, clock=clock) as paper:
        worker = paper.worker()
        await paper.publish(flow)
        on_time, too_late = await paper.start({}), await paper.start({})
        for instance in (on_time, too_late):
            while (await paper.steps(instance))["query"].state != "WAITING_TIME":
                await paper.sweep()
                await asyncio.sleep(0.005)
        clock.advance(30 * MINUTE_US)
        for instance in (on_time, too_late):
            await paper.control(instance, Action.PAUSE)
        clock.advance(30 * MINUTE_US)
        assert (await paper.signal(on_time))["state"] == "CONSUMED"
        clock.advance(30 * MINUTE_US)
        await paper.sweep()
        for instance in (on_time, too_late):
            await paper.control(instance, Action.RESUME)
            await paper.settled(instance)
            query = (await paper.steps(instance))["query"]
            assert (query.state, query.reason) == ("NEEDS_REVIEW", "ROUND_1:DEADLINE_PASSED")
        assert "said" in await paper.steps(on_time)
        assert "gave_up" in await paper.steps(too_late)
        assert worker.held == []


async def test_a_pause_before_the_start_withdraws_the_offer_and_one_after_it_lets_it_run(
    migrated_url: str,
) -> None:
    flow = document({"pay": task("next", "risky"), "next": task("done", "risky"), "done": end()})
    async with Paper(migrated_url, {"risky": succeeds(1)}) as paper:
        worker = paper.worker(recovery="CONSERVATIVE")
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        await paper.control(instance, Action.PAUSE)
        await worker.play(offer)
        assert (await paper.steps(instance))["pay"].state == "WAITING_TASK", "the start was refused"
        await paper.settled(instance)
        assert worker.held == [], "what is paused is not claimed"
        await paper.control(instance, Action.RESUME)
        (offer,) = await paper.held(worker)
        held = await worker.start(offer)
        assert held.granted
        await paper.control(instance, Action.PAUSE)
        await worker.report(offer, Told(Said.SUCCEEDED, result=1))
        await paper.settled(instance)
        assert {key: row.state for key, row in (await paper.steps(instance)).items()} == {"pay": "COMPLETED"}
        worker.holding = False
        await paper.control(instance, Action.RESUME)
        await paper.until(instance, "SUCCEEDED")


async def test_control_names_the_version_it_expects_and_its_operation_once(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(sleeper())
        instance = await paper.start({})
        with pytest.raises(FailedPrecondition, match="current control version is 1"):
            await paper.control(instance, Action.PAUSE, expected=4)
        first = await paper.control(instance, Action.PAUSE, expected=1, key="op-1")
        assert first["workflow"]["control_version"] == "2"
        assert await paper.control(instance, Action.PAUSE, expected=1, key="op-1") == first
        with pytest.raises(FailedPrecondition):
            await paper.control(instance, Action.RESUME, expected=1)
        with pytest.raises(FailedPrecondition, match="paused already"):
            await paper.control(instance, Action.PAUSE)
        await paper.control(instance, Action.RESUME, expected=2)
        with pytest.raises(FailedPrecondition, match="not paused"):
            await paper.control(instance, Action.RESUME)
        with pytest.raises(NotFound):
            await paper.control("0" * 32, Action.PAUSE)
        audit = await paper.rows("SELECT action FROM audit WHERE subject_id = :i ORDER BY at, id", i=instance)
        assert [row[0] for row in audit] == ["workflow.pause", "workflow.resume"]


async def test_a_resume_lifts_the_pause_alone(migrated_url: str) -> None:
    flow = document({"pay": task("done", "risky"), "done": end()})
    async with Paper(migrated_url, {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        await paper.control(instance, Action.CANCEL)
        await paper.control(instance, Action.PAUSE)
        shown = await paper.control(instance, Action.RESUME)
        state = shown["workflow"]
        assert (state["state"], state["cancel_requested"], state["paused"]) == ("NEEDS_REVIEW", True, False)


async def test_a_cancel_tells_everything_that_stays_done(migrated_url: str) -> None:
    flow = document(
        {
            "one": task("two", "safe"),
            "two": task("sleep", "safe"),
            "sleep": timer("three", seconds=3600),
            "three": task("done", "safe"),
            "done": end(),
        }
    )
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "WAITING")
        shown = await paper.control(instance, Action.CANCEL)
        assert shown["workflow"]["state"] == "CANCELLED"
        assert shown["effects_kept"] == ["one", "two"]
        with pytest.raises(FailedPrecondition, match="CANCELLED"):
            await paper.control(instance, Action.CANCEL)


async def test_a_cancel_asks_what_runs_and_keeps_its_success(migrated_url: str) -> None:
    flow = document({"work": task("after", "safe"), "after": task("done", "safe"), "done": end()})
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        shown = await paper.control(instance, Action.CANCEL)
        assert shown["workflow"]["state"] == "CANCELLING"
        await worker.play(offer)
        await paper.until(instance, "CANCELLED")
        assert {key: row.state for key, row in (await paper.steps(instance)).items()} == {"work": "COMPLETED"}


async def test_the_state_of_mixed_arms_is_that_of_the_gravest(migrated_url: str) -> None:
    flow = document(
        {
            "fork": parallel("meet", "LET_OTHERS_FINISH", a="bad", b="slow", c="ask"),
            "bad": task("meet", "risky"),
            "slow": task("meet", "safe"),
            "ask": wait("meet"),
            "meet": join("done"),
            "done": end(),
        }
    )
    boom = {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM"), "safe": succeeds(1)}
    async with Paper(migrated_url, boom) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        assert (await paper.show(instance)).row.state == "RUNNING"
        offers = {offer.handler: offer for offer in await paper.held(worker, 2)}
        await worker.play(offers["risky"])
        shown = await paper.until(instance, "NEEDS_REVIEW")
        states = {key: row.state for key, row in (await paper.steps(instance)).items()}
        assert (states["bad"], states["slow"], states["ask"]) == (
            "NEEDS_REVIEW",
            "WAITING_TASK",
            "WAITING_SIGNAL",
        )
        await paper.control(instance, Action.PAUSE)
        shown = await paper.show(instance)
        assert (shown.row.state, shown.row.paused) == ("NEEDS_REVIEW", True)
        await worker.play(offers["safe"])
        await paper.control(instance, Action.RESUME)
        step = (await paper.steps(instance))["bad"]
        await paper.conclude(instance, "bad", step.revision, "SUCCEEDED", result=1)
        await paper.until(instance, "WAITING")
