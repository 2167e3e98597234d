"""Doing it once more, through the HTTP interface."""

from __future__ import annotations

import asyncio
from typing import Any

from orbit_server.verify import violations
from tests.api.flows import ASKING, WORKING, approve, start
from tests.documents import document, end, ref, task
from tests.server import Api, Reply

ORIGIN = document(
    {"work": task("done", "safe", value=ref("instance", "origin")), "done": end()}, id="test.origin"
)


async def restart(api: Api, workflow_id: str, effects: str, **more: Any) -> Reply:
    body = {"effects": effects, "reason": "once more", **{k: v for k, v in more.items() if k != "key"}}
    return await api.post(f"/v1/workflows/{workflow_id}/restart", body, key=more.get("key", ""))


async def cancel(api: Api, workflow_id: str) -> None:
    await api.post(f"/v1/workflows/{workflow_id}/cancel", {"reason": "r"})
    await api.get(f"/v1/workflows/{workflow_id}", wait_ms=20_000, after_revision=9)


async def keys_of(api: Api, workflow_id: str) -> str:
    step = (await api.get(f"/v1/workflows/{workflow_id}/steps/work")).data
    found: str = (await api.get(f"/v1/tasks/{step['task_id']}")).data["effect_key"]
    return found


async def test_a_restart_takes_the_input_and_names_its_origin(api: Api) -> None:
    origin = await start(api, ORIGIN, {"n": 1}, business_key="order 7")
    made = (await restart(api, origin, "NEW")).data
    found = (await api.get(f"/v1/workflows/{made['id']}")).data
    assert (found["input"], found["business_key"]) == ({"n": 1}, "order 7")
    (activation,) = (await api.get(f"/v1/workflows/{made['id']}/steps/{'work'}/activations")).data["items"]
    assert activation["parameters"]["value"] == {"workflow_id": origin, "effects": "NEW"}
    other = (await restart(api, origin, "NEW", input=None)).data
    assert (await api.get(f"/v1/workflows/{other['id']}")).data["input"] is None
    assert (await restart(api, origin, "NEW", version=9)).code == "NOT_FOUND"
    assert (await restart(api, "0" * 32, "NEW")).code == "NOT_FOUND"
    operations = (await api.get(f"/v1/workflows/{origin}/operations")).data["items"]
    assert [item["action"] for item in operations] == ["workflow.restart"] * 2


async def test_the_same_effects_have_the_same_keys_and_one_owner_at_a_time(api: Api) -> None:
    origin = await start(api, WORKING)
    refused = await restart(api, origin, "SAME")
    assert (refused.code, refused.fields) == ("FAILED_PRECONDITION", ["effects"])
    await cancel(api, origin)
    first = (await restart(api, origin, "SAME", key="one")).data
    assert (await restart(api, origin, "SAME", key="one")).data == first
    assert await keys_of(api, first["id"]) == await keys_of(api, origin)
    assert await keys_of(api, (await restart(api, origin, "NEW")).data["id"]) != await keys_of(api, origin)
    assert (await restart(api, origin, "SAME")).code == "FAILED_PRECONDITION"
    await cancel(api, first["id"])
    second = (await restart(api, first["id"], "SAME")).data
    assert await keys_of(api, second["id"]) == await keys_of(api, origin)
    assert (await restart(api, origin, "SAME")).code == "FAILED_PRECONDITION", "the heir of the root is open"
    assert await api.parts.server.database.read(violations) == []


async def test_of_two_restarts_at_once_one_gets_the_effects(api: Api) -> None:
    origin = await start(api, ASKING)
    await approve(api, origin)
    answers = await asyncio.gather(*(restart(api, origin, "SAME") for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409]


async def test_a_dry_restart_says_what_would_follow_and_makes_nothing(api: Api) -> None:
    origin = await start(api, WORKING)
    refused = await restart(api, origin, "SAME", dry_run=True)
    assert (refused.code, refused.fields) == ("FAILED_PRECONDITION", ["effects"])
    await cancel(api, origin)
    said = (await restart(api, origin, "SAME", dry_run=True, key="op")).data
    assert [step["key"] for step in said["forecast"]["steps"]] == ["work"]
    (order,) = said["forecast"]["tasks"]
    assert (order["order"], order["effect_key"]) == ("CREATE", await keys_of(api, origin))
    assert [item["id"] for item in (await api.get("/v1/workflows")).data["items"]] == [origin]
    assert (await api.get(f"/v1/workflows/{origin}/operations")).data["items"][0][
        "action"
    ] != "workflow.restart"
    made = (await restart(api, origin, "SAME", key="op")).data
    assert "forecast" not in made
    assert await api.parts.server.database.read(violations) == []
