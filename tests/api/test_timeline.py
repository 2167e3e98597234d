"""The event timeline, to the letter."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from orbit_sdk.protocol.workflows import EventDetail, EventPage
from orbit_sdk.values.ids import derive_id
from orbit_server.storage.tables import events
from tests.api.flows import ASKING, WORKING, approve, pages, start
from tests.documents import branch, document, end, ref, task
from tests.server import EVERYTHING, Api

AT = 1_789_718_400_123_456


async def write(api: Api, statement: Any) -> None:
    def run(conn: Connection) -> None:
        conn.execute(statement)

    await api.parts.server.database.write(run)


def row(workflow_id: str, namespace_id: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": derive_id("event", str(number)),
        "namespace_id": namespace_id,
        "workflow_id": workflow_id,
        "task_id": None,
        "aggregate_kind": "workflow",
        "aggregate_id": workflow_id,
        "aggregate_revision": number + 1,
        "type": "workflow.advanced",
        "state_scope": "WORKFLOW",
        "state": "RUNNING",
        "step_key": None,
        "signal_id": None,
        "occurred_at": AT,
        "payload": '{"n":1e400}' if number < 0 else "{}",
        "fanned_out": 0,
        **more,
    }


async def namespace_of(api: Api) -> str:
    principal = await api.parts.server.authenticator.authenticate(api.token or "")
    return principal.namespace_id


async def test_the_events_of_a_run_tell_what_happened(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    receipt = (await approve(api, workflow_id)).data
    path = f"/v1/workflows/{workflow_id}/events"
    found = (await api.get(path, limit=100)).data
    EventPage.model_validate(found)
    assert found["workflow_id"] == workflow_id
    assert found["revision"] == (await api.get(f"/v1/workflows/{workflow_id}")).data["revision"]
    kinds = [item["type"] for item in found["items"]]
    assert {"workflow.started", "workflow.step.changed", "workflow.signal.accepted"} <= set(kinds)
    keys = [(item["occurred_at"], item["id"]) for item in found["items"]]
    assert keys == sorted(keys, reverse=True)
    assert all(("step_key" in item) == (item["state_scope"] == "STEP") for item in found["items"])
    assert all("payload" not in item for item in found["items"])
    changed = next(item for item in found["items"] if item["type"] == "workflow.signal.changed")
    detail = (await api.get(f"{path}/{changed['id']}")).data
    EventDetail.model_validate(detail)
    assert {name: detail[name] for name in changed} == changed
    assert detail["payload"] == {
        "workflow_id": workflow_id,
        "signal_id": receipt["id"],
        "from": "PENDING",
        "state": "CONSUMED",
        "disposition": "WAIT_MATCHED",
        "consumed_wait_id": receipt["consumed_wait_id"],
    }


async def test_250_events_of_one_microsecond_are_paged_completely_and_in_order(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    space = await namespace_of(api)
    await write(api, insert(events).values([row(workflow_id, space, number) for number in range(250)]))
    path = f"/v1/workflows/{workflow_id}/events"
    found = await pages(api, path, 7)
    assert {len(page) for page in found[:-1]} == {7}
    items = [item for page in found for item in page]
    equal = [item["id"] for item in items if item["occurred_at"] == "2026-09-18T08:00:00.123456Z"]
    assert equal == sorted((derive_id("event", str(number)) for number in range(250)), reverse=True)
    assert len(items) == len({item["id"] for item in items}) > 250


async def test_an_event_of_another_workflow_is_not_found(api: Api) -> None:
    first, second = await start(api, ASKING), await start(api, ASKING)
    event = (await api.get(f"/v1/workflows/{first}/events", limit=1)).data["items"][0]
    assert (await api.get(f"/v1/workflows/{second}/events/{event['id']}")).code == "NOT_FOUND"
    assert (await api.get(f"/v1/workflows/{first}/events/{'0' * 32}")).code == "NOT_FOUND"
    assert (await api.get(f"/v1/workflows/{'0' * 32}/events/{event['id']}")).code == "NOT_FOUND"


async def test_reading_a_workflow_does_not_allow_reading_its_timeline(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    kept = tuple(name for name in EVERYTHING.permissions if name != "workflows:audit:read")
    other = await edge.with_rights(replace(EVERYTHING, permissions=kept))
    assert (await other.get(f"/v1/workflows/{workflow_id}")).status == 200
    reply = await other.get(f"/v1/workflows/{workflow_id}/events")
    assert (reply.status, reply.code) == (403, "PERMISSION_DENIED")
    assert "workflows:audit:read" in reply.body["error"]["message"]


BRANCHED = document(
    {
        "choose": branch(ref("input"), otherwise="left", never="right"),
        "left": task("done", "safe", queue="left"),
        "right": task("done", "safe", queue="right"),
        "done": end(),
    },
    id="test.branched",
    input={"type": "string"},
)


@pytest.mark.parametrize(
    ("submit", "consume", "status"),
    [
        (("left", "right"), (), 200),
        (("left",), ("right",), 200),
        ((), ("*",), 200),
        (("left",), (), 404),
        ((), ("right",), 404),
        ((), (), 404),
    ],
)
async def test_the_timeline_needs_every_queue_of_the_definition_untaken_branches_included(
    edge: Api, submit: tuple[str, ...], consume: tuple[str, ...], status: int
) -> None:
    workflow_id = await start(edge, BRANCHED, "here")
    rights = replace(EVERYTHING, submit_queues=submit, consume_queues=consume)
    other = await edge.with_rights(rights)
    assert (await other.get(f"/v1/workflows/{workflow_id}/events")).status == status


async def test_a_workflow_of_another_namespace_is_as_good_as_absent(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    event = (await edge.get(f"/v1/workflows/{workflow_id}/events", limit=1)).data["items"][0]
    other = await edge.with_rights(namespace="elsewhere")
    for path in ("", "/steps", "/steps/ask", "/signals", "/events", f"/events/{event['id']}"):
        reply = await other.get(f"/v1/workflows/{workflow_id}{path}")
        absent = await other.get(f"/v1/workflows/{'0' * 32}{path}")
        assert (reply.status, reply.body["error"]) == (404, absent.body["error"])


async def test_details_take_no_parameters_and_lists_only_theirs(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/events"
    event = (await edge.get(path, limit=1)).data["items"][0]["id"]
    for bad in (
        f"{path}/{event}?limit=1",
        f"{path}?state=RUNNING",
        f"{path}?limit=1&limit=1",
        f"{path}?limit=",
    ):
        assert (await edge.send("GET", bad)).code == "INVALID_ARGUMENT"
    for bad in ("0", "101", "-1", "1.0", "+1", "１", "9" * 30):
        assert (await edge.get(path, limit=bad)).code == "INVALID_ARGUMENT"
    for bad in (f"{path}/{event.upper()}", f"{path}/{event[:-1]}", f"/v1/workflows/{'g' * 32}/events"):
        assert (await edge.send("GET", bad)).code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "damage",
    [
        {"type": "workflow.danced"},
        {"state_scope": "STEP"},
        {"aggregate_kind": "workflow_step"},
        {"state": "HAPPY"},
        {"aggregate_id": "0" * 32},
        {"aggregate_revision": 0},
        {"type": "workflow.signal.changed", "aggregate_kind": "workflow_signal", "state_scope": "SIGNAL"},
    ],
    ids=lambda damage: next(iter(damage)),
)
async def test_a_damaged_event_is_never_an_empty_page(edge: Api, damage: dict[str, Any]) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/events"
    event = next(i for i in (await edge.get(path)).data["items"] if i["type"] == "workflow.started")
    await write(edge, update(events).where(events.c.id == event["id"]).values(**damage))
    for bad in (path, f"{path}/{event['id']}"):
        reply = await edge.get(bad)
        assert (reply.status, reply.code) == (503, "UNAVAILABLE")
        assert "items" not in reply.body


@pytest.mark.parametrize("payload", ['{"a":', "[]", "1", '{"a":"' + "x" * 70_000 + '"}'], ids=len)
async def test_a_damaged_or_oversize_payload_is_unavailable(edge: Api, payload: str) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/events"
    event = (await edge.get(path)).data["items"][0]
    await write(edge, update(events).where(events.c.id == event["id"]).values(payload=payload))
    assert (await edge.get(f"{path}/{event['id']}")).code == "UNAVAILABLE"
    assert (await edge.get(path)).status == 200


async def test_an_event_that_names_an_activation_of_another_workflow_is_unavailable(edge: Api) -> None:
    workflow_id, other_id = await start(edge, ASKING), await start(edge, ASKING)
    told = {}
    for each in (workflow_id, other_id):
        path = f"/v1/workflows/{each}/events"
        found = (await edge.get(path)).data["items"]
        event = next(item for item in found if item["type"] == "workflow.step.changed")
        told[each] = (await edge.get(f"{path}/{event['id']}")).data
    event, foreign = told[workflow_id], told[other_id]
    payload = event["payload"] | {"activation_id": foreign["payload"]["activation_id"]}
    assert payload != event["payload"]
    damage = update(events).where(events.c.id == event["id"]).values(payload=json.dumps(payload))
    await write(edge, damage)
    reply = await edge.get(f"/v1/workflows/{workflow_id}/events/{event['id']}")
    assert (reply.status, reply.code) == (503, "UNAVAILABLE")


async def test_numbers_of_a_payload_stay_exact(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/events"
    event = (await edge.get(path)).data["items"][0]
    text = '{"big":123456789012345678901234567890,"small":0.1000000000000000055}'
    await write(edge, update(events).where(events.c.id == event["id"]).values(payload=text))
    raw = await edge.parts.app.test_client().get(
        f"{path}/{event['id']}", headers={"Authorization": f"Bearer {edge.token}"}
    )
    assert text.encode() in await raw.get_data()


async def test_a_cursor_only_fits_the_list_it_came_from(api: Api) -> None:
    first, second = await start(api, ASKING), await start(api, ASKING)
    path = f"/v1/workflows/{first}/events"
    cursor = (await api.get(path, limit=1)).data["next_cursor"]
    assert len(cursor) <= 1024
    assert (await api.get(path, limit=50, cursor=cursor)).status == 200
    elsewhere = await api.with_rights(namespace="elsewhere")
    foreign = await start(elsewhere, ASKING)
    for caller, other in (
        (api, f"/v1/workflows/{second}/events"),
        (api, f"/v1/workflows/{first}/signals"),
        (api, "/v1/workflows"),
        (elsewhere, f"/v1/workflows/{foreign}/events"),
    ):
        assert (await caller.get(other, cursor=cursor)).fields == ["cursor"]


async def test_an_altered_cursor_is_refused_whatever_was_altered(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    path = f"/v1/workflows/{workflow_id}/events"
    cursor = (await edge.get(path, limit=1)).data["next_cursor"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    altered = [
        cursor[:place] + alphabet[(alphabet.index(letter) + step) % 64] + cursor[place + 1 :]
        for place, letter in enumerate(cursor)
        for step in (1, 32)
    ]
    plain = base64.urlsafe_b64encode(b'[1,"a"]').decode()
    for bad in (*altered, cursor + "=", cursor[:-1], cursor + "A", plain, "%", "é", "x" * 2000, "x" * 1024):
        assert (await edge.get(path, cursor=bad)).fields == ["cursor"], bad


async def test_filters_bind_the_cursor(edge: Api) -> None:
    for _ in range(3):
        await start(edge, WORKING)
    cursor = (await edge.get("/v1/workflows", limit=1, state="RUNNING")).data["next_cursor"]
    assert (await edge.get("/v1/workflows", limit=2, state="RUNNING", cursor=cursor)).status == 200
    assert (await edge.get("/v1/workflows", limit=1, cursor=cursor)).fields == ["cursor"]
    assert (await edge.get("/v1/workflows", limit=1, state="FAILED", cursor=cursor)).fields == ["cursor"]
