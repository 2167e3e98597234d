"""What the timeline calls the things that happen: every type of event, met in real runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import update

from orbit_server.storage.tables import steps
from tests.api.flows import start
from tests.documents import document, end, task, wait
from tests.server import EVERYTHING, Api, until

TWICE = document({"ask": wait("again"), "again": wait("done", match="n"), "done": end()}, id="test.twice")

SHAPES = {
    "workflow.started": ("workflow", "WORKFLOW"),
    "workflow.advanced": ("workflow", "WORKFLOW"),
    "workflow.controlled": ("workflow", "WORKFLOW"),
    "workflow.recovered": ("workflow", "WORKFLOW"),
    "workflow.blocked": ("workflow", "WORKFLOW"),
    "workflow.stopped": ("workflow", "WORKFLOW"),
    "workflow.step.changed": ("workflow_step", "STEP"),
    "workflow.signal.accepted": ("workflow", "SIGNAL"),
    "workflow.signal.changed": ("workflow_signal", "SIGNAL"),
}


async def events_of(api: Api, workflow_id: str) -> list[Any]:
    """All events with their payloads, newest first."""
    path = f"/v1/workflows/{workflow_id}/events"
    found = (await api.get(path, limit=100)).data["items"]
    return [(await api.get(f"{path}/{item['id']}")).data for item in found]


async def time_out(api: Api, workflow_id: str) -> None:
    """The time of the open wait is over."""

    def run(conn: Any) -> None:
        late = update(steps).where(steps.c.instance_id == workflow_id, steps.c.live == 1)
        conn.execute(late.values(due_at=1, deadline_at=1))

    await api.parts.server.database.write(run)


async def state_of(api: Api, workflow_id: str) -> str:
    return str((await api.get(f"/v1/workflows/{workflow_id}")).data["state"])


async def test_every_type_of_event_is_of_its_kind_and_scope(api: Api) -> None:
    first = await start(api, TWICE)
    path = f"/v1/workflows/{first}"
    for action in ("pause", "resume"):
        assert (await api.post(f"{path}/{action}", {"reason": "r"})).status == 200
    early = (await api.post(f"{path}/signals", {"signal": "approval", "match": "n", "body": 1})).data
    assert early["state"] == "PENDING"
    await time_out(api, first)

    async def in_review() -> bool:
        return await state_of(api, first) == "NEEDS_REVIEW"

    await until(in_review)
    step = (await api.get(f"{path}/steps/ask")).data
    decision = {
        "verdict": "SUCCEEDED",
        "expected_revision": step["revision"],
        "reason": "r",
        "basis": "ACCEPTED_RISK",
        "result": "a person answered",
    }
    assert (await api.post(f"{path}/reviews/ask", decision)).status == 200
    late = (await api.post(f"{path}/signals", {"signal": "approval", "match": "m", "body": 2})).data
    second = await start(api, TWICE)
    await api.post(f"/v1/workflows/{second}/cancel", {"reason": "r"})
    found = [*await events_of(api, first), *await events_of(api, second)]
    assert {event["type"] for event in found} == set(SHAPES)
    for event in found:
        assert (event["aggregate_kind"], event["state_scope"]) == SHAPES[event["type"]]
        own = event["workflow_id"] if event["aggregate_kind"] == "workflow" else None
        assert event["aggregate_id"] == (own or event["aggregate_id"])
        assert ("step_key" in event) == (event["state_scope"] == "STEP")
    await _signals(found, early["id"], late["id"])


async def _signals(found: list[Any], early: str, late: str) -> None:
    """The acceptance is an event of the workflow and names the signal; only a pending signal changes."""
    accepted = {e["payload"]["signal_id"]: e for e in found if e["type"] == "workflow.signal.accepted"}
    changed = [e for e in found if e["type"] == "workflow.signal.changed"]
    assert accepted[early]["state"] == "PENDING"
    assert accepted[late]["state"] == "REJECTED"
    assert [(e["aggregate_id"], e["state"]) for e in changed] == [(early, "CONSUMED")]


async def test_twenty_events_are_a_page_when_nothing_is_said(edge: Api) -> None:
    workflow_id = await start(edge, TWICE)
    path = f"/v1/workflows/{workflow_id}"
    for _ in range(12):
        await edge.post(f"{path}/pause", {"reason": "r"})
        await edge.post(f"{path}/resume", {"reason": "r"})
    page = (await edge.get(f"{path}/events")).data
    assert len(page["items"]) == 20
    assert "next_cursor" in page
    assert page["revision"] == (await edge.get(path)).data["revision"]
    whole = (await edge.get(f"{path}/events", limit=100)).data
    assert "next_cursor" not in whole


async def test_what_happens_while_pages_are_turned_is_on_the_first_page(edge: Api) -> None:
    workflow_id = await start(edge, TWICE)
    path = f"/v1/workflows/{workflow_id}"
    first = (await edge.get(f"{path}/events", limit=1)).data
    await edge.post(f"{path}/pause", {"reason": "r"})
    rest = (await edge.get(f"{path}/events", limit=100, cursor=first["next_cursor"])).data["items"]
    again = (await edge.get(f"{path}/events", limit=1)).data["items"]
    assert again[0]["type"] == "workflow.controlled"
    assert again[0]["id"] not in {item["id"] for item in rest}


async def test_a_cursor_of_the_timeline_opens_no_other_list_of_the_same_workflow(edge: Api) -> None:
    workflow_id = await start(edge, TWICE)
    path = f"/v1/workflows/{workflow_id}"
    cursor = (await edge.get(f"{path}/events", limit=1)).data["next_cursor"]
    for other in ("operations", "signals", "activations", "steps/ask/activations"):
        reply = await edge.get(f"{path}/{other}", cursor=cursor)
        assert reply.status == 404 or reply.fields == ["cursor"], other


async def test_a_single_event_needs_every_queue_of_the_definition_too(edge: Api) -> None:
    flow = document({"ask": wait("done"), "done": end()}, id="test.queued")
    flow["nodes"]["ask"]["on_timeout"] = {"next": "work"}
    flow["nodes"]["work"] = task("done", "safe", queue="far")
    workflow_id = await start(edge, flow)
    path = f"/v1/workflows/{workflow_id}/events"
    event = (await edge.get(path, limit=1)).data["items"][0]["id"]
    near = await edge.with_rights(replace(EVERYTHING, submit_queues=("near",), consume_queues=()))
    far = await edge.with_rights(replace(EVERYTHING, submit_queues=(), consume_queues=("far",)))
    assert (await near.get(f"{path}/{event}")).code == "NOT_FOUND"
    assert (await far.get(f"{path}/{event}")).status == 200
