"""One decision for many, on the server: planned, looked at, applied, stopped."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from orbit_server.platform.permissions import PERMISSIONS
from tests.api.flows import ASKING, TASK, pages, publish, start, submit
from tests.api.test_reviews import LATE
from tests.api.test_tasks import put_in_review
from tests.server import EVERYTHING, Api, Reply, node, until

FAILED = {"kind": "workflow.review", "verdict": "FAILED", "code": "GONE", "basis": "ACCEPTED_RISK"}
PAUSE = {"kind": "workflow.pause"}


async def plan(api: Api, action: dict[str, Any], narrow: dict[str, Any] | None = None, **more: Any) -> str:
    """Plan and wait; answers the id."""
    made = await api.post("/v1/bulk", {"action": action, "filter": narrow or {}, "reason": "outage", **more})
    assert made.status == 200, made.body
    bulk_id: str = made.data["id"]
    await reaches(api, bulk_id, "PLANNED")
    return bulk_id


async def reaches(api: Api, bulk_id: str, state: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_there() -> bool:
        found.update((await api.get(f"/v1/bulk/{bulk_id}")).data)
        return bool(found["state"] == state)

    await until(is_there)
    return found


async def apply(api: Api, bulk_id: str, **terms: Any) -> Reply:
    return await api.post(f"/v1/bulk/{bulk_id}/apply", {"per_second": 1000, **terms})


async def done(api: Api, bulk_id: str, **terms: Any) -> dict[str, Any]:
    begun = await apply(api, bulk_id, **terms)
    assert begun.status == 200, begun.body
    return await reaches(api, bulk_id, "DONE")


async def items(api: Api, bulk_id: str, **narrow: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/v1/bulk/{bulk_id}/items", limit=100, **narrow)).data[
        "items"
    ]
    return found


async def late_ones(api: Api, count: int) -> list[str]:
    """So many workflows whose step `ask` is in review."""
    await publish(api, LATE)
    made = [
        (await api.post("/v1/workflows", {"definition_id": "test.late", "input": None})).data["id"]
        for _ in range(count)
    ]

    async def all_late() -> bool:
        return len((await api.get("/v1/reviews", limit=100)).data["items"]) == count

    await until(all_late)
    return made


async def audit_of(api: Api, subject: str) -> list[dict[str, Any]]:
    def read(conn: Any) -> list[Any]:
        return list(
            conn.exec_driver_sql(
                f"SELECT action, actor, details FROM audit WHERE subject_id = '{subject}' ORDER BY at, id"
            )
        )

    rows = await api.parts.server.database.read(read)
    return [{"action": row[0], "actor": row[1], **json.loads(row[2] or "{}")} for row in rows]


async def test_a_plan_freezes_what_it_found_and_says_what_would_follow(api: Api) -> None:
    workflows = await late_ones(api, 3)
    bulk_id = await plan(api, FAILED, {"review_class": "TIMEOUT", "step_key": "ask"})
    shown = (await api.get(f"/v1/bulk/{bulk_id}")).data
    assert (shown["items"], shown["allowed"], shown["refused"]) == ("3", "3", "0")
    found = await items(api, bulk_id)
    assert [item["workflow_id"] for item in found] == workflows, "those that wait longest come first"
    assert {(item["allowed"], item["then"], "result" in item) for item in found} == {(True, "FAILED", False)}
    assert len((await api.get("/v1/reviews")).data["items"]) == 3, "a plan does nothing"


async def test_what_was_planned_is_done_and_every_audit_row_names_the_bulk_and_who_applied_it(
    api: Api,
) -> None:
    workflows = await late_ones(api, 3)
    bulk_id = await plan(api, FAILED)
    operator = await api.with_rights()
    ended = await done(operator, bulk_id, reason="all of them are gone")
    assert (ended["applied"], ended["left"], ended["planned_by"], ended["applied_by"]) == (
        "3",
        "0",
        "tests",
        "other",
    )
    assert [item["result"] for item in await items(api, bulk_id)] == ["APPLIED"] * 3
    for workflow_id in workflows:
        assert (await api.get(f"/v1/workflows/{workflow_id}")).data["state"] == "FAILED"
        told = (await api.get(f"/v1/workflows/{workflow_id}/operations")).data["items"]
        assert [(said["action"], said["actor"], said["details"]["bulk_id"]) for said in told] == [
            ("workflow.review.failed", "other", bulk_id)
        ]
    acts = [(row["action"], row["actor"]) for row in await audit_of(api, bulk_id)]
    assert acts == [("bulk.plan", "tests"), ("bulk.apply", "other")]


async def test_two_operators_with_overlapping_bulks_decide_each_item_once(api: Api) -> None:
    await late_ones(api, 12)
    one, other = await plan(api, FAILED), await plan(api, {**FAILED, "code": "LOST"})
    await asyncio.gather(done(api, one), done(await api.with_rights(), other))
    results: dict[str, list[str]] = {}
    for bulk_id in (one, other):
        for item in await items(api, bulk_id):
            results.setdefault(item["workflow_id"], []).append(item["result"])
    assert len(results) == 12
    assert all(sorted(found) == ["APPLIED", "SKIPPED_CHANGED"] for found in results.values()), results


async def test_what_has_moved_since_the_plan_is_skipped_with_the_reason(edge: Api) -> None:
    workflows = await late_ones(edge, 2)
    bulk_id = await plan(edge, FAILED)
    await edge.post(f"/v1/workflows/{workflows[0]}/cancel", {"reason": "meanwhile"})
    ended = await done(edge, bulk_id)
    assert (ended["applied"], ended["skipped"], ended["failed"]) == ("1", "1", "0")
    skipped = (await items(edge, bulk_id, result="SKIPPED_CHANGED"))[0]
    assert skipped["workflow_id"] == workflows[0]
    assert "not in review" in skipped["why"]


async def test_what_the_engine_refuses_is_refused_in_the_plan_and_never_tried(edge: Api) -> None:
    first = await start(edge, ASKING)
    second = await start(edge, ASKING)
    await edge.post(f"/v1/workflows/{first}/pause", {"reason": "by hand"})
    bulk_id = await plan(edge, PAUSE, {"definition_id": "test.ask"})
    refused = (await items(edge, bulk_id, allowed="false"))[0]
    assert (refused["workflow_id"], refused["code"]) == (first, "FAILED_PRECONDITION")
    assert "paused already" in refused["why"]
    ended = await done(edge, bulk_id)
    assert (ended["applied"], ended["refused"], ended["failed"]) == ("1", "1", "0")
    assert (await edge.get(f"/v1/workflows/{second}")).data["paused"]


async def test_a_restart_of_many_makes_each_successor_once(api: Api) -> None:
    workflows = [await start(api, ASKING) for _ in range(3)]
    for workflow_id in workflows:
        await api.post(f"/v1/workflows/{workflow_id}/cancel", {"reason": "wrong day"})
    again = {"kind": "workflow.restart", "effects": "NEW"}
    one = await plan(api, again, {"state": "CANCELLED"})
    other = await plan(api, again, {"state": "CANCELLED"})
    await asyncio.gather(done(api, one), done(api, other))
    found = [*await items(api, one), *await items(api, other)]
    assert sorted(item["result"] for item in found) == ["APPLIED"] * 3 + ["SKIPPED_CHANGED"] * 3
    made = {item["made_id"]: item["workflow_id"] for item in found if item["result"] == "APPLIED"}
    assert set(made.values()) == set(workflows)
    for new in made:
        assert (await api.get(f"/v1/workflows/{new}")).data["state"] == "WAITING"
    third = await plan(api, again, {"state": "CANCELLED"})
    assert {item["allowed"] for item in await items(api, third)} == {False}, "their successors run"


async def test_a_restart_that_means_the_same_effects_waits_for_nobody_twice(edge: Api) -> None:
    workflow_id = await start(edge, ASKING)
    await edge.post(f"/v1/workflows/{workflow_id}/cancel", {"reason": "wrong day"})
    bulk_id = await plan(edge, {"kind": "workflow.restart", "effects": "SAME"}, {"state": "CANCELLED"})
    await done(edge, bulk_id)
    made = (await items(edge, bulk_id))[0]["made_id"]
    by_hand = {"effects": "SAME", "reason": "by hand"}
    refused = await edge.post(f"/v1/workflows/{workflow_id}/restart", by_hand)
    assert made in refused.body["error"]["message"], "the effects are those of the successor now"
    again = await plan(edge, {"kind": "workflow.restart", "effects": "SAME"}, {"state": "CANCELLED"})
    assert [item["allowed"] for item in await items(edge, again)] == [False]


async def test_tasks_are_cancelled_and_retried_by_the_same_mechanism(api: Api) -> None:
    tasks = [await submit(api, business_key=f"k-{n}") for n in range(3)]
    await submit(api, queue="elsewhere")
    cancel = await plan(api, {"kind": "task.cancel"}, {"queue": "jobs", "business_keys": ["k-0", "k-1"]})
    assert (await done(api, cancel))["applied"] == "2"
    states = [(await api.get(f"/v1/tasks/{task_id}")).data["state"] for task_id in tasks]
    assert states == ["CANCELLED", "CANCELLED", "READY"]
    rows = await audit_of(api, tasks[0])
    assert [(row["action"], row["bulk_id"]) for row in rows] == [("task.cancel", cancel)]
    retry = {"kind": "task.retry", "basis": "ACCEPTED_RISK"}
    bulk_id = await plan(api, retry, {"state": "CANCELLED", "handler": "safe@1"})
    assert (await done(api, bulk_id))["applied"] == "2"
    made = [item["made_id"] for item in await items(api, bulk_id)]
    assert [(await api.get(f"/v1/tasks/{new}")).data["retry_of"] for new in made] == tasks[:2]


async def test_a_bulk_stops_after_so_many_failures_and_says_what_was_not_reached(edge: Api) -> None:
    """A restart whose version is retired after the plan was made is refused although nothing has moved."""
    workflows = [await start(edge, ASKING) for _ in range(4)]
    for workflow_id in workflows:
        await edge.post(f"/v1/workflows/{workflow_id}/cancel", {"reason": "wrong day"})
    bulk_id = await plan(edge, {"kind": "workflow.restart", "effects": "NEW"})
    await publish(edge, {**ASKING, "version": 2})
    retire = "/v1/definitions/test.ask/versions/1/retire"
    assert (await edge.post(retire, {"reason": "old"}, key=None)).status == 200
    await apply(edge, bulk_id, max_failures=2)
    ended = await reaches(edge, bulk_id, "STOPPED")
    assert (ended["failed"], ended["left"], ended["stopped_by"]) == ("2", "2", "FAILURES")
    found = await items(edge, bulk_id)
    assert [item["result"] for item in found] == ["REFUSED", "REFUSED", "NOT_REACHED", "NOT_REACHED"]
    assert "retired" in found[0]["why"]
    assert len(await items(edge, bulk_id, result="NOT_REACHED")) == 2


async def test_a_person_stops_it_and_what_is_done_stays_done(edge: Api) -> None:
    await late_ones(edge, 5)
    bulk_id = await plan(edge, FAILED)
    await apply(edge, bulk_id, per_second=0.01)

    async def first() -> bool:
        return bool((await edge.get(f"/v1/bulk/{bulk_id}")).data["applied"] == "1")

    await until(first)
    stopped = await edge.post(f"/v1/bulk/{bulk_id}/stop", {"reason": "wrong plan"})
    assert stopped.data["state"] == "STOPPED"
    assert [item["result"] for item in await items(edge, bulk_id)] == ["APPLIED", *["NOT_REACHED"] * 4]
    assert (await apply(edge, bulk_id)).code == "FAILED_PRECONDITION"
    assert (await edge.post(f"/v1/bulk/{bulk_id}/stop", {"reason": "again"})).code == "FAILED_PRECONDITION"


async def test_a_request_that_is_repeated_is_one_bulk_and_one_apply(edge: Api) -> None:
    body = {"action": PAUSE, "reason": "r"}
    one, two = [await edge.post("/v1/bulk", body, key="same") for _ in range(2)]
    assert one.data == two.data
    await reaches(edge, one.data["id"], "PLANNED")
    path = f"/v1/bulk/{one.data['id']}/apply"
    first, second = [await edge.post(path, {}, key="once") for _ in range(2)]
    assert first.data == second.data
    assert first.data["state"] == "DONE", "there was nothing to do"
    assert (await edge.post(path, {}, key="other")).code == "FAILED_PRECONDITION"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": PAUSE, "filter": {"queue": "jobs"}}, "filter.queue"),
        (
            {"action": {"kind": "task.cancel"}, "filter": {"definition_id": "test.ask"}},
            "filter.definition_id",
        ),
        ({"action": {**FAILED, "basis": "PROVEN"}}, "action.evidence"),
        ({"action": {**FAILED, "code": None}}, "action.code"),
        ({"action": {"kind": "task.cancel"}, "filter": {"handler": "no handler"}}, "filter.handler"),
        ({"action": PAUSE, "most": 10_001}, "most"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_would_be_refused_for_every_item_is_refused_at_once(
    edge: Api, body: dict[str, Any], field: str
) -> None:
    reply = await edge.post("/v1/bulk", {"reason": "r", **body})
    assert (reply.status, reply.fields) == (400, [field])


async def test_a_bulk_takes_the_right_to_read_and_the_right_to_act_and_is_absent_to_others(
    edge: Api,
) -> None:
    bulk_id = await plan(edge, {"kind": "task.cancel"})
    without = tuple(sorted(PERMISSIONS - {"tasks:cancel"}))
    reader = await edge.with_rights(replace(EVERYTHING, permissions=without))
    assert (await apply(reader, bulk_id)).code == "PERMISSION_DENIED"
    body = {"action": {"kind": "task.cancel"}, "reason": "r"}
    assert (await reader.post("/v1/bulk", body)).code == "PERMISSION_DENIED"
    assert (await reader.get(f"/v1/bulk/{bulk_id}")).status == 200
    other = await edge.with_rights(replace(EVERYTHING, permissions=("workflows:read",)))
    assert (await other.get("/v1/bulk")).data["items"] == []
    assert (await other.get(f"/v1/bulk/{bulk_id}")).status == 404
    tasks = await edge.with_rights(replace(EVERYTHING, permissions=("tasks:read",)))
    assert [item["id"] for item in (await tasks.get("/v1/bulk")).data["items"]] == [bulk_id]
    elsewhere = await edge.with_rights(namespace="elsewhere")
    assert (await elsewhere.get(f"/v1/bulk/{bulk_id}")).status == 404


async def test_the_result_that_a_bulk_concludes_with_is_hidden_from_those_who_read_no_payloads(
    edge: Api,
) -> None:
    action = {"kind": "workflow.review", "verdict": "SUCCEEDED", "basis": "ACCEPTED_RISK", "result": "R-1"}
    bulk_id = await plan(edge, action)
    kept = tuple(sorted(PERMISSIONS - {"payloads:read"}))
    other = await edge.with_rights(replace(EVERYTHING, permissions=kept))
    assert (await edge.get(f"/v1/bulk/{bulk_id}")).data["orders"]["result"] == "R-1"
    assert (await other.get(f"/v1/bulk/{bulk_id}")).data["orders"]["result"] != "R-1"


async def test_a_plan_is_no_longer_than_was_said_and_tells_that_there_is_more(edge: Api) -> None:
    for _ in range(3):
        await edge.post("/v1/tasks", TASK)
    bulk_id = await plan(edge, {"kind": "task.cancel"}, most=2)
    shown = (await edge.get(f"/v1/bulk/{bulk_id}")).data
    assert (shown["items"], shown["truncated"]) == ("2", True)


async def change(api: Api, statement: str) -> None:
    """As if time had passed."""
    await api.parts.server.database.write(lambda conn: conn.exec_driver_sql(statement))


async def test_a_server_goes_on_with_the_plan_that_another_began(migrated_url: str) -> None:
    async with node(migrated_url) as first:
        batch = [{**TASK, "idempotency_key": f"k{n}"} for n in range(230)]
        assert (await first.post("/v1/tasks/batch", {"items": batch}, key=None)).status == 200
        made = await first.post("/v1/bulk", {"action": {"kind": "task.cancel"}, "reason": "r"})
    async with node(migrated_url) as second:
        bulk_id = made.data["id"]
        shown = await reaches(second, bulk_id, "PLANNED")
        assert (shown["items"], shown["allowed"], shown["truncated"]) == ("230", "230", False)
        found = await pages(second, f"/v1/bulk/{bulk_id}/items", 100)
        assert [item["number"] for page in found for item in page] == list(range(1, 231))
        assert (await done(second, bulk_id))["applied"] == "230"


async def test_a_plan_that_nobody_applies_expires_and_what_was_kept_long_enough_goes(edge: Api) -> None:
    await submit(edge)
    bulk_id = await plan(edge, {"kind": "task.cancel"})
    await change(edge, "UPDATE bulks SET expires_at = 1, due_at = 1")
    await reaches(edge, bulk_id, "EXPIRED")
    assert (await apply(edge, bulk_id)).code == "FAILED_PRECONDITION"
    assert [item["result"] for item in await items(edge, bulk_id)] == ["NOT_REACHED"]
    await change(edge, "UPDATE bulks SET due_at = 1")

    async def gone() -> bool:
        left = await edge.parts.server.database.read(
            lambda conn: [
                conn.exec_driver_sql(f"SELECT COUNT(*) FROM {table}").scalar()
                for table in ("bulks", "bulk_specs", "bulk_items")
            ]
        )
        return left == [0, 0, 0]

    await until(gone)
    assert (await edge.get(f"/v1/bulk/{bulk_id}")).status == 404


async def test_each_decision_adopts_its_own_stored_evidence(api: Api) -> None:
    tasks = [await submit(api) for _ in range(3)]
    for task_id in tasks:
        await put_in_review(api, task_id)
    for number, task_id in enumerate(tasks[:2]):
        await change(
            api,
            "INSERT INTO evidence (id, task_id, namespace_id, kind, body, digest, contradiction, at) SELECT "
            f"'{number:032x}', id, namespace_id, 'LATE_SUCCEEDED', '\"R-{number}\"', 'd', 0, 1 FROM tasks "
            f"WHERE id = '{task_id}'",
        )
    adopt = {"kind": "task.review", "verdict": "SUCCEEDED", "basis": "PROVEN", "adopt": True}
    bulk_id = await plan(api, adopt)
    found = await items(api, bulk_id)
    assert [item["allowed"] for item in found] == [True, True, False]
    assert "nothing to adopt" in found[2]["why"]
    await done(api, bulk_id)
    results = [(await api.get(f"/v1/tasks/{task_id}")).data.get("result") for task_id in tasks]
    assert results == ["R-0", "R-1", None]


async def test_a_bulk_grants_time_to_steps_in_review_in_the_name_of_another(edge: Api) -> None:
    (workflow_id,) = await late_ones(edge, 1)
    bulk_id = await plan(edge, {"kind": "workflow.grant", "time_ms": 3_600_000})
    assert [item["allowed"] for item in await items(edge, bulk_id)] == [True]
    ended = await done(edge, bulk_id, on_behalf_of="the desk")
    assert (ended["applied"], ended["applied_for"]) == ("1", "the desk")
    (told,) = (await edge.get(f"/v1/workflows/{workflow_id}/operations")).data["items"]
    assert (told["on_behalf_of"], told["details"]["bulk_id"]) == ("the desk", bulk_id)
    assert len(told["details"]) > 2, "the grant's own account is kept"
    right = tuple(sorted(PERMISSIONS - {"act:on-behalf"}))
    other = await edge.with_rights(replace(EVERYTHING, permissions=right))
    body = {"action": PAUSE, "reason": "r", "on_behalf_of": "the desk"}
    assert (await other.post("/v1/bulk", body)).code == "PERMISSION_DENIED"


async def test_a_bulk_probes_tasks_in_review_in_the_queue_of_each(api: Api) -> None:
    tasks = [await submit(api) for _ in range(2)]
    for task_id in tasks:
        await put_in_review(api, task_id)
    bulk_id = await plan(api, {"kind": "task.probe", "handler": "read@1"})
    assert (await done(api, bulk_id))["applied"] == "2"
    made = [(await api.get(f"/v1/tasks/{item['made_id']}")).data for item in await items(api, bulk_id)]
    assert [(probe["probe_of"], probe["handler"]) for probe in made] == [(each, "read") for each in tasks]
    assert (await api.get(f"/v1/tasks/{tasks[0]}")).data["state"] == "NEEDS_REVIEW", "a probe decides nothing"
