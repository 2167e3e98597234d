"""A credential that is capped in priority cannot pass its cap through a workflow or a schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from orbit_server.storage.tables import schedule_fires, schedule_versions, schedules
from tests.api.flows import publish, submit
from tests.api.test_bulk import apply, done, items, plan
from tests.api.test_tasks import put_in_review
from tests.documents import document, end, task
from tests.server import EVERYTHING, Api, until

URGENT = document({"work": task("done", priority=7), "done": end()}, id="test.urgent")
CALM = document({"work": task("done", priority=4), "done": end()}, id="test.calm")


@pytest.fixture
async def capped(edge: Api) -> Api:
    await publish(edge, URGENT)
    await publish(edge, CALM)
    return await edge.with_rights(replace(EVERYTHING, priority_max=5))


def start(definition_id: str) -> dict[str, Any]:
    return {"definition_id": definition_id, "input": {}}


def schedule(target: dict[str, Any]) -> dict[str, Any]:
    timing = {"kind": "RATE", "every_s": 60, "anchor": "2026-01-01T00:00:00Z"}
    skip, allow = {"policy": "SKIP"}, {"policy": "ALLOW"}
    return {"name": "n", "timing": timing, "misfire": skip, "overlap": allow, "target": target}


def task_target(priority: int) -> dict[str, Any]:
    named = {"kind": "TASK", "queue": "jobs", "handler": "h", "handler_version": 1, "parameters": {}}
    return {**named, "priority": priority}


def workflow_target(definition_id: str) -> dict[str, Any]:
    return {"kind": "WORKFLOW", "version": "CURRENT", **start(definition_id)}


async def test_a_workflow_with_a_step_above_the_cap_is_refused_by_the_name_of_the_step(capped: Api) -> None:
    refused = await capped.post("/v1/workflows", start("test.urgent"))
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert "step work of 'test.urgent' version 1 has priority 7" in refused.body["error"]["message"]
    assert (await capped.post("/v1/workflows", start("test.calm"))).status == 200


async def test_a_batch_starts_what_is_within_the_cap_and_refuses_the_rest(capped: Api) -> None:
    items = [{**start(name), "idempotency_key": name} for name in ("test.urgent", "test.calm")]
    found = (await capped.post("/v1/workflows/batch", {"items": items}, key=None)).data["items"]
    assert [item.get("error", {}).get("code") for item in found] == ["PERMISSION_DENIED", None]


async def test_a_restart_is_a_start_by_whoever_asks_for_it(edge: Api, capped: Api) -> None:
    origin = (await edge.post("/v1/workflows", start("test.urgent"))).data["id"]
    body = {"effects": "NEW", "reason": "r"}
    assert (await capped.post(f"/v1/workflows/{origin}/restart", body)).code == "PERMISSION_DENIED"


async def test_restarts_by_a_bulk_hold_to_the_caps_of_who_plans_and_of_who_applies(
    edge: Api, capped: Api
) -> None:
    for name in ("test.urgent", "test.calm"):
        await edge.post("/v1/workflows", start(name))
    again = {"kind": "workflow.restart", "effects": "NEW"}
    planned = await plan(capped, again)
    found = {item["allowed"]: item for item in await items(capped, planned)}
    assert (found[False]["code"], found[True]["allowed"]) == ("PERMISSION_DENIED", True)
    assert (await capped.get(f"/v1/bulk/{planned}")).data["orders"] == again
    free = await plan(edge, again)
    refused = await apply(capped, free)
    assert refused.code == "PERMISSION_DENIED"
    assert "plan it with this credential" in refused.body["error"]["message"]
    assert (await done(capped, planned))["applied"] == "1"


async def test_nobody_retries_by_hand_what_is_above_their_own_cap(edge: Api, capped: Api) -> None:
    for priority, status in ((6, 403), (5, 200)):
        task_id = await submit(edge, priority=priority)
        body = {
            "expected_revision": await put_in_review(edge, task_id),
            "verdict": "RETRY",
            "reason": "r",
            "basis": "ACCEPTED_RISK",
            "evidence": "asked the bank",
        }
        tried = await capped.post(f"/v1/tasks/{task_id}/review", body)
        assert tried.status == status, tried.body
    assert (await edge.get(f"/v1/tasks/{task_id}")).data["state"] == "FAILED"


async def test_retries_by_a_bulk_hold_to_the_caps_of_who_plans_and_of_who_applies(
    edge: Api, capped: Api
) -> None:
    for priority in (6, 5):
        await put_in_review(edge, await submit(edge, priority=priority), effect_possible=0)
    again = {"kind": "task.retry", "basis": "ACCEPTED_RISK"}
    planned = await plan(capped, again)
    found = {item["allowed"]: item for item in await items(capped, planned)}
    assert (found[False]["code"], found[True]["allowed"]) == ("PERMISSION_DENIED", True)
    assert (await apply(capped, await plan(edge, again))).code == "PERMISSION_DENIED"


async def test_a_schedule_for_a_task_or_workflow_above_the_cap_is_refused(capped: Api) -> None:
    for target in (task_target(6), workflow_target("test.urgent")):
        assert (await capped.post("/v1/schedules", schedule(target))).code == "PERMISSION_DENIED"
    for target in (task_target(5), workflow_target("test.calm")):
        made = await capped.post("/v1/schedules", schedule(target))
        body = {**schedule(target), "expected_version": 1, "reason": "r"}
        body["target"] = task_target(9)
        del body["name"]
        assert (await capped.post(f"/v1/schedules/{made.data['id']}/edit", body)).code == "PERMISSION_DENIED"


@pytest.mark.parametrize("target", [task_target(9), workflow_target("test.urgent")])
async def test_nobody_triggers_for_others_what_is_above_their_own_cap(
    edge: Api, capped: Api, target: dict[str, Any]
) -> None:
    made = (await edge.post("/v1/schedules", schedule(target))).data["id"]
    refused = await capped.post(f"/v1/schedules/{made}/trigger", {"reason": "r"})
    assert refused.code == "PERMISSION_DENIED"
    assert (await edge.post(f"/v1/schedules/{made}/trigger", {"reason": "r"})).status == 200


async def test_a_definition_raised_later_is_not_started_by_an_older_capped_schedule(
    edge: Api, capped: Api
) -> None:
    await capped.post("/v1/schedules", schedule(workflow_target("test.calm")))
    await publish(edge, {**URGENT, "id": "test.calm", "version": 2})
    database = edge.parts.server.database

    def fall_due(conn: Any) -> None:
        s, v = schedules.c, schedule_versions.c
        conn.execute(update(schedule_versions).values(effective_at=v.effective_at - 60_000_000))
        conn.execute(update(schedules).values(accounted_to=s.accounted_to - 60_000_000, due_at=1))

    await database.write(fall_due)
    edge.parts.loops["schedules"].wake()
    states = select(schedule_fires.c.state, schedule_fires.c.note)
    ((state, note),) = await until(lambda: database.read(lambda conn: list(conn.execute(states))))
    assert state == "REFUSED"
    assert "priority of at most 5" in note
