"""Short ways to have something to look at."""

from __future__ import annotations

from typing import Any

from tests.documents import document, end, ref, task, wait
from tests.server import Api

TASK: dict[str, Any] = {"queue": "jobs", "handler": "safe", "handler_version": 1, "recovery": "IDEMPOTENT"}

ASKING = document({"ask": wait("done", match="m"), "done": end(ref("ask"))}, id="test.ask")
"""Waits for one signal `approval` with match `m` and ends with its body."""

WORKING = document({"work": task("done", "risky"), "done": end()}, id="test.work")
"""Runs one task of queue `jobs`."""


async def publish(api: Api, doc: dict[str, Any], *, current: bool = True) -> Any:
    reply = await api.post("/v1/definitions", {"definition": doc, "current": current}, key=None)
    assert reply.status == 200, reply.body
    return reply.data


async def start(api: Api, doc: dict[str, Any], value: Any = None, **more: Any) -> str:
    """Publish and start; answers the workflow's id."""
    await publish(api, doc)
    reply = await api.post("/v1/workflows", {"definition_id": doc["id"], "input": value, **more})
    assert reply.status == 200, reply.body
    workflow_id: str = reply.data["id"]
    return workflow_id


async def approve(api: Api, workflow_id: str, body: Any = "yes", *, key: str | None = "") -> Any:
    path = f"/v1/workflows/{workflow_id}/signals"
    return await api.post(path, {"signal": "approval", "match": "m", "body": body}, key=key)


async def submit(api: Api, **more: Any) -> str:
    reply = await api.post("/v1/tasks", {**TASK, **more})
    assert reply.status == 200, reply.body
    task_id: str = reply.data["id"]
    return task_id


async def pages(api: Api, path: str, limit: int, **filters: Any) -> list[list[Any]]:
    """Every page of a list."""
    found, cursor = [], {}
    while True:
        reply = await api.get(path, limit=limit, **filters, **cursor)
        assert reply.status == 200, reply.body
        found.append(reply.data["items"])
        if "next_cursor" not in reply.data:
            return found
        cursor = {"cursor": reply.data["next_cursor"]}
