"""Workflows through the HTTP interface."""

from __future__ import annotations

import asyncio

from orbit_sdk.values.instants import from_rfc3339
from tests.api.flows import ASKING, WORKING, approve, pages, publish, start
from tests.documents import document, end
from tests.server import Api, until


async def test_a_workflow_runs_from_start_over_its_signal_to_its_output(api: Api) -> None:
    workflow_id = await start(api, ASKING, {"a": 1.5}, business_key="order 7", labels={"team": "x"})
    found = (await api.get(f"/v1/workflows/{workflow_id}")).data
    assert found["state"] == "WAITING"
    assert found["input"] == {"a": 1.5}
    assert found["business_key"] == "order 7"
    assert found["labels"] == {"team": "x"}
    receipt = (await approve(api, workflow_id, {"ok": True})).data
    assert receipt["state"] == "CONSUMED"
    found = (await api.get(f"/v1/workflows/{workflow_id}")).data
    assert (found["state"], found["output"]) == ("SUCCEEDED", {"ok": True})
    assert from_rfc3339(found["ended_at"]) >= from_rfc3339(found["started_at"])


async def test_steps_that_never_ran_are_shown_as_pending_and_then_as_skipped(api: Api) -> None:
    doc = document(
        {"ask": ASKING["nodes"]["ask"] | {"on_timeout": {"next": "late"}}, "done": end(), "late": end()}
    )
    workflow_id = await start(api, doc)
    steps = (await api.get(f"/v1/workflows/{workflow_id}/steps")).data
    assert {item["key"]: item["state"] for item in steps["items"]} == {
        "ask": "WAITING_SIGNAL",
        "done": "PENDING",
        "late": "PENDING",
    }
    await approve(api, workflow_id)
    steps = (await api.get(f"/v1/workflows/{workflow_id}/steps")).data
    assert {item["key"]: item["state"] for item in steps["items"]} == {
        "ask": "COMPLETED",
        "done": "COMPLETED",
        "late": "SKIPPED",
    }


