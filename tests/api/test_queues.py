"""Queues, limits and blocked builds through the HTTP interface."""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import Any

from orbit_server.gateway.rows import SessionRow, write_session
from tests.api.flows import TASK, start, submit
from tests.documents import document, end, task
from tests.server import EVERYTHING, Api, node, until

PLACED = document({"work": task("done", "risky"), "done": end()}, id="test.placed")


async def connect(api: Api, build: str = "b1", *, handlers: str = "{}", queues: str = '["jobs"]') -> str:
    """A worker's session, without a worker."""
    found = await api.get("/v1/credentials")
    row = SessionRow(
        id=secrets.token_hex(16),
        namespace_id=await namespace_of(api),
        credential_id=found.data["items"][-1]["id"],
        node_id=api.parts.server.node_id,
        nonce="n",
        worker="w1",
        build=build,
        handlers=handlers,
        queues=queues,
    )
    database = api.parts.server.database
    now = await database.now()
    await database.write(lambda conn: write_session(conn, row, now))
    return row.id


async def namespace_of(api: Api) -> str:
    database = api.parts.server.database

    def read(conn: Any) -> str:
        return str(conn.exec_driver_sql("SELECT id FROM namespaces").scalar())

    return await database.read(read)


async def test_a_queue_is_paused_and_resumed_with_its_trace(api: Api) -> None:
    await submit(api)
    reply = await api.post("/v1/queues/jobs/pause", {"reason": "the bank is down"})
    assert reply.data == {"name": "jobs", "paused": True, "revision": "1"}
    found = (await api.get("/v1/queues/jobs")).data
    assert found["states"] == {"READY": 1}
    assert found["pause"]["reason"] == "the bank is down"
    assert found["workers"] == 0
    stale = await api.post("/v1/queues/jobs/resume", {"reason": "r", "expected_revision": "0"})
    assert stale.code == "FAILED_PRECONDITION"
    assert (await api.post("/v1/queues/jobs/resume", {"reason": "r"})).data["paused"] is False
    assert "pause" not in (await api.get("/v1/queues/jobs")).data


async def test_queues_are_listed_by_name_page_by_page(api: Api) -> None:
    for name in ("beta", "alpha", "gamma"):
        await submit(api, queue=name)
    first = (await api.get("/v1/queues", limit=2)).data
    assert [one["name"] for one in first["items"]] == ["alpha", "beta"]
    second = (await api.get("/v1/queues", limit=2, cursor=first["next_cursor"])).data
    assert [one["name"] for one in second["items"]] == ["gamma"]


async def test_limits_are_set_shown_and_lifted(api: Api) -> None:
    body = {"running_max": 2, "rate": {"count": 5, "per_ms": 1000}, "reason": "r"}
    assert (await api.post("/v1/queues/jobs/limits", body)).data == {"revision": "1"}
    limits = (await api.get("/v1/queues/jobs")).data["limits"]
    assert (limits["running_max"], limits["running"]) == (2, 0)
    assert limits["rate"] == {"count": 5, "per_ms": 1000, "burst": 5, "tokens": 5.0}
    assert (await api.post("/v1/limits", {"running_max": 9, "reason": "r"})).status == 200
    assert (await api.get("/v1/limits")).data["running_max"] == 9
    assert (await api.post("/v1/queues/jobs/limits", {"reason": "r"})).data == {"revision": "2"}
    assert "running_max" not in (await api.get("/v1/queues/jobs")).data["limits"]
    classes = {"name": "acct", "running_max": 3, "reason": "r"}
    assert (await api.post("/v1/queues/jobs/key-classes", classes)).status == 200
    found = (await api.get("/v1/queues/jobs")).data["key_classes"]
    assert found == [{"name": "acct", "running_max": 3, "revision": "1"}]
    weight = {"fairness_key": "shop", "weight": 3, "reason": "r"}
    assert (await api.post("/v1/queues/jobs/weights", weight)).status == 200


async def test_a_full_backlog_answers_429_with_when_to_come_back(api: Api) -> None:
    await api.post("/v1/queues/jobs/limits", {"backlog_max": 2, "reason": "r"})
    items = [{**TASK, "idempotency_key": str(n)} for n in range(3)]
    found = (await api.post("/v1/tasks/batch", {"items": items}, key=None)).data["items"]
    assert [one.get("error", {}).get("code") for one in found] == [None, None, "RESOURCE_EXHAUSTED"]
    assert found[2]["error"]["retry_after_ms"] == 1_000
    refused = await api.post("/v1/tasks", TASK)
    assert (refused.status, refused.code) == (429, "RESOURCE_EXHAUSTED")
    assert refused.headers["Retry-After"]
    again = (await api.post("/v1/tasks/batch", {"items": items[:2]}, key=None)).data["items"]
    assert again == found[:2]


