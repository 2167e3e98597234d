"""Two nodes over one MariaDB want conflicting things at once: one of them wins, and everybody is told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from orbit_sdk.errors import Conflict, FailedPrecondition
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.verify.rules import violations
from orbit_server.weave.control.commands import Action
from orbit_server.weave.definitions import queries as definitions
from orbit_server.weave.instances.time import StepDue
from tests.documents import document, end, join, parallel, task, wait
from tests.storage.weave.paper import NAMESPACE, Paper, PaperWorker, Play, succeeds

TIMES = 20


@asynccontextmanager
async def two(url: str, plays: dict[str, Play] | None = None) -> AsyncIterator[tuple[Paper, Paper]]:
    async with Paper(url, plays) as one, Paper(url, plays) as other:
        yield one, other
        assert await one.database.read(violations) == []


async def both(first: Awaitable[Any], second: Awaitable[Any]) -> list[Any]:
    """What each answered; a refusal is an answer."""
    found = await asyncio.gather(first, second, return_exceptions=True)
    for answer in found:
        if isinstance(answer, BaseException) and not isinstance(answer, FailedPrecondition | Conflict):
            raise answer
    return list(found)


def elsewhere(worker: PaperWorker, node: Paper) -> PaperWorker:
    """The same session, whose frames reach another node."""
    return PaperWorker(node, worker.facts)


async def test_two_arms_report_to_two_nodes_and_join_once(migrated_mariadb_url: str) -> None:
    flow = document(
        {
            "fork": parallel("meet", left="left", right="right"),
            "left": task("meet", "safe"),
            "right": task("meet", "safe"),
            "meet": join("after"),
            "after": task("done", "safe"),
            "done": end(),
        }
    )
    async with two(migrated_mariadb_url, {"safe": succeeds(1)}) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        worker = one.worker(slots=64)
        worker.holding = True
        far = elsewhere(worker, other)
        started = []
        for _ in range(TIMES):
            started.append(await one.start({}))
            left, right = await one.held(worker, 2, started[-1])
            await both(worker.play(left), far.play(right))
        worker.holding = False
        for offer in worker.held:
            await worker.play(offer)
        for instance in started:
            await one.until(instance, "SUCCEEDED")
        found = await one.rows(
            "SELECT COUNT(*), COUNT(DISTINCT instance_id) FROM tasks WHERE step_key = 'after'"
        )
        assert tuple(found[0]) == (TIMES, TIMES)


async def test_a_signal_and_its_time_out_on_two_nodes_have_one_winner(migrated_mariadb_url: str) -> None:
    flow = document(
        {"ask": wait("said", on_timeout={"next": "late"}), "said": end({"const": 1}), "late": end()}
    )
    async with two(migrated_mariadb_url) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        for _ in range(TIMES):
            instance = await one.start({})
            step = (await one.steps(instance))["ask"]
            # Over for the clock, while a signal that is accepted now would still be on time.
            await one.set("UPDATE steps SET due_at = 1 WHERE id = :s", s=step.id)
            due = StepDue(instance, step.id, other.seed(), other.weave)
            answer, _ = await both(one.signal(instance), other.database.committer.submit(due))
            await one.until(instance, "SUCCEEDED")
            keys = set(await one.steps(instance))
            assert keys == ({"ask", "said"} if answer["state"] == "CONSUMED" else {"ask", "late"})
            assert answer["state"] in ("CONSUMED", "REJECTED")


async def test_a_pause_and_a_start_on_two_nodes_have_one_order(migrated_mariadb_url: str) -> None:
    flow = document({"pay": task("next", "risky"), "next": task("done", "risky"), "done": end()})
    async with two(migrated_mariadb_url, {"risky": succeeds(1)}) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        worker = one.worker(slots=64, recovery="CONSERVATIVE")
        worker.holding = True
        for _ in range(TIMES):
            instance = await one.start({})
            (offer,) = await one.held(worker)
            granted, _ = await both(worker.start(offer), other.control(instance, Action.PAUSE))
            found = await one.rows("SELECT state FROM tasks WHERE id = :t", t=offer.task_id)
            assert found[0][0] == ("RUNNING" if granted.granted else "READY")
            assert (await one.show(instance)).row.paused


async def test_a_cancel_and_a_claim_on_two_nodes_leave_nothing_running(migrated_mariadb_url: str) -> None:
    flow = document({"work": task("done", "safe"), "done": end()})
    async with two(migrated_mariadb_url, {"safe": succeeds(1)}) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        one.worker(slots=64)
        for _ in range(TIMES):
            instance = await other.start({})
            await both(other.control(instance, Action.CANCEL), one.sweep())
            ended = await one.until(instance, "CANCELLED", "SUCCEEDED")
            if ended.row.state == "CANCELLED":
                found = await one.rows("SELECT state FROM tasks WHERE instance_id = :i", i=instance)
                assert found[0][0] in ("CANCELLED", "SUCCEEDED")


async def test_of_two_controls_with_one_expectation_one_wins(migrated_mariadb_url: str) -> None:
    flow = document({"ask": wait("done"), "done": end()})
    async with two(migrated_mariadb_url) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        for _ in range(TIMES):
            instance = await one.start({})
            answers = await both(
                one.control(instance, Action.PAUSE, expected=1),
                other.control(instance, Action.CANCEL, expected=1),
            )
            assert sum(isinstance(answer, FailedPrecondition) for answer in answers) == 1
            assert (await one.show(instance)).row.control_version == 2


async def test_one_operation_sent_to_two_nodes_is_done_once(migrated_mariadb_url: str) -> None:
    flow = document({"ask": wait("done"), "done": end()})
    async with two(migrated_mariadb_url) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        for number in range(TIMES):
            first, second = await both(one.start(1, key=f"k{number}"), other.start(1, key=f"k{number}"))
            assert first == second
            answers = await both(
                one.control(first, Action.PAUSE, key=f"o{number}", expected=1),
                other.control(first, Action.PAUSE, key=f"o{number}", expected=1),
            )
            assert answers[0] == answers[1]
            signals = await both(one.signal(first, key="s", body=1), other.signal(first, key="s", body=1))
            assert signals[0]["id"] == signals[1]["id"]


async def test_of_two_publications_of_one_version_one_content_stays(migrated_mariadb_url: str) -> None:
    async with two(migrated_mariadb_url) as (one, other):
        for number in range(1, TIMES + 1):
            flow = document({"done": end()}) | {"version": number}
            answers = await both(
                one.publish(flow | {"title": "one"}), other.publish(flow | {"title": "other"})
            )
            assert sum(isinstance(answer, Conflict) for answer in answers) == 1
            (winner,) = [answer for answer in answers if not isinstance(answer, Conflict)]
            stored = await one.database.read(
                partial(definitions.version, namespace_id=NAMESPACE, definition_id="test.flow", number=number)
            )
            assert stored is not None
            assert (stored.row.digest, stored.current) == (winner.row.digest, True)
        equal = await both(one.publish(flow | {"version": 99}), other.publish(flow | {"version": 99}))
        assert sorted(answer.created for answer in equal) == [False, True]


async def test_a_start_by_the_current_version_meets_one_version(migrated_mariadb_url: str) -> None:
    async with two(migrated_mariadb_url) as (one, other):
        flow = document({"ask": wait("done"), "done": end()})
        await one.publish(flow)
        await other.publish(flow)
        for number in range(2, TIMES):
            published, instance = await both(
                one.publish(flow | {"version": number}), other.start(1, key=f"k{number}")
            )
            first = (await other.show(instance)).row.definition_version
            assert first in (number - 1, published.row.version)
            assert await one.start(1, key=f"k{number}") == instance


@pytest.mark.parametrize("verdicts", [("SUCCEEDED", "FAILED"), ("RERUN", "RERUN"), ("SUCCEEDED", "RERUN")])
async def test_of_two_decisions_on_one_review_one_holds(
    migrated_mariadb_url: str, verdicts: tuple[str, str]
) -> None:
    flow = document({"pay": task("done", "risky"), "done": end()})
    plays: dict[str, Play] = {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}
    async with two(migrated_mariadb_url, plays) as (one, other):
        await one.publish(flow)
        await other.publish(flow)
        worker = one.worker(slots=64)
        for _ in range(TIMES // 4):
            worker.holding = False
            instance = await one.start({})
            await one.until(instance, "NEEDS_REVIEW")
            worker.holding = True
            revision = (await one.steps(instance))["pay"].revision
            answers = await both(
                one.conclude(instance, "pay", revision, verdicts[0], result=1, code="NO"),
                other.conclude(instance, "pay", revision, verdicts[1], result=2, code="NEVER"),
            )
            assert sum(isinstance(answer, FailedPrecondition) for answer in answers) == 1
            audit = await one.rows(
                "SELECT COUNT(*) FROM audit a JOIN steps s ON s.id = a.subject_id WHERE s.instance_id = :i",
                i=instance,
            )
            assert audit[0][0] == 1