async def test_a_step_is_read_with_its_match_and_its_result(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    step = (await api.get(f"/v1/workflows/{workflow_id}/steps/ask")).data
    assert (step["signal"], step["match"]) == ("approval", "m")
    await approve(api, workflow_id, [1, 2])
    step = (await api.get(f"/v1/workflows/{workflow_id}/steps/ask")).data
    assert (step["state"], step["result"]) == ("COMPLETED", [1, 2])
    assert (await api.get(f"/v1/workflows/{workflow_id}/steps/nope")).code == "NOT_FOUND"


async def test_the_same_start_is_answered_as_before_and_another_meaning_is_a_conflict(api: Api) -> None:
    await publish(api, ASKING)
    body = {"definition_id": "test.ask", "input": {"n": 1}}
    first = await api.post("/v1/workflows", body, key="order-1")
    await approve(api, first.data["id"])
    again = await api.post("/v1/workflows", {"input": {"n": 1.0}, "definition_id": "test.ask"}, key="order-1")
    assert again.data == first.data
    other = await api.post("/v1/workflows", {**body, "input": {"n": "1"}}, key="order-1")
    assert (other.status, other.code) == (409, "CONFLICT")


async def test_fifty_equal_starts_at_once_make_one_workflow(api: Api) -> None:
    await publish(api, ASKING)
    body = {"definition_id": "test.ask", "input": None}
    replies = await asyncio.gather(*[api.post("/v1/workflows", body, key="same") for _ in range(50)])
    assert {reply.status for reply in replies} == {200}
    assert len({reply.data["id"] for reply in replies}) == 1
    assert len((await api.get("/v1/workflows")).data["items"]) == 1


async def test_a_refused_start_binds_no_key(api: Api) -> None:
    body = {"definition_id": "test.ask", "input": None}
    assert (await api.post("/v1/workflows", body, key="k")).code == "NOT_FOUND"
    await publish(api, ASKING)
    assert (await api.post("/v1/workflows", body, key="k")).status == 200


async def test_a_batch_has_a_result_per_item_in_order(api: Api) -> None:
    await publish(api, ASKING)
    good = {"definition_id": "test.ask", "input": 1}
    items = [
        {**good, "idempotency_key": "a"},
        {**good, "idempotency_key": "b", "definition_id": "test.none"},
        {**good, "idempotency_key": "a"},
        {**good, "idempotency_key": "a", "input": 2},
        {**good},
        {**good, "idempotency_key": "c"},
    ]
    found = (await api.post("/v1/workflows/batch", {"items": items}, key=None)).data["items"]
    assert [item.get("error", {}).get("code") for item in found] == [
        None,
        "NOT_FOUND",
        None,
        "CONFLICT",
        "INVALID_ARGUMENT",
        None,
    ]
    assert found[0]["id"] == found[2]["id"] != found[5]["id"]
    assert found[4]["error"]["details"] == [{"field": "items[4].idempotency_key", "reason": "is missing"}]
    again = (await api.post("/v1/workflows/batch", {"items": items}, key=None)).data["items"]
    assert again == found


async def test_workflows_are_listed_newest_first_and_filtered(api: Api) -> None:
    await publish(api, ASKING)
    ids = []
    for number in range(5):
        body = {"definition_id": "test.ask", "input": None, "business_key": f"b{number % 2}"}
        ids.append((await api.post("/v1/workflows", body)).data["id"])
    await approve(api, ids[0])
    listed = await pages(api, "/v1/workflows", 2)
    assert [len(page) for page in listed] == [2, 2, 1]
    assert sorted(item["id"] for page in listed for item in page) == sorted(ids)
    assert [item["id"] for page in listed for item in page] == sorted(ids, reverse=True)
    found = (await api.get("/v1/workflows", business_key="b1")).data["items"]
    assert {item["id"] for item in found} == {ids[1], ids[3]}
    found = (await api.get("/v1/workflows", state="SUCCEEDED")).data["items"]
    assert [item["id"] for item in found] == [ids[0]]
    assert (await api.get("/v1/workflows", definition_id="test.none")).data["items"] == []


async def test_pause_resume_and_cancel_check_the_control_version_and_are_idempotent(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    path = f"/v1/workflows/{workflow_id}"
    body = {"expected_control_version": "1", "reason": "lunch"}
    version = (await api.get(path)).data["control_version"]
    body["expected_control_version"] = version
    paused = await api.post(f"{path}/pause", body, key="op-1")
    assert paused.data["workflow"]["paused"] is True
    assert (await api.post(f"{path}/pause", body, key="op-1")).data == paused.data
    stale = await api.post(f"{path}/resume", body)
    assert (stale.status, stale.code) == (409, "FAILED_PRECONDITION")
    assert paused.data["workflow"]["control_version"] in stale.body["error"]["message"]
    now = {"expected_control_version": paused.data["workflow"]["control_version"], "reason": "back"}
    assert (await api.post(f"{path}/resume", now)).data["workflow"]["paused"] is False
    assert (await api.post(f"{path}/cancel", {"reason": "enough"})).data["workflow"]["state"] == "CANCELLED"


async def test_a_long_poll_is_answered_by_the_commit_it_waits_for(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    path = f"/v1/workflows/{workflow_id}"
    waiting = asyncio.create_task(api.get(path, wait_ms=20_000))
    await until(lambda: api.parts.server.movements.waited_for(workflow_id))
    await approve(api, workflow_id)
    assert (await waiting).data["state"] == "SUCCEEDED"


async def test_a_long_poll_with_a_revision_waits_for_a_later_one(api: Api) -> None:
    workflow_id = await start(api, WORKING)
    path = f"/v1/workflows/{workflow_id}"
    revision = (await api.get(path)).data["revision"]
    waiting = asyncio.create_task(api.get(path, wait_ms=20_000, after_revision=revision))
    await until(lambda: api.parts.server.movements.waited_for(workflow_id))
    await api.post(f"{path}/pause", {"reason": "x"})
    found = (await waiting).data
    assert found["paused"] is True
    assert int(found["revision"]) > int(revision)


async def test_a_long_poll_that_sees_nothing_answers_what_there_is(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    assert (await api.get(f"/v1/workflows/{workflow_id}", wait_ms=1)).data["state"] == "WAITING"
    assert (await api.get(f"/v1/workflows/{'0' * 32}", wait_ms=1)).code == "NOT_FOUND"


async def test_a_signal_is_idempotent_by_its_key(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    first = await approve(api, workflow_id, {"a": 1}, key="sig-1")
    again = await approve(api, workflow_id, {"a": 1.0}, key="sig-1")
    assert again.data == first.data
    assert (await approve(api, workflow_id, {"a": 2}, key="sig-1")).code == "CONFLICT"
    path = f"/v1/workflows/{workflow_id}/signals"
    assert [item["id"] for item in (await api.get(path)).data["items"]] == [first.data["id"]]
    shown = (await api.get(f"{path}/{first.data['id']}")).data
    assert {name: shown[name] for name in first.data} == first.data
    other = await start(api, ASKING)
    assert (await api.get(f"/v1/workflows/{other}/signals/{first.data['id']}")).code == "NOT_FOUND"


async def test_a_wrong_signal_stores_nothing(api: Api) -> None:
    workflow_id = await start(api, ASKING)
    path = f"/v1/workflows/{workflow_id}/signals"
    wrong = await api.post(path, {"signal": "nope", "match": "m", "body": 1})
    assert (wrong.code, wrong.fields) == ("INVALID_ARGUMENT", ["signal"])
    long = await api.post(path, {"signal": "approval", "match": "é\x01" * 100, "body": 1})
    assert (long.code, long.fields) == ("INVALID_ARGUMENT", ["match"])
    gone = await api.post(
        f"/v1/workflows/{'0' * 32}/signals", {"signal": "approval", "match": "m", "body": 1}
    )
    assert gone.code == "NOT_FOUND"
    assert (await api.get(path)).data["items"] == []
