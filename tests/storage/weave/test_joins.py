from __future__ import annotations

import asyncio
from typing import Any

from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from tests.documents import document, end, join, parallel, task, wait
from tests.storage.weave.paper import Paper, succeeds


def arms(on_arm_failure: str = "STOP_OTHERS", **left: Any) -> dict[str, Any]:
    return document(
        {
            "fork": parallel("meet", on_arm_failure, left="left", right="right"),
            "left": task("meet", "safe", **left),
            "right": task("meet", "safe"),
            "meet": join("after"),
            "after": task("done", "safe"),
            "done": end(),
        }
    )


async def test_two_results_at_once_open_what_follows_the_join_once(migrated_url: str) -> None:
    async with Paper(migrated_url, {"safe": succeeds(1)}) as paper:
        worker = paper.worker(slots=64)
        await paper.publish(arms())
        worker.holding = True
        started = [await paper.start({}) for _ in range(20)]
        offers = await paper.held(worker, 40)
        worker.holding = False
        await asyncio.gather(*(worker.play(offer) for offer in offers))
        for instance in started:
            await paper.until(instance, "SUCCEEDED")
        found = await paper.rows(
            "SELECT COUNT(*), COUNT(DISTINCT instance_id) FROM tasks WHERE step_key = 'after'"
        )
        assert tuple(found[0]) == (20, 20)


async def test_two_arms_that_fail_for_now_both_try_again(migrated_url: str) -> None:
    failed: dict[str, int] = {}

    def twice(offer: Any) -> Told:
        failed[offer.task_id] = failed.get(offer.task_id, 0) + 1
        retryable = Told(Said.RETRYABLE, code="BUSY", effect_unknown=False)
        return retryable if failed[offer.task_id] < 3 else Told(Said.SUCCEEDED, result=1)

    flow = arms()
    for key in ("left", "right", "after"):
        flow["nodes"][key]["retry"] |= {"backoff_ms": 1, "max_backoff_ms": 2, "max_attempts": 4}
    async with Paper(migrated_url, {"safe": twice}) as paper:
        paper.worker()
        await paper.publish(flow)
        await paper.until(await paper.start({}), "SUCCEEDED")
        assert sorted(failed.values()) == [3, 3, 3]


async def test_a_definite_failure_stops_the_other_arm_and_never_opens_what_follows(migrated_url: str) -> None:
    flow = arms(on_failure="FAIL")
    flow["nodes"]["right"] = wait("meet")
    async with Paper(migrated_url, {"safe": lambda _: Told(Said.FINAL, code="NO")}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        ended = await paper.until(instance, "FAILED")
        assert ended.error is not None
        states = {key: row.state.value for key, row in (await paper.steps(instance)).items()}
        assert (states["left"], states["right"]) == ("FAILED", "STOPPED")
        assert "after" not in states


async def test_a_failure_cancels_the_task_of_the_other_arm(migrated_url: str) -> None:
    flow = arms(on_failure="FAIL")
    async with Paper(migrated_url, {"safe": lambda _: Told(Said.FINAL, code="NO")}) as paper:
        worker = paper.worker()
        worker.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        offers = {offer.task_id: offer for offer in await paper.held(worker, 2)}
        left = (await paper.steps(instance))["left"]
        await worker.play(offers.pop(left.task_id))
        await paper.settled(instance)
        (other,) = offers.values()
        states = await paper.rows("SELECT state FROM tasks WHERE id = :t", t=other.task_id)
        assert states[0][0] == "CANCELLING"
        await worker.report(other, Told(Said.CANCELLED, code="STOPPED"))
        await paper.until(instance, "FAILED")
