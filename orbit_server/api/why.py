"""`why`: what a task waits for."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from orbit_sdk.errors import NotFound
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.pulse.tasks.queries import get_task
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.why.explain import Condition, Explanation, explain
from orbit_server.pulse.why.facts import Facts, read_facts


async def why(call: Call) -> Any:
    """Read everything at one moment, then explain it."""
    task_id = call.path["task_id"]
    now = await call.server.database.now()

    def read(conn: Connection) -> Facts | None:
        task = get_task(conn, call.namespace_id, task_id)
        return None if task is None else read_facts(conn, task, now)

    facts = await call.server.database.read(read)
    if facts is None:
        raise NotFound("no such task")
    return _view(facts.task, explain(facts, call.server.times))


def _view(task: Task, found: Explanation) -> dict[str, Any]:
    view: dict[str, Any] = {
        "task_id": task.id,
        "state": task.state.value,
        "moves": found.moves,
        "conditions": [_condition(one) for one in found.conditions],
    }
    if found.next is not None:
        view["next"] = {"message": found.next.message}
        if found.next.at is not None:
            view["next"]["at"] = to_rfc3339(found.next.at)
    return view


def _condition(one: Condition) -> dict[str, Any]:
    view: dict[str, Any] = {"code": one.code, "message": one.message, "tasks": list(one.tasks)}
    if one.since is not None:
        view["since"] = to_rfc3339(one.since)
    if one.until is not None:
        view["until"] = to_rfc3339(one.until)
    return view
