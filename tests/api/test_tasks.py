"""Tasks and credentials through the HTTP interface."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from orbit_sdk.protocol.tasks import Attempt, Task, TaskDetail
from orbit_sdk.values.instants import from_rfc3339
from orbit_server.storage.tables import audit, credentials, idempotency, tasks
from tests.api.flows import TASK, WORKING, pages, start, submit
from tests.server import EVERYTHING, Api


async def rows(api: Api, table: Any, *where: Any) -> list[Any]:
    def read(conn: Connection) -> list[Any]:
        return list(conn.execute(select(table).where(*where)))

    return await api.parts.server.database.read(read)


async def put_in_review(api: Api, task_id: str, **more: Any) -> str:
    """As if a worker had been lost; answers the task's revision."""
    values = {
        "state": "NEEDS_REVIEW",
        "review_class": "UNKNOWN",
        "effect_possible": 1,
        "due_at": None,
        **more,
    }

    def run(conn: Connection) -> None:
        conn.execute(update(tasks).where(tasks.c.id == task_id).values(deadline_at=None, **values))

    await api.parts.server.database.write(run)
    revision: str = (await api.get(f"/v1/tasks/{task_id}")).data["revision"]
    return revision


async def test_a_submitted_task_is_shown_with_everything_that_was_said(api: Api) -> None:
    body = {
        **TASK,
        "parameters": {"amount": 12.5, "note": "é"},
        "business_key": "order 7",
        "labels": {"team": "x"},
        "priority": 9,
        "delay_ms": 3_600_000,
        "retry": {"max_attempts": 3, "backoff_ms": 10},
    }
    made = (await api.post("/v1/tasks", body)).data
    Task.model_validate(made)
    assert made["state"] == "SCHEDULED"
    assert from_rfc3339(made["due_at"]) - from_rfc3339(made["created_at"]) == 3_600_000_000
    found = (await api.get(f"/v1/tasks/{made['id']}")).data
    TaskDetail.model_validate(found)
    assert {name: found[name] for name in made} == made
    assert found["parameters"] == {"amount": 12.5, "note": "é"}
    assert found["labels"] == {"team": "x"}
    assert (found["recovery"], found["attempts_max"], found["evidence"]) == ("IDEMPOTENT", 3, [])


async def test_the_same_submission_is_answered_as_before(api: Api) -> None:
    body = {**TASK, "parameters": {"a": 1, "b": [1.5]}}
    first = await api.post("/v1/tasks", body, key="k")
    reordered = {**TASK, "parameters": {"b": [1.5], "a": 1.0}, "priority": 5}
    assert (await api.post("/v1/tasks", reordered, key="k")).data == first.data
    for other in ({"parameters": {"a": "1", "b": [1.5]}}, {"priority": 6}, {"queue": "other"}):
        assert (await api.post("/v1/tasks", {**body, **other}, key="k")).code == "CONFLICT"


async def test_fifty_equal_submissions_at_once_make_one_task(api: Api) -> None:
    replies = await asyncio.gather(*[api.post("/v1/tasks", TASK, key="same") for _ in range(50)])
    assert {reply.status for reply in replies} == {200}
    assert len({reply.data["id"] for reply in replies}) == 1
    assert len((await api.get("/v1/tasks", limit=100)).data["items"]) == 1


async def test_a_batch_of_a_thousand_items_has_a_thousand_results(api: Api) -> None:
    items = [{**TASK, "idempotency_key": f"k{number % 900}"} for number in range(1000)]
    found = (await api.post("/v1/tasks/batch", {"items": items}, key=None)).data["items"]
    assert len({item["id"] for item in found}) == 900
    assert found[:100] == found[900:]


async def test_tasks_are_filtered_by_what_they_are(api: Api) -> None:
    first = await submit(api, queue="a", handler="x.one", business_key="b1")
    second = await submit(api, queue="b", handler="x.one", handler_version=2)
    await submit(api, queue="b", handler="x.two")
    for filters, expected in (
        ({"queue": "a"}, {first}),
        ({"handler": "x.one"}, {first, second}),
        ({"handler": "x.one@2"}, {second}),
        ({"business_key": "b1"}, {first}),
        ({"state": "RUNNING"}, set()),
    ):
        found = [item["id"] for page in await pages(api, "/v1/tasks", 1, **filters) for item in page]
        assert set(found) == expected
        assert found == sorted(found, reverse=True)
    for bad in ({"state": "DONE"}, {"queue": "A"}, {"handler": "x.one@0"}, {"workflow_id": "x"}):
        assert (await api.get("/v1/tasks", **bad)).code == "INVALID_ARGUMENT"


