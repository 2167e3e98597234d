"""Acting for somebody else: a right of its own, kept beside the name of who really acted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.protocol.common import Managed
from orbit_sdk.protocol.waits import AnswerWait
from orbit_sdk.protocol.workflows import SignalContent
from orbit_server.api.routes import Route
from orbit_server.api.table import ROUTES
from orbit_server.platform.permissions import PERMISSIONS
from tests.api.flows import ASKING, approve, start, submit
from tests.api.test_permissions import BODIES
from tests.server import EVERYTHING, Api

ALONE = replace(EVERYTHING, permissions=tuple(sorted(PERMISSIONS - {"act:on-behalf"})))
MANAGING = [route for route in ROUTES if route.body is not None and "on_behalf_of" in route.body.model_fields]


def test_every_order_with_a_reason_can_be_given_for_somebody() -> None:
    with_reason = [route for route in ROUTES if route.body and "reason" in route.body.model_fields]
    assert all("on_behalf_of" in route.body.model_fields for route in with_reason if route.body)
    bases = (Managed, SignalContent, AnswerWait)
    others = [route.path for route in MANAGING if route.body and not issubclass(route.body, bases)]
    assert set(others) == {"/v1/definitions/{definition_id}/current", "/v1/bulk/{bulk_id}/apply"}


@pytest.mark.parametrize("route", MANAGING, ids=lambda route: route.path)
async def test_acting_for_somebody_needs_its_own_right(edge: Api, route: Route) -> None:
    workflow_id = await start(edge, ASKING)
    names = {
        "workflow_id": workflow_id,
        "task_id": await submit(edge),
        "wait_id": (await edge.get("/v1/waits")).data["items"][0]["id"],
        "credential_id": (await edge.get("/v1/credentials")).data["items"][-1]["id"],
        "definition_id": "test.ask",
        "version": "1",
        "step_key": "ask",
        "queue": "jobs",
        "schedule_id": (await edge.post("/v1/schedules", BODIES["/v1/schedules"])).data["id"],
        "subscription": "results",
        "bulk_id": (await edge.post("/v1/bulk", BODIES["/v1/bulk"])).data["id"],
    }
    await edge.post("/v1/subscriptions", {"name": "results", "when_full": "DROP_OLDEST"}, key=None)
    alone = await edge.with_rights(ALONE)
    key = "" if route.idempotency == "required" else None
    body = {**BODIES[route.path], "on_behalf_of": "Ms Chen"}
    refused = await alone.post(route.path.format(**names), body, key=key)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED"), refused.body
    assert "act:on-behalf" in refused.body["error"]["message"]


async def test_it_is_kept_with_control_and_shown_beside_the_actor(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}"
    assert (await edge.post(f"{path}/pause", {"reason": "r", "on_behalf_of": "Ms Chen"})).status == 200
    (shown,) = (await edge.get(f"{path}/operations")).data["items"]
    assert (shown["action"], shown["on_behalf_of"]) == ("workflow.pause", "Ms Chen")
    assert shown["actor"] != "Ms Chen"


async def test_it_is_kept_with_a_signal_and_part_of_what_was_said(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/signals"
    body: dict[str, Any] = {"signal": "approval", "match": "m", "body": 1, "on_behalf_of": "Ms Chen"}
    sent = (await edge.post(path, body, key="k")).data
    assert (await edge.get(f"{path}/{sent['id']}")).data["on_behalf_of"] == "Ms Chen"
    assert (await edge.post(path, {**body, "on_behalf_of": "Mr Li"}, key="k")).code == "CONFLICT"
    assert (await approve(edge, workflow_id, 1, key="k")).code == "CONFLICT"


async def test_it_is_kept_with_what_is_done_to_a_task(edge: Api) -> None:
    task_id = await submit(edge)
    body = {"reason": "r", "on_behalf_of": "Ms Chen"}
    assert (await edge.post(f"/v1/tasks/{task_id}/cancel", body, key="k")).status == 200
    assert (await edge.post(f"/v1/tasks/{task_id}/cancel", {"reason": "r"}, key="k")).code == "CONFLICT"
    (kept,) = await edge.parts.server.database.read(
        lambda conn: list(conn.exec_driver_sql("SELECT on_behalf_of FROM audit WHERE action = 'task.cancel'"))
    )
    assert kept == ("Ms Chen",)