async def test_why_names_what_is_missing(api: Api) -> None:
    task_id = await submit(api, concurrency_key="acct:9")
    second = await submit(api, concurrency_key="acct:9")
    found = (await api.get(f"/v1/tasks/{task_id}/why")).data
    assert [one["code"] for one in found["conditions"]] == ["NO_WORKER"]
    assert found["moves"] is False
    await connect(api, handlers='{"safe@2":{"recovery":"IDEMPOTENT"}}')
    await api.post("/v1/queues/jobs/pause", {"reason": "the bank is down"})
    await api.post("/v1/queues/jobs/limits", {"running_max": 0, "reason": "none now"})
    found = (await api.get(f"/v1/tasks/{second}/why")).data
    said = {one["code"]: one for one in found["conditions"]}
    assert set(said) == {"PAUSED_QUEUE", "KEY", "LIMIT", "NO_HANDLER"}
    assert said["KEY"]["tasks"] == [task_id]
    assert "the bank is down" in said["PAUSED_QUEUE"]["message"]
    assert "offers version 1 of safe (offered: 2)" in said["NO_HANDLER"]["message"]
    later = await submit(api, delay_ms=60_000, start_within_ms=1_000)
    found = (await api.get(f"/v1/tasks/{later}/why")).data
    assert found["next"]["message"] == "it becomes ready"
    assert found["next"]["at"] == next(
        one["until"] for one in found["conditions"] if one["code"] == "NOT_DUE"
    )


async def test_why_knows_whose_turn_it_is_and_who_paused_a_workflow(api: Api) -> None:
    await connect(api, handlers='{"safe@1":{"recovery":"CONSERVATIVE"}}')
    first, second = await submit(api), await submit(api)
    found = (await api.get(f"/v1/tasks/{second}/why")).data
    assert found["moves"] is True
    assert {one["code"] for one in found["conditions"]} == {"TURN", "RECOVERY"}
    assert "1 task goes before it" in found["conditions"][0]["message"]
    workflow_id = await start(api, PLACED)
    await api.post(f"/v1/workflows/{workflow_id}/pause", {"reason": "stop it"})
    tasks = (await api.get("/v1/tasks", workflow_id=workflow_id)).data["items"]
    found = (await api.get(f"/v1/tasks/{tasks[0]['id']}/why")).data
    said = {one["code"]: one["message"] for one in found["conditions"]}
    assert said["PAUSED_WORKFLOW"].endswith("stop it")
    await api.post(f"/v1/tasks/{first}/cancel", {"reason": "r"})
    found = (await api.get(f"/v1/tasks/{first}/why")).data
    assert [one["code"] for one in found["conditions"]] == ["SETTLED"]
    assert (await api.get(f"/v1/tasks/{'0' * 32}/why")).status == 404


async def test_a_blocked_build_is_shown_and_explained(api: Api) -> None:
    await connect(api, "bad", handlers='{"safe@1":{"recovery":"IDEMPOTENT"}}')
    task_id = await submit(api)
    reply = await api.post("/v1/workers/block", {"build": "bad", "reason": "loses receipts"})
    assert reply.data == {"build": "bad", "blocked": True}
    assert [one["blocked"] for one in (await api.get("/v1/workers")).data["items"]] == [True]
    found = (await api.get(f"/v1/tasks/{task_id}/why")).data
    assert [one["code"] for one in found["conditions"]] == ["BLOCKED_BUILD"]
    await api.post("/v1/workers/unblock", {"build": "bad", "reason": "fixed"})
    assert [one["blocked"] for one in (await api.get("/v1/workers")).data["items"]] == [False]


async def test_a_capped_credential_cannot_jump_the_line_nor_give_more_than_it_has(edge: Api) -> None:
    capped = await edge.with_rights(replace(EVERYTHING, priority_max=5))
    assert (await capped.post("/v1/tasks", {**TASK, "priority": 5})).status == 200
    refused = await capped.post("/v1/tasks", {**TASK, "priority": 6})
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    more = await capped.post("/v1/credentials", {"name": "n", "permissions": ["tasks:submit"]})
    assert more.code == "PERMISSION_DENIED"
    body = {"name": "n", "permissions": ["tasks:submit"], "priority_max": 4}
    made = await capped.post("/v1/credentials", body)
    assert made.data["priority_max"] == 4
    shown = (await edge.get("/v1/credentials")).data["items"]
    assert shown[0]["priority_max"] == 4


