"""Versions in life: drafts, plans, old versions beside new ones, and what is still in use."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import delete

from orbit_sdk.definition.handler_types import handler_types_digest
from orbit_sdk.definition.models import load_definition
from orbit_sdk.protocol.platform import WorkerSession
from orbit_sdk.protocol.versions import DraftDetail, PublishPlan, VersionsInUse
from orbit_sdk.values.ids import derive_id
from orbit_server.gateway.rows import SessionRow, close_session, write_session
from orbit_server.platform.namespaces import DEFAULT_NAMESPACE, namespace_id
from orbit_server.pulse.workers.offers import RECENT_US
from orbit_server.storage.tables import instances
from orbit_server.weave.definitions.drafts import KEPT
from tests.api import test_bulk as bulk
from tests.api.flows import ASKING, WORKING, approve, pages, publish, start
from tests.documents import document, end, ref, task, wait
from tests.server import Api, node, until

RISKY = handler_types_digest(load_definition(WORKING), "risky@1")


async def draft(api: Api, doc: dict[str, Any]) -> Any:
    reply = await api.post("/v1/drafts", {"definition": doc}, key=None)
    assert reply.status == 200, reply.body
    return reply.data


async def worker(api: Api, name: str, *, left_us: int | None = None, **more: Any) -> None:
    """A session as the gateway writes it; with `left_us` one that ended so long ago."""
    database = api.parts.server.database
    now = await database.now()
    offered = {
        key: {"recovery": "CONSERVATIVE", "digest": value, "verify": False}
        for key, value in more.pop("handlers", {"risky@1": RISKY}).items()
    }
    row = SessionRow(
        derive_id("session", name),
        namespace_id(DEFAULT_NAMESPACE),
        "0" * 32,
        "0" * 32,
        name,
        name,
        more.get("build", name),
        json.dumps(offered),
        json.dumps(more.get("queues", ["jobs"])),
    )
    await database.write(lambda conn: write_session(conn, row, now))
    if left_us is not None:
        await database.write(lambda conn: close_session(conn, row.id, now - left_us))


# --- drafts ------------------------------------------------------------------------------------------------


async def test_a_draft_runs_beside_the_published_versions_and_takes_none_of_their_numbers(
    migrated_url: str,
) -> None:
    async with node(migrated_url, development=True) as api:
        await publish(api, ASKING)
        other = {**ASKING, "title": "on trial"}
        kept = await draft(api, other)
        assert (kept["version"], kept["used"]) == (1, False)
        body = {"definition_id": "test.ask", "draft": kept["digest"], "input": None}
        found = (await api.post("/v1/workflows", body)).data
        assert (found["draft"], found["definition_version"]) == (True, 1)
        plain = (await api.post("/v1/workflows", {"definition_id": "test.ask", "input": None})).data
        assert "draft" not in plain
        listed = (await api.get("/v1/definitions", definition_id="test.ask")).data["items"]
        assert [(item["version"], item["current"]) for item in listed] == [(1, True)]
        assert listed[0]["digest"] != kept["digest"]
        detail = (await api.get(f"/v1/drafts/test.ask/{kept['digest']}")).data
        DraftDetail.model_validate(detail)
        assert (detail["definition"], detail["used"]) == (other, True)
        steps = (await api.get(f"/v1/workflows/{found['id']}/steps")).data["items"]
        assert {step["key"] for step in steps} == {"ask", "done"}
        assert (await approve(api, found["id"], 7)).status == 200
        assert (await api.get(f"/v1/workflows/{found['id']}")).data["output"] == 7
        published = await publish(api, {**other, "version": 2})
        assert published["current"] is True


async def test_a_bulk_restarts_a_draft_as_the_draft_it_was(migrated_sqlite_url: str) -> None:
    async with node(migrated_sqlite_url, development=True) as api:
        await publish(api, ASKING)
        kept = await draft(api, {**ASKING, "title": "on trial"})
        body = {"definition_id": "test.ask", "draft": kept["digest"], "input": None}
        origin = (await api.post("/v1/workflows", body)).data["id"]
        await api.post(f"/v1/workflows/{origin}/cancel", {"reason": "r"})
        planned = await bulk.plan(api, {"kind": "workflow.restart", "effects": "NEW"})
        await bulk.done(api, planned)
        made = (await bulk.items(api, planned))[0]["made_id"]
        assert (await api.get(f"/v1/workflows/{made}")).data.get("draft") is True


async def test_drafts_are_refused_outside_a_development_namespace(edge: Api) -> None:
    refused = await edge.post("/v1/drafts", {"definition": ASKING}, key=None)
    assert (refused.status, refused.code, refused.fields) == (409, "FAILED_PRECONDITION", ["namespace"])
    assert "publish a version instead" in refused.body["error"]["details"][0]["reason"]
    assert (await edge.get("/v1/drafts")).data["items"] == []
    absent = {"definition_id": "test.ask", "draft": "0" * 64, "input": None}
    assert (await edge.post("/v1/workflows", absent)).code == "NOT_FOUND"
    both = await edge.post("/v1/workflows", {**absent, "version": 1})
    assert (both.code, both.fields) == ("INVALID_ARGUMENT", ["draft"])
    assert (await edge.get(f"/v1/drafts/test.ask/{'0' * 64}")).code == "NOT_FOUND"
    assert (await edge.get("/v1/drafts/test.ask/short")).code == "INVALID_ARGUMENT"


async def test_old_drafts_make_room_once_no_workflow_needs_them(migrated_url: str) -> None:
    async with node(migrated_url, development=True) as api:
        first = await draft(api, {**ASKING, "title": "used"})
        begun = {"definition_id": "test.ask", "draft": first["digest"], "input": None}
        workflow_id = (await api.post("/v1/workflows", begun)).data["id"]
        for number in range(KEPT + 2):
            await draft(api, {**ASKING, "title": f"number {number}"})
        again = await draft(api, {**ASKING, "title": "number 2"})
        found = [item for page in await pages(api, "/v1/drafts", 7) for item in page]
        assert len(found) == KEPT + 1
        assert found[0]["digest"] == again["digest"]
        assert found[-1]["digest"] == first["digest"]
        await api.parts.server.database.write(
            lambda conn: conn.execute(delete(instances).where(instances.c.id == workflow_id)).close()
        )
        await draft(api, {**ASKING, "title": "one more"})
        left = [item["digest"] for page in await pages(api, "/v1/drafts", 50) for item in page]
        assert (len(left), first["digest"] in left) == (KEPT, False)
        assert (await api.post("/v1/workflows", begun)).code == "NOT_FOUND"


async def test_drafts_are_listed_by_definition_and_broken_ones_refused(migrated_sqlite_url: str) -> None:
    async with node(migrated_sqlite_url, development=True) as api:
        await draft(api, ASKING)
        await draft(api, {**ASKING, "id": "test.another"})
        assert len((await api.get("/v1/drafts")).data["items"]) == 2
        only = (await api.get("/v1/drafts", definition_id="test.another")).data["items"]
        assert len(only) == 1
        broken = document({"ask": wait("nowhere"), "done": end()}, id="test.broken")
        assert (await api.post("/v1/drafts", {"definition": broken}, key=None)).code == "INVALID_ARGUMENT"


# --- plans -------------------------------------------------------------------------------------------------


async def plan(api: Api, doc: dict[str, Any]) -> Any:
    reply = await api.post("/v1/definitions/plan", {"definition": doc}, key=None)
    assert reply.status == 200, reply.body
    PublishPlan.model_validate(reply.data)
    return reply.data


async def test_a_plan_tells_new_same_and_conflict_and_stores_nothing(api: Api) -> None:
    first = await plan(api, ASKING)
    assert (first["outcome"], first["changes"], "current_version" in first) == ("NEW", [], False)
    await publish(api, ASKING)
    assert (await plan(api, ASKING))["outcome"] == "SAME"
    taken = await plan(api, {**ASKING, "title": "other"})
    assert (taken["outcome"], taken["latest_version"]) == ("CONFLICT", 1)
    stricter = {**ASKING, "version": 2, "input": {"type": "integer"}}
    found = await plan(api, stricter)
    assert (found["outcome"], found["compared_with"], found["verdict"]) == ("NEW", 1, "BREAKING")
    assert found["changes"][0]["affects"] == "callers"
    assert [item["version"] for item in (await api.get("/v1/definitions")).data["items"]] == [1]
    broken = document({"ask": wait("nowhere"), "done": end()}, id="test.broken")
    wrong = await plan(api, broken)
    assert (wrong["ok"], wrong["lacking"]) == (False, [])
    assert wrong["findings"]


async def test_a_plan_names_every_handler_that_no_worker_offers_as_it_is_needed(edge: Api) -> None:
    async def lack() -> str | None:
        found = (await plan(edge, WORKING))["lacking"]
        return found[0]["reason"] if found else None

    assert await lack() == "NO_WORKER"
    await worker(edge, "older", handlers={"risky@2": RISKY})
    assert "risky@2" in (await plan(edge, WORKING))["lacking"][0]["message"]
    await worker(edge, "typed", handlers={"risky@1": "d" * 64})
    assert await lack() == "OTHER_TYPES"
    await worker(edge, "elsewhere", queues=["far"])
    assert await lack() == "OTHER_QUEUE"
    await worker(edge, "blocked")
    await edge.post("/v1/workers/block", {"build": "blocked", "reason": "r"})
    assert await lack() == "BUILD_BLOCKED"
    await worker(edge, "gone", left_us=RECENT_US + 1_000_000)
    assert await lack() == "BUILD_BLOCKED"
    await worker(edge, "deployed", left_us=60_000_000)
    assert await lack() is None


# --- versions in use ---------------------------------------------------------------------------------------


async def in_use(api: Api, **query: Any) -> tuple[dict[Any, Any], dict[str, Any]]:
    found = (await api.get("/v1/versions", **query)).data
    VersionsInUse.model_validate(found)
    return (
        {(item["definition_id"], item["version"]): item for item in found["definitions"]},
        {item["handler"]: item for item in found["handlers"]},
    )


async def test_old_versions_are_in_use_until_their_last_workflow_has_ended(api: Api) -> None:
    both = document(
        {"ask": wait("work", match="m"), "work": task("done", "risky"), "done": end(ref("ask"))},
        id="test.ask",
    )
    await publish(api, both)
    older = await start(api, both)
    await publish(api, {**ASKING, "version": 2})
    await worker(api, "old", build="b1")
    path = "/v1/definitions/test.ask"
    assert (await api.post(f"{path}/versions/1/retire", {"reason": "r"}, key=None)).data["retired"] is True
    versions, handlers = await in_use(api)
    assert versions["test.ask", 1]["open"] == "1"
    assert versions["test.ask", 1]["retired"] is True
    assert "since" in versions["test.ask", 1]
    assert (versions["test.ask", 2]["open"], versions["test.ask", 2]["current"]) == ("0", True)
    needed = handlers["risky@1"]
    assert (needed["needed"], needed["workflows"], needed["tasks"]) == (True, "1", "0")
    assert (needed["started_by"], needed["workers"], needed["builds"]) == ([], 1, ["b1"])
    assert (await approve(api, older)).status == 200
    _, handlers = await in_use(api)
    assert handlers["risky@1"]["tasks"] == "1"
    assert "since" in handlers["risky@1"]
    assert (await api.post(f"/v1/workflows/{older}/cancel", {"reason": "r"})).status == 200

    async def over() -> bool:
        return bool((await in_use(api))[0]["test.ask", 1]["open"] == "0")

    assert await until(over)
    _, handlers = await in_use(api)
    gone = handlers["risky@1"]
    assert (gone["needed"], gone["workflows"], gone["tasks"], gone["workers"]) == (False, "0", "0", 1)


async def test_a_handler_is_needed_while_a_version_that_names_it_takes_starts(edge: Api) -> None:
    await publish(edge, WORKING)
    await publish(edge, ASKING)
    await edge.post(
        "/v1/tasks", {"queue": "far", "handler": "safe", "handler_version": 3, "recovery": "IDEMPOTENT"}
    )
    _, handlers = await in_use(edge)
    assert handlers["risky@1"]["started_by"] == ["test.work@1"]
    assert (handlers["risky@1"]["needed"], handlers["risky@1"]["workers"]) == (True, 0)
    assert (handlers["safe@3"]["tasks"], handlers["safe@3"]["started_by"]) == ("1", [])
    versions, handlers = await in_use(edge, definition_id="test.work")
    assert (set(versions), set(handlers)) == ({("test.work", 1)}, {"risky@1"})


async def test_a_draft_that_runs_is_in_use_and_a_draft_without_workflows_is_not(
    migrated_sqlite_url: str,
) -> None:
    async with node(migrated_sqlite_url, development=True) as api:
        kept = await draft(api, ASKING)
        assert (await in_use(api))[0] == {}
        body = {"definition_id": "test.ask", "draft": kept["digest"], "input": None}
        found = (await api.post("/v1/workflows", body)).data
        versions, _ = await in_use(api)
        assert versions["test.ask", 1]["draft"] is True
        assert (await api.post(f"/v1/workflows/{found['id']}/cancel", {"reason": "r"})).status == 200
        assert (await in_use(api))[0] == {}
        again = {"effects": "NEW", "reason": "r"}
        restarted = (await api.post(f"/v1/workflows/{found['id']}/restart", again)).data
        assert restarted["draft"] is True
        await publish(api, {**ASKING, "version": 2})
        moved = (await api.post(f"/v1/workflows/{found['id']}/restart", {**again, "version": 2})).data
        assert "draft" not in moved


# --- beside them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["check", "plan"])
async def test_a_definition_may_be_called_as_a_route_is(edge: Api, name: str) -> None:
    await publish(edge, {**ASKING, "id": name})
    assert (await edge.get(f"/v1/definitions/{name}/versions/1")).data["definition_id"] == name
    moved = await edge.post(f"/v1/definitions/{name}/current", {"version": 1}, key=None)
    assert moved.status == 200


async def test_a_worker_is_listed_with_what_it_offers(edge: Api) -> None:
    await worker(edge, "one")
    [item] = (await edge.get("/v1/workers")).data["items"]
    offered = WorkerSession.model_validate(item).handlers["risky@1"]
    assert (offered.recovery, offered.digest, offered.verify) == ("CONSERVATIVE", RISKY, False)


async def test_a_draft_is_started_or_dropped_and_never_both(migrated_url: str) -> None:
    async with node(migrated_url, development=True) as api:
        first = await draft(api, {**ASKING, "title": "first"})
        for number in range(KEPT - 1):
            await draft(api, {**ASKING, "title": f"number {number}"})
        begun = {"definition_id": "test.ask", "draft": first["digest"], "input": None}
        answers = await asyncio.gather(
            *(draft(api, {**ASKING, "title": f"late {number}"}) for number in range(3)),
            *(api.post("/v1/workflows", begun) for _ in range(3)),
        )
        started = [reply for reply in answers[3:] if reply.status == 200]
        assert {reply.code for reply in answers[3:] if reply.status != 200} <= {"NOT_FOUND"}
        kept = (await api.get(f"/v1/drafts/test.ask/{first['digest']}")).status == 200
        assert kept or not started
        for reply in started:
            assert (await api.get(f"/v1/workflows/{reply.data['id']}/steps")).status == 200