async def test_a_task_of_a_workflow_names_it_and_refuses_to_be_managed_alone(api: Api) -> None:
    workflow_id = await start(api, WORKING)
    (task,) = (await api.get("/v1/tasks", workflow_id=workflow_id)).data["items"]
    assert (task["workflow_id"], task["step_key"]) == (workflow_id, "work")
    refused = await api.post(f"/v1/tasks/{task['id']}/cancel", {"reason": "r"})
    assert (refused.status, refused.code) == (409, "FAILED_PRECONDITION")


async def test_cancelling_is_idempotent_and_leaves_its_trace(api: Api) -> None:
    task_id = await submit(api)
    first = await api.post(f"/v1/tasks/{task_id}/cancel", {"reason": "not needed"}, key="op")
    assert first.data["state"] == "CANCELLED"
    assert (
        await api.post(f"/v1/tasks/{task_id}/cancel", {"reason": "not needed"}, key="op")
    ).data == first.data
    assert (await api.post(f"/v1/tasks/{task_id}/cancel", {"reason": "other"}, key="op")).code == "CONFLICT"
    (row,) = await rows(api, audit, audit.c.subject_id == task_id)
    assert (row.action, row.actor, row.reason) == ("task.cancel", "tests", "not needed")


async def test_a_review_is_listed_and_decided_with_evidence(api: Api) -> None:
    task_id = await submit(api)
    revision = await put_in_review(api, task_id)
    (item,) = (await api.get("/v1/reviews")).data["items"]
    assert (item["kind"], item["task_id"], item["review_class"]) == ("TASK", task_id, "UNKNOWN")
    assert (await api.get("/v1/reviews", kind="STEP")).data["items"] == []
    path = f"/v1/tasks/{task_id}/review"
    body = {"verdict": "SUCCEEDED", "reason": "seen", "basis": "PROVEN", "result": {"n": 1}}
    stale = await api.post(path, {**body, "expected_revision": str(int(revision) + 1), "evidence": "log 7"})
    assert (stale.code, stale.fields) == ("FAILED_PRECONDITION", ["expected_revision"])
    bare = await api.post(path, {**body, "expected_revision": revision})
    assert (bare.code, bare.fields) == ("INVALID_ARGUMENT", ["evidence"])
    done = await api.post(path, {**body, "expected_revision": revision, "evidence": "log 7"})
    assert done.data["state"] == "SUCCEEDED"
    assert (await api.get(f"/v1/tasks/{task_id}")).data["result"] == {"n": 1}
    assert (await api.get("/v1/reviews")).data["items"] == []


async def test_a_retry_makes_a_new_task_and_has_a_right_of_its_own(api: Api) -> None:
    task_id = await submit(api)
    revision = await put_in_review(api, task_id)
    body = {
        "verdict": "RETRY",
        "expected_revision": revision,
        "reason": "again",
        "basis": "ACCEPTED_RISK",
        "evidence": "asked",
    }
    kept = tuple(name for name in EVERYTHING.permissions if name != "tasks:retry")
    other = await api.with_rights(replace(EVERYTHING, permissions=kept))
    assert (await other.post(f"/v1/tasks/{task_id}/review", body)).code == "PERMISSION_DENIED"
    made = (await api.post(f"/v1/tasks/{task_id}/review", body, key="op")).data
    assert made["id"] != task_id
    assert (await api.post(f"/v1/tasks/{task_id}/review", body, key="op")).data == made
    assert (await api.get(f"/v1/tasks/{made['id']}")).data["retry_of"] == task_id
    assert (await api.get(f"/v1/tasks/{task_id}")).data["error_code"] == "RESOLVED_BY_RETRY"


async def test_attempts_of_a_task_that_never_ran_are_an_empty_page(api: Api) -> None:
    task_id = await submit(api)
    assert (await api.get(f"/v1/tasks/{task_id}/attempts")).data == {"items": []}
    assert Attempt.model_fields


# --- credentials -------------------------------------------------------------------------------------------


async def test_a_token_is_shown_once_and_stored_only_as_a_hash(api: Api) -> None:
    body = {"name": "ci", "permissions": ["tasks:read"], "submit_queues": ["a", "b"]}
    made = await api.post("/v1/credentials", body, key="k")
    token = made.data["token"]
    assert (await Api(api.parts, token).get("/v1/tasks")).status == 200
    listed = (await api.get("/v1/credentials")).data["items"]
    assert token not in str(listed)
    assert listed[0] == {name: value for name, value in made.data.items() if name != "token"}
    again = await api.post("/v1/credentials", body, key="k")
    assert (again.code, made.data["id"] in str(again.body)) == ("FAILED_PRECONDITION", True)
    for table in (credentials, idempotency, audit):
        assert token.removeprefix("orbit_") not in str(await rows(api, table))