async def test_a_trace_context_does_not_make_another_request_of_it(edge: Api) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    first = await edge.post("/v1/tasks", {**TASK, "traceparent": trace}, key="k")
    again = await edge.post("/v1/tasks", TASK, key="k")
    assert first.data["id"] == again.data["id"]
    assert (await edge.post("/v1/tasks", {**TASK, "traceparent": "nonsense"})).status == 400


async def test_figures_show_backlog_permits_and_waiters(api: Api) -> None:
    await api.post("/v1/queues/jobs/limits", {"running_max": 7, "backlog_max": 9, "reason": "r"})
    await api.post("/v1/queues/jobs/pause", {"reason": "r"})
    for _ in range(2):
        await submit(api, concurrency_key="acct:9")
    await submit(api, delay_ms=60_000)
    runner = api.parts.loops["backlog"]
    await runner.loop.run_once(await api.parts.server.database.now())
    text = (await Api(api.parts, None).get("/metrics")).body
    space = await namespace_of(api)
    queue = f'namespace="{space}",queue="jobs"'
    for line in (
        f'orbit_tasks{{{queue},state="READY",blocked="0"}} 1',
        f'orbit_tasks{{{queue},state="READY",blocked="1"}} 1',
        f'orbit_tasks{{{queue},state="SCHEDULED",blocked="0"}} 1',
        f"orbit_queue_paused{{{queue}}} 1",
        f"orbit_permits_limit{{{queue}}} 7",
        f"orbit_permits_in_use{{{queue}}} 0",
        f'orbit_blocked_tasks{{{queue},cause="KEY"}} 1',
        f"orbit_backlog_tasks{{{queue}}} 3",
        f"orbit_backlog_limit{{{queue}}} 9",
        "orbit_key_waiters 1",
    ):
        assert line in text.splitlines(), text
    assert "orbit_oldest_ready_seconds" in text
    assert "orbit_event_loop_lag_seconds" in text


async def test_one_task_with_a_fairness_key_does_not_hide_how_long_others_have_been_ready(api: Api) -> None:
    await api.post("/v1/queues/jobs/pause", {"reason": "r"})
    await submit(api)
    await submit(api, fairness_key="project-1")
    assert (await api.get("/v1/queues/jobs")).data["oldest_ready_at"]
    await api.parts.loops["backlog"].loop.run_once(await api.parts.server.database.now() + 3_600_000_000)
    text = (await Api(api.parts, None).get("/metrics")).body
    (age,) = re.findall(r'orbit_oldest_ready_seconds{[^}]*queue="jobs"} (\S+)', text)
    assert float(age) > 3_000


async def test_steps_of_workflows_wait_for_their_key_like_any_task(api: Api) -> None:
    node = task("done", "risky", concurrency_key={"const": "acct:9"})
    keyed = document({"work": node, "done": end()}, id="test.keyed")
    workflows = [await start(api, keyed) for _ in range(3)]

    async def lined_up() -> bool:
        found = (await api.get("/v1/queues/jobs")).data
        return bool(found["waiting_for_key"] == 2 and found["states"] == {"READY": 3})

    await until(lined_up)
    await api.post(f"/v1/workflows/{workflows[0]}/cancel", {"reason": "r"})

    async def followed() -> bool:
        found = (await api.get("/v1/queues/jobs")).data
        return bool(found["waiting_for_key"] == 1 and found["states"] == {"READY": 2})

    await until(followed)


async def test_a_resumed_queue_admits_those_who_wait_for_a_key_at_once(migrated_url: str) -> None:
    async with node(migrated_url, loop_ms=60_000, idle_loop_ms=60_000) as api:
        first = await submit(api, concurrency_key="acct:9")
        await submit(api, concurrency_key="acct:9")
        await api.post("/v1/queues/jobs/pause", {"reason": "r"})
        await api.post(f"/v1/tasks/{first}/cancel", {"reason": "r"})
        await api.parts.loops["admissions"].loop.run_once(await api.parts.server.database.now())
        assert (await api.get("/v1/queues/jobs")).data["waiting_for_key"] == 1
        await api.post("/v1/queues/jobs/resume", {"reason": "r"})

        async def admitted() -> bool:
            return bool((await api.get("/v1/queues/jobs")).data["waiting_for_key"] == 0)

        await until(admitted)
