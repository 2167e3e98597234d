"""Many decisions at once, over a real server: planned, looked at, applied twice in parallel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.protocol.bulk import BulkPlan
from tests.api.flows import ASKING
from tests.api.test_reviews import LATE
from tests.server import server_process, until

FAILED = {"verdict": "FAILED", "code": "GONE", "reason": "outage", "basis": "ACCEPTED_RISK"}


async def reviews(client: OrbitClient) -> list[Any]:
    return [item async for item in client.reviews.list(kind="STEP")]


async def outcomes(client: OrbitClient, plan: BulkPlan) -> list[str]:
    return [item.outcome async for item in client.bulk.apply(plan, per_second=1000)]


async def test_a_plan_applied_by_two_at_once_decides_each_review_once(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    with server_process(migrated_sqlite_url, tmp_path) as server:
        async with (
            OrbitClient(server.url, server.token) as one,
            OrbitClient(server.url, server.token) as other,
        ):
            await one.definitions.publish(LATE, current=True)
            started = [await one.workflows.start("test.late", None) for _ in range(6)]

            async def all_late() -> bool:
                return len(await reviews(one)) == len(started)

            await until(all_late)
            plan = await one.bulk.plan_reviews(FAILED, review_class="TIMEOUT", step_key="ask")
            assert [(item.allowed, item.then) for item in plan.items] == [(True, "FAILED")] * 6
            assert len(await reviews(one)) == 6, "a plan does nothing"
            plan = BulkPlan.model_validate_json(plan.model_dump_json())
            await one.workflows.cancel(plan.items[0].workflow_id, reason="meanwhile")
            first, second = await asyncio.gather(outcomes(one, plan), outcomes(other, plan))
            assert first == second == ["SKIPPED", *["DONE"] * 5]
            assert await reviews(one) == []
            for item in plan.items[1:]:
                said = [operation async for operation in one.workflows.operations(item.workflow_id)]
                assert [operation.action for operation in said] == ["workflow.review.failed"]
            refused = {**FAILED, "verdict": "RERUN"}
            assert (await one.bulk.plan_reviews(refused)).items == []


async def test_many_workflows_are_paused_by_one_plan(migrated_sqlite_url: str, tmp_path: Path) -> None:
    with server_process(migrated_sqlite_url, tmp_path) as server:
        async with OrbitClient(server.url, server.token) as client:
            await client.definitions.publish(ASKING, current=True)
            started = [await client.workflows.start("test.ask", None) for _ in range(3)]
            await client.workflows.pause(started[0].id, reason="by hand")
            plan = await client.bulk.plan_control(
                "pause", reason="the bank is down", definition_id="test.ask"
            )
            assert [item.allowed for item in plan.items] == [True, True, False]
            assert "paused already" in (plan.items[2].why or "")
            assert await outcomes(client, plan) == ["DONE", "DONE", "SKIPPED"]
            for workflow in started:
                assert (await client.workflows.get(workflow.id)).paused
            with pytest.raises(InvalidArgument):
                _ = [item async for item in client.bulk.apply(plan, per_second=0)]
