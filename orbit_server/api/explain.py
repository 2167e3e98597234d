"""Why a workflow stands where it stands; where everything that needs a person stands."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection

from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.explain import Stuck, StuckTasks, WorkflowWhy
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import LIMIT, LIMIT_MAX, name_filter, queue_filter, whole
from orbit_server.api.routes import Route
from orbit_server.api.workflows import compiled_of, present
from orbit_server.pulse.tasks.stuck import stuck_tasks
from orbit_server.weave.instances import queries
from orbit_server.weave.instances.queries import StepFacts
from orbit_server.weave.instances.why import Reason, reasons_of
from orbit_server.weave.reviews import queries as reviews
from orbit_server.weave.state.rows import InstanceRow

_READY_S: Final = 300
"""A task that has been READY for so many seconds is stuck."""


async def _why(call: Call) -> Any:
    def read(conn: Connection) -> tuple[InstanceRow, list[StepFacts]] | None:
        row = queries.head(conn, call.namespace_id, call.path["workflow_id"])
        return None if row is None else (row, queries.latest_steps(conn, row.id))

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such workflow")
    row, steps = found
    reasons = reasons_of(row, steps, (await compiled_of(call, row)).definition)
    return {
        "workflow_id": row.id,
        "state": row.state.value,
        "moves": not row.paused and any(reason.moves for reason in reasons),
        "reasons": [_reason(reason) for reason in reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    view: dict[str, Any] = {"code": reason.code, "message": reason.message}
    for name in ("step_key", "task_id", "wait_id", "then", "command"):
        view[name] = getattr(reason, name)
    for name in ("since", "until"):
        at = getattr(reason, name)
        view[name] = None if at is None else to_rfc3339(at)
    return present(view)


async def _stuck(call: Call) -> Any:
    limit: int = call.query.get("limit", LIMIT_MAX)
    found = await call.server.database.read(
        lambda conn: reviews.stuck(conn, call.namespace_id, call.query.get("definition_id"), limit + 1)
    )
    items = [
        present(
            {
                "definition_id": group.definition_id,
                "definition_version": group.definition_version,
                "step_key": group.step_key,
                "review_class": group.review_class or "UNKNOWN",
                "reason": group.reason,
                "count": str(group.count),
                "since": to_rfc3339(group.since),
            }
        )
        for group in found[:limit]
    ]
    return {"items": items, "more": len(found) > limit}


async def _stuck_tasks(call: Call) -> Any:
    limit: int = call.query.get("limit", LIMIT_MAX)
    before = await call.server.database.now() - call.query.get("ready_s", _READY_S) * 1_000_000
    found = await call.server.database.read(
        lambda conn: stuck_tasks(conn, call.namespace_id, call.query.get("queue"), before, limit + 1)
    )
    items = [
        present(
            {
                "queue": group.queue,
                "handler": group.handler,
                "handler_version": group.handler_version,
                "state": group.state,
                "review_class": group.review_class,
                "reason": group.reason,
                "count": str(group.count),
                "since": to_rfc3339(group.since),
            }
        )
        for group in found[:limit]
    ]
    return {"items": items, "more": len(found) > limit}


ROUTES = (
    Route(
        "GET",
        "/v1/tasks/stuck",
        "tasks:read",
        StuckTasks,
        _stuck_tasks,
        "Count the tasks that do not move by queue, handler, state and reason, the largest groups first",
        query=(
            LIMIT,
            queue_filter("queue", "Only tasks of this queue."),
            whole("ready_s", 0, 86_400, f"READY for longer than this is stuck, {_READY_S} by default."),
        ),
    ),
    Route(
        "GET",
        "/v1/reviews/stuck",
        "workflows:read",
        Stuck,
        _stuck,
        "Count the steps in review by definition, step and reason, the largest groups first",
        query=(LIMIT, name_filter("definition_id", "Only steps of workflows of this definition.")),
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/why",
        "workflows:read",
        WorkflowWhy,
        _why,
        "Read what a workflow waits for, what happens by itself, and what would move it",
    ),
)
