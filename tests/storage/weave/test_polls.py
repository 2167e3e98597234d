from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from tests.documents import document, end, poll
from tests.storage.weave.paper import Paper, succeeds


def asking(**more: Any) -> dict[str, Any]:
    flow = document({"ask": poll("done", receipt=True, **more), "done": end({"ref": "ask"})})
    flow["nodes"]["ask"]["every_ms"] = 1
    flow["nodes"]["ask"]["retry"] |= {"backoff_ms": 1, "max_backoff_ms": 2}
    return flow


PENDING = Told(Said.SUCCEEDED, result={"state": "pending"})


async def rounds(paper: Paper, instance: str) -> list[tuple[int, int]]:
    found = await paper.rows(
        "SELECT round, COUNT(*) FROM tasks WHERE instance_id = :i GROUP BY round ORDER BY round", i=instance
    )
    return [tuple(row) for row in found]


async def test_errors_that_use_up_a_round_go_to_review_and_name_it(migrated_url: str) -> None:
    asked = 0

    def fourth_is_broken(_: Any) -> Told:
        nonlocal asked
        asked += 1
        return PENDING if asked < 4 else Told(Said.RETRYABLE, code="AWAY", effect_unknown=False)

    async with Paper(migrated_url, {"status": fourth_is_broken}) as paper:
        paper.worker()
        await paper.publish(asking(rounds=10))
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["ask"]
        assert (step.reason, step.review_class) == ("ROUND_4:ATTEMPTS_EXHAUSTED", "DEFINITE")
        assert asked == 6, "three attempts, no fifth round"
        assert await rounds(paper, instance) == [(1, 1), (2, 1), (3, 1), (4, 1)]


async def test_a_state_that_nobody_knows_goes_to_review(migrated_url: str) -> None:
    async with Paper(migrated_url, {"status": succeeds({"state": "ON_HOLD"})}) as paper:
        paper.worker()
        await paper.publish(asking())
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["ask"]
        assert (step.reason, step.review_class) == ("ROUND_1:UNKNOWN_STATE", "UNMAPPED")
        await paper.conclude(instance, "ask", step.revision, "SUCCEEDED", result={"state": "done"})
        await paper.until(instance, "SUCCEEDED")


async def test_the_last_pending_round_goes_to_review_with_what_is_known(migrated_url: str) -> None:
    async with Paper(migrated_url, {"status": lambda _: PENDING}) as paper:
        paper.worker()
        await paper.publish(asking(rounds=2))
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["ask"]
        assert (step.reason, step.review_class) == ("ROUND_2:ROUNDS_EXHAUSTED", "TIMEOUT")
        assert step.result_ref is not None


@pytest.mark.parametrize("receipt_first", [True, False])
async def test_receipt_and_query_the_first_stored_one_decides(migrated_url: str, receipt_first: bool) -> None:
    flow = asking(on_failed={"next": "no"})
    flow["nodes"]["no"] = end({"const": "rejected"})
    async with Paper(migrated_url, {"status": succeeds({"state": "rejected"})}) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        (offer,) = await paper.held(worker)
        if not receipt_first:
            paper.companions = False  # the result is stored, its workflow has not looked at it yet
            await worker.play(offer)
        shown = await paper.signal(instance, "receipt", body={"state": "done", "receipt": "r"})
        if receipt_first:
            await worker.play(offer)
        ended = await paper.until(instance, "SUCCEEDED")
        if receipt_first:
            assert shown["state"] == "CONSUMED"
            assert orjson.loads(ended.output) == {"state": "done", "receipt": "r"}
        else:
            assert shown["state"] == "REJECTED"
            assert orjson.loads(ended.output) == "rejected"
        assert await rounds(paper, instance) == [(1, 1)]
        results = await paper.rows("SELECT result FROM task_results WHERE task_id = :t", t=offer.task_id)
        assert orjson.loads(results[0][0]) == {"state": "rejected"}, "the other answer stays on record"


async def test_a_receipt_lets_an_unstarted_query_go(migrated_url: str) -> None:
    async with Paper(migrated_url) as paper:
        await paper.publish(asking())
        instance = await paper.start({})
        await paper.signal(instance, "receipt", body={"state": "pending"}, key="moves nothing")
        assert (await paper.steps(instance))["ask"].state == "WAITING_TASK"
        await paper.signal(instance, "receipt", body={"state": "done"})
        await paper.until(instance, "SUCCEEDED")
        found = await paper.rows("SELECT state, error_code FROM tasks WHERE instance_id = :i", i=instance)
        assert [tuple(row) for row in found] == [("CANCELLED", "DETACHED")]


async def test_two_scanners_open_a_round_once(migrated_url: str) -> None:
    asked: list[str] = []

    def answer(offer: Any) -> Told:
        asked.append(offer.task_id)
        return PENDING if len(asked) < 8 else Told(Said.SUCCEEDED, result={"state": "done"})

    async with Paper(migrated_url, {"status": answer}) as paper:
        paper.worker()
        await paper.publish(asking(rounds=20))
        instance = await paper.start({})
        while (await paper.show(instance)).row.ended_at is None:
            await asyncio.gather(paper.sweep(), paper.sweep(), paper.sweep())
            await asyncio.sleep(0.002)
        assert await rounds(paper, instance) == [(number, 1) for number in range(1, 9)]


async def test_the_deadline_of_a_poll_is_fixed_when_it_opens(migrated_sqlite_url: str) -> None:
    def broken(_: Any) -> Told:
        return Told(Said.RETRYABLE, code="AWAY", effect_unknown=False)

    async with Paper(migrated_sqlite_url, {"status": broken}) as paper:
        paper.worker()
        await paper.publish(asking(attempts=20))
        instance = await paper.start({})
        first = (await paper.steps(instance))["ask"]
        await paper.settled(instance)
    async with Paper(migrated_sqlite_url, {"status": broken}) as paper:
        await paper.publish(asking(attempts=20))
        paper.worker()
        await paper.settled(instance)
        again = (await paper.steps(instance))["ask"]
        assert again.deadline_at == first.deadline_at
        found = await paper.rows(
            "SELECT DISTINCT total_deadline_at FROM tasks WHERE instance_id = :i", i=instance
        )
        assert [row[0] for row in found] == [first.deadline_at]
        await paper.set("UPDATE steps SET due_at = 1, deadline_at = 1 WHERE instance_id = :i", i=instance)
        await paper.until(instance, "NEEDS_REVIEW")
        assert (await paper.steps(instance))["ask"].reason == "ROUND_1:DEADLINE_PASSED"
