"""Steps in review, from being listed to being decided."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.protocol.workflows import ReviewItem
from orbit_server.storage.tables import audit
from tests.api.flows import start, submit
from tests.api.test_tasks import put_in_review
from tests.documents import document, end, ref, wait
from tests.server import Api, until

LATE = document({"ask": wait("done", seconds=1), "done": end(ref("ask"))}, id="test.late")


async def in_review(api: Api) -> tuple[str, dict[str, Any]]:
    """A workflow whose wait timed out, and its review."""
    workflow_id = await start(api, LATE, business_key="order 9")

    async def listed() -> list[dict[str, Any]]:
        items = (await api.get("/v1/reviews", kind="STEP", definition_id="test.late")).data["items"]
        return [item for item in items if item["workflow_id"] == workflow_id]

    (item,) = await until(listed)
    return workflow_id, item


async def test_a_wait_that_timed_out_is_listed_and_concluded_once(api: Api) -> None:
    workflow_id, item = await in_review(api)
    ReviewItem.model_validate(item)
    assert (item["kind"], item["step_key"], item["review_class"]) == ("STEP", "ask", "TIMEOUT")
    assert (item["definition_id"], item["business_key"]) == ("test.late", "order 9")
    assert set(item["allowed"]) <= {"SUCCEEDED", "FAILED", "RERUN"}
    path = f"/v1/workflows/{workflow_id}/reviews/ask"
    body = {
        "verdict": "SUCCEEDED",
        "expected_revision": item["revision"],
        "reason": "seen on paper",
        "basis": "PROVEN",
        "evidence": "letter 12",
        "result": {"yes": True},
    }
    stale = await api.post(path, {**body, "expected_revision": str(int(item["revision"]) + 1)})
    assert (stale.code, stale.fields) == ("FAILED_PRECONDITION", ["expected_revision"])
    bare = await api.post(path, {name: value for name, value in body.items() if name != "evidence"})
    assert (bare.code, bare.fields) == ("INVALID_ARGUMENT", ["evidence"])
    done = await api.post(path, body, key="op")
    assert done.data["state"] == "SUCCEEDED"
    assert (await api.post(path, body, key="op")).data == done.data
    assert (await api.post(path, {**body, "reason": "x"}, key="op")).code == "CONFLICT"
    assert (await api.get(f"/v1/workflows/{workflow_id}")).data["output"] == {"yes": True}

    def rows(conn: Connection) -> list[Any]:
        return list(conn.execute(select(audit).where(audit.c.action.like("workflow.review%"))))

    (row,) = await api.parts.server.database.read(rows)
    assert (row.actor, row.reason, row.basis, row.evidence) == (
        "tests",
        "seen on paper",
        "PROVEN",
        "letter 12",
    )


async def test_steps_and_tasks_in_review_are_paged_as_one_list(edge: Api) -> None:
    workflows = {(await in_review(edge))[0] for _ in range(3)}
    tasks = set()
    for _ in range(3):
        task_id = await submit(edge)
        await put_in_review(edge, task_id)
        tasks.add(task_id)
    found: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await edge.get("/v1/reviews", limit=2, **cursor)).data
        assert 1 <= len(page["items"]) <= 2
        found += page["items"]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert [item["kind"] for item in found] == ["STEP"] * 3 + ["TASK"] * 3
    assert {item["workflow_id"] for item in found[:3]} == workflows
    assert {item["task_id"] for item in found[3:]} == tasks
    only = (await edge.get("/v1/reviews", review_class="UNKNOWN")).data["items"]
    assert {item["kind"] for item in only} == {"TASK"}


async def test_a_step_that_waits_for_nobody_has_nothing_to_decide(edge: Api) -> None:
    workflow_id, _ = await in_review(edge)
    body = {"verdict": "RERUN", "expected_revision": "1", "reason": "r", "basis": "ACCEPTED_RISK"}
    assert (await edge.post(f"/v1/workflows/{workflow_id}/reviews/nope", body)).code == "NOT_FOUND"
    refused = await edge.post(f"/v1/workflows/{workflow_id}/reviews/done", body)
    assert refused.code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
    assert (await edge.post(f"/v1/workflows/{'0' * 32}/reviews/ask", body)).code == "NOT_FOUND"