async def test_nobody_gives_rights_they_do_not_have(edge: Api) -> None:
    rights = replace(
        EVERYTHING,
        permissions=("credentials:manage", "tasks:submit"),
        submit_queues=("a",),
        consume_queues=(),
    )
    other = await edge.with_rights(rights)
    good = {"name": "n", "permissions": ["tasks:submit"], "submit_queues": ["a"]}
    assert (await other.post("/v1/credentials", good)).status == 200
    for more in (
        {"permissions": ["tasks:read"]},
        {"submit_queues": ["b"]},
        {"submit_queues": ["*"]},
        {"consume_queues": ["a"]},
    ):
        assert (await other.post("/v1/credentials", {**good, **more})).code == "PERMISSION_DENIED"


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"permissions": ["tasks:fly"]}, "permissions[0]"),
        ({"submit_queues": ["NO"]}, "submit_queues[0]"),
        ({"signal_definitions": ["a b"]}, "signal_definitions[0]"),
        ({"expires_at": "2000-01-01T00:00:00Z"}, "expires_at"),
        ({"name": "-"}, "name"),
    ],
)
async def test_wrong_rights_are_refused_by_name(edge: Api, more: dict[str, Any], field: str) -> None:
    reply = await edge.post("/v1/credentials", {"name": "n", "permissions": [], **more})
    assert (reply.code, reply.fields) == ("INVALID_ARGUMENT", [field])


async def test_a_revoked_credential_is_refused_at_once_and_for_good(api: Api) -> None:
    made = (await api.post("/v1/credentials", {"name": "n", "permissions": ["tasks:read"]})).data
    other = Api(api.parts, made["token"])
    assert (await other.get("/v1/tasks")).status == 200
    revoked = (await api.post(f"/v1/credentials/{made['id']}/revoke", {"reason": "lost"}, key=None)).data
    assert (await other.get("/v1/tasks")).status == 401
    again = (await api.post(f"/v1/credentials/{made['id']}/revoke", {"reason": "lost"}, key=None)).data
    assert again == revoked
    assert len(await rows(api, audit, audit.c.action == "credential.revoked")) == 1
    elsewhere = await api.with_rights(namespace="elsewhere")
    assert (await elsewhere.post(f"/v1/credentials/{made['id']}/revoke", {"reason": "x"})).code == "NOT_FOUND"


async def test_tasks_are_filtered_and_counted_by_what_is_stored_of_them(api: Api) -> None:
    for number in range(5):
        labels = {"region": "eu" if number % 2 else "us", "note": "a,b"}
        await submit(api, labels=labels, business_key=f"order-{number}")
    page = (await api.get("/v1/tasks", labels=r"region=eu,note=a\,b", limit=1)).data
    assert [item["business_key"] for item in page["items"]] == ["order-3"]
    cursor = page["next_cursor"]
    page = (await api.get("/v1/tasks", labels=r"region=eu,note=a\,b", limit=1, cursor=cursor)).data
    assert [item["business_key"] for item in page["items"]] == ["order-1"]
    assert (await api.get("/v1/tasks/count?group_by=label:region")).data == {
        "total": 5,
        "complete": True,
        "groups": [{"key": "us", "count": 3}, {"key": "eu", "count": 2}],
        "more_groups": False,
    }
    later = "2999-01-01T00:00:00Z"
    assert (await api.get(f"/v1/tasks/count?created_from={later}")).data["total"] == 0
    for query in ("group_by=colour", "group_by=label:", "labels=region", "labels=a=1,a=2", "created_to=now"):
        refused = await api.get(f"/v1/tasks/count?{query}")
        assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT"), query


async def test_a_task_in_review_says_what_may_be_decided(api: Api) -> None:
    task_id = await submit(api)
    assert "decisions" not in (await api.get(f"/v1/tasks/{task_id}")).data
    await put_in_review(api, task_id)
    detail = TaskDetail.model_validate((await api.get(f"/v1/tasks/{task_id}")).data)
    assert {each.verdict: each.allowed for each in detail.decisions} == dict.fromkeys(
        ("SUCCEEDED", "FAILED", "CANCELLED", "RETRY"), True
    )
    assert all(each.needs_evidence for each in detail.decisions)


async def test_other_parameters_are_another_task_that_names_the_first(api: Api) -> None:
    first = await submit(api)
    second = await submit(api, parameters={"amount": 8}, linked_to=first)
    assert (await api.get(f"/v1/tasks/{second}")).data["linked_to"] == first
    refused = await api.post("/v1/tasks", {**TASK, "linked_to": "0" * 32})
    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert refused.body["error"]["details"][0]["field"] == "linked_to"
