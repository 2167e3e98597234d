"""Who may do what: every route of the table against every permission."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from orbit_server.api.routes import Route
from orbit_server.api.table import ROUTES
from orbit_server.platform.permissions import PERMISSIONS
from orbit_server.storage.tables import evidence, task_results
from tests.api.flows import ASKING, TASK, approve, publish, start, submit
from tests.documents import document, end, ref, task, wait
from tests.server import EVERYTHING, Api

CLOSED = [route for route in ROUTES if route.permission is not None]
SCHEDULE: dict[str, Any] = {
    "timing": {"kind": "RATE", "every_s": 3600},
    "misfire": {"policy": "SKIP"},
    "overlap": {"policy": "ALLOW"},
    "target": {"kind": "TASK", "queue": "jobs", "handler": "safe", "handler_version": 1},
}
# Who says what a schedule starts must be allowed to start it by hand.
BESIDE = {
    "/v1/schedules": "tasks:submit",
    "/v1/schedules/{schedule_id}/edit": "tasks:submit",
    # So must be who does something to many.
    "/v1/bulk": "workflows:control",
    "/v1/bulk/{bulk_id}/apply": "workflows:control",
    "/v1/bulk/{bulk_id}/stop": "workflows:control",
}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/definitions": {"definition": ASKING},
    "/v1/definitions/check": {"definition": ASKING},
    "/v1/definitions/plan": {"definition": ASKING},
    "/v1/drafts": {"definition": ASKING},
    "/v1/definitions/{definition_id}/current": {"version": 1},
    "/v1/definitions/{definition_id}/versions/{version}/retire": {"reason": "r"},
    "/v1/definitions/{definition_id}/signals": {
        "signal": "approval",
        "match": "m",
        "body": 1,
        "business_key": "b",
    },
    "/v1/workflows": {"definition_id": "test.ask", "input": None},
    "/v1/workflows/batch": {"items": [{"definition_id": "test.ask", "input": None, "idempotency_key": "b"}]},
    "/v1/workflows/{workflow_id}/signals": {"signal": "approval", "match": "m", "body": 1},
    "/v1/workflows/{workflow_id}/pause": {"reason": "r"},
    "/v1/workflows/{workflow_id}/resume": {"reason": "r"},
    "/v1/workflows/{workflow_id}/cancel": {"reason": "r"},
    "/v1/workflows/{workflow_id}/restart": {"effects": "NEW", "reason": "r"},
    "/v1/workflows/{workflow_id}/reviews/{step_key}": {
        "verdict": "FAILED",
        "expected_revision": "1",
        "reason": "r",
        "basis": "ACCEPTED_RISK",
        "code": "NO",
    },
    "/v1/workflows/{workflow_id}/reviews/{step_key}/probe": {"reason": "r"},
    "/v1/tasks/{task_id}/probe": {"reason": "r"},
    "/v1/workflows/{workflow_id}/reviews/{step_key}/grant": {
        "expected_revision": "1",
        "reason": "r",
        "attempts": 1,
    },
    "/v1/waits/{wait_id}/answer": {"body": 1},
    "/v1/bulk": {"action": {"kind": "workflow.pause"}, "reason": "r"},
    "/v1/bulk/{bulk_id}/apply": {},
    "/v1/bulk/{bulk_id}/stop": {"reason": "r"},
    "/v1/tasks": TASK,
    "/v1/tasks/batch": {"items": [{**TASK, "idempotency_key": "b"}]},
    "/v1/tasks/{task_id}/cancel": {"reason": "r"},
    "/v1/tasks/{task_id}/review": {
        "verdict": "FAILED",
        "expected_revision": "1",
        "reason": "r",
        "basis": "ACCEPTED_RISK",
    },
    "/v1/queues/{queue}/pause": {"reason": "r"},
    "/v1/queues/{queue}/resume": {"reason": "r"},
    "/v1/queues/{queue}/limits": {"reason": "r"},
    "/v1/queues/{queue}/key-classes": {"name": "c", "running_max": 2, "reason": "r"},
    "/v1/queues/{queue}/weights": {"fairness_key": "f", "weight": 2, "reason": "r"},
    "/v1/limits": {"reason": "r"},
    "/v1/workers/block": {"build": "b", "reason": "r"},
    "/v1/workers/unblock": {"build": "b", "reason": "r"},
    "/v1/schedules": {"name": "s", **SCHEDULE},
    "/v1/schedules/{schedule_id}/edit": {**SCHEDULE, "expected_version": 1, "reason": "r"},
    "/v1/schedules/{schedule_id}/pause": {"reason": "r"},
    "/v1/schedules/{schedule_id}/resume": {"reason": "r"},
    "/v1/schedules/{schedule_id}/trigger": {"reason": "r"},
    "/v1/schedules/{schedule_id}/backfill": {
        "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2026-01-02T00:00:00Z",
        "reason": "r",
    },
    "/v1/subscriptions": {"name": "s", "when_full": "DROP_OLDEST"},
    "/v1/subscriptions/{subscription}/pull": {},
    "/v1/subscriptions/{subscription}/acknowledge": {"ids": ["0" * 32]},
    "/v1/subscriptions/{subscription}/end": {"reason": "r"},
    "/v1/credentials": {"name": "n", "permissions": []},
    "/v1/credentials/{credential_id}/revoke": {"reason": "r"},
}


async def call(api: Api, route: Route, path: str) -> Any:
    if route.method == "GET":
        return await api.get(path)
    key = "" if route.idempotency == "required" else None
    return await api.post(path, BODIES[route.path], key=key)


def test_every_permission_of_a_route_exists() -> None:
    assert {route.permission for route in CLOSED} <= PERMISSIONS
    assert {route.instead for route in CLOSED if route.instead is not None} <= PERMISSIONS


def test_what_is_open_to_everybody_is_a_short_list() -> None:
    assert {route.path for route in ROUTES if route.permission is None} == {
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
    }


async def one_of_each(api: Api) -> dict[str, str]:
    """Make one thing of every kind; answers how each is named in the path of a route."""
    await publish(api, ASKING)
    workflow_id = await start(api, ASKING)
    event = (await api.get(f"/v1/workflows/{workflow_id}/events", limit=1)).data["items"][0]
    signal = (await approve(api, await start(api, ASKING))).data
    credential = (await api.get("/v1/credentials")).data["items"][-1]
    names = {
        "workflow_id": workflow_id,
        "task_id": await submit(api),
        "event_id": event["id"],
        "signal_id": signal["id"],
        "wait_id": (await api.get("/v1/waits")).data["items"][0]["id"],
        "credential_id": credential["id"],
        "definition_id": "test.ask",
        "version": "1",
        "digest": "0" * 64,
        "step_key": "ask",
        "queue": "jobs",
        "schedule_id": (await api.post("/v1/schedules", BODIES["/v1/schedules"])).data["id"],
        "subscription": "results",
        "bulk_id": (await api.post("/v1/bulk", BODIES["/v1/bulk"])).data["id"],
    }
    await api.post("/v1/subscriptions", {"name": "results", "when_full": "DROP_OLDEST"}, key=None)
    return names


@pytest.mark.parametrize("route", CLOSED, ids=lambda route: f"{route.method} {route.path}")
async def test_a_route_opens_to_its_permission_and_to_no_other(edge: Api, route: Route) -> None:
    names = await one_of_each(edge)
    path = route.path.format(**names)
    without = tuple(sorted(PERMISSIONS - {route.permission, route.instead}))
    closed = await edge.with_rights(replace(EVERYTHING, permissions=without))
    refused = await call(closed, route, path)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert str(route.permission) in refused.body["error"]["message"]
    nobody = await call(Api(edge.parts, None), route, path)
    assert nobody.status == 401
    beside = [BESIDE[route.path]] if route.path in BESIDE and route.method == "POST" else []
    opened = await edge.with_rights(replace(EVERYTHING, permissions=(str(route.permission), *beside)))
    allowed = await call(opened, route, path)
    assert allowed.status in (200, 404, 409), allowed.body
    if allowed.status == 200 and route.answer is not None:
        route.answer.model_validate(allowed.data)
        extra = set(allowed.data) - set(route.answer.model_fields)
        assert not extra, f"{route.path} answers fields its model does not have: {extra}"


async def test_submitting_is_limited_to_named_queues(edge: Api) -> None:
    other = await edge.with_rights(replace(EVERYTHING, submit_queues=("mine",)))
    assert (await other.post("/v1/tasks", {**TASK, "queue": "mine"})).status == 200
    assert (await other.post("/v1/tasks", TASK)).code == "PERMISSION_DENIED"
    items = [{**TASK, "idempotency_key": "a"}, {**TASK, "queue": "mine", "idempotency_key": "b"}]
    found = (await other.post("/v1/tasks/batch", {"items": items}, key=None)).data["items"]
    assert found[0]["error"]["code"] == "PERMISSION_DENIED"
    assert "id" in found[1]


async def test_signals_are_limited_to_named_definitions(edge: Api) -> None:
    second = document({"ask": wait("done"), "done": end()}, id="test.second")
    mine, other = await start(edge, ASKING), await start(edge, second)
    limited = await edge.with_rights(replace(EVERYTHING, signal_definitions=("test.ask",)))
    assert (await approve(limited, mine)).status == 200
    refused, absent = await approve(limited, other), await approve(limited, "0" * 32)
    assert refused.body["error"] == absent.body["error"]
    assert refused.status == 404


async def test_a_task_of_another_namespace_is_as_good_as_absent(edge: Api) -> None:
    task_id = await submit(edge)
    other = await edge.with_rights(namespace="elsewhere")
    assert (await other.get("/v1/tasks")).data["items"] == []
    for path, body in (("", None), ("/attempts", None), ("/cancel", {"reason": "r"})):
        send = (
            other.get(f"/v1/tasks/{task_id}{path}")
            if body is None
            else other.post(f"/v1/tasks/{task_id}{path}", body)
        )
        assert (await send).code == "NOT_FOUND"
    assert (await edge.get(f"/v1/tasks/{task_id}")).data["state"] == "READY"


SECRETIVE = document(
    {"ask": wait("done"), "done": end({"ref": "input"})},
    id="test.secretive",
    input={
        "type": "object",
        "properties": {"name": {"type": "string"}, "pin": {"type": "string", "sensitive": True}},
        "required": ["name", "pin"],
    },
    output={
        "type": "object",
        "properties": {"name": {"type": "string"}, "pin": {"type": "string", "sensitive": True}},
        "required": ["name", "pin"],
    },
    signals={"approval": {"body": {"type": "string", "sensitive": True}}},
)


async def test_sensitive_values_are_masked_without_the_right_to_read_payloads(edge: Api) -> None:
    workflow_id = await start(edge, SECRETIVE, {"name": "n", "pin": "1234"})
    await approve(edge, workflow_id, "secret")
    kept = tuple(sorted(PERMISSIONS - {"payloads:read"}))
    other = await edge.with_rights(replace(EVERYTHING, permissions=kept))
    path = f"/v1/workflows/{workflow_id}"
    assert (await edge.get(path)).data["input"] == {"name": "n", "pin": "1234"}
    seen = (await other.get(path)).data
    assert seen["input"] == seen["output"] == {"name": "n", "pin": "***"}
    assert (await edge.get(f"{path}/steps/ask")).data["result"] == "secret"
    assert (await other.get(f"{path}/steps/ask")).data["result"] == "***"


PAYING = document(
    {"pay": task("done", "pay", value=ref("input")), "done": end()},
    id="test.paying",
    input={"type": "string", "sensitive": True},
    handlers={
        "pay@1": {
            "parameters": {"value": {"type": "string", "sensitive": True}, "note": {"type": "string"}},
            "required": ["value"],
            "result": {"type": "object", "properties": {"iban": {"type": "string", "sensitive": True}}},
            "recovery": "CONSERVATIVE",
            "verify": False,
        }
    },
)


async def test_a_task_of_a_workflow_is_masked_by_the_types_of_its_handler(edge: Api) -> None:
    workflow_id = await start(edge, PAYING, "DE12")
    (found,) = (await edge.get("/v1/tasks", workflow_id=workflow_id)).data["items"]
    path = f"/v1/tasks/{found['id']}"

    def end_it(conn: Connection) -> None:
        values = {"task_id": found["id"], "result": '{"iban":"DE12","n":1}', "at": 1}
        conn.execute(insert(task_results).values(**values))
        report = {"task_id": found["id"], "namespace_id": "0" * 32, "kind": "LATE", "body": '"DE12"', "at": 1}
        conn.execute(insert(evidence).values(id="1" * 32, contradiction=1, **report))

    await edge.parts.server.database.write(end_it)
    seen = (await edge.get(path)).data
    assert (seen["parameters"], seen["result"]) == ({"value": "DE12"}, {"iban": "DE12", "n": 1})
    assert [one["body"] for one in seen["evidence"]] == ["DE12"]
    kept = tuple(sorted(PERMISSIONS - {"payloads:read"}))
    masked = (await (await edge.with_rights(replace(EVERYTHING, permissions=kept))).get(path)).data
    assert (masked["parameters"], masked["result"]) == ({"value": "***"}, {"iban": "***", "n": 1})
    assert [one["body"] for one in masked["evidence"]] == ["***"]
    assert "DE12" not in str(masked)


async def test_parameters_of_a_standalone_task_have_no_type_and_are_masked_whole(edge: Api) -> None:
    task_id = await submit(edge, parameters={"pin": "1234"})
    other = await edge.with_rights(
        replace(EVERYTHING, permissions=tuple(sorted(PERMISSIONS - {"payloads:read"})))
    )
    assert (await edge.get(f"/v1/tasks/{task_id}")).data["parameters"] == {"pin": "1234"}
    assert (await other.get(f"/v1/tasks/{task_id}")).data["parameters"] == "***"
