"""What waits for a person, and the decisions on steps in review."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection

from orbit_sdk.definition.nodes import PollNode, TaskNode
from orbit_sdk.engine.commands import Verdict
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.workflows import DecideReview, ReviewItem, Workflow
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, name_filter, one_of
from orbit_server.api.routes import Route
from orbit_server.pulse.tasks.queries import TaskFilter, list_tasks
from orbit_server.pulse.tasks.records import Task
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.reviews import queries
from orbit_server.weave.reviews.commands import ResolveStep
from orbit_server.weave.reviews.queries import StepReview
from orbit_server.weave.service import send

_STEP: Final = "STEP"
_TASK: Final = "TASK"
_CLASSES: Final = ("UNKNOWN", "DEFINITE", "EXPIRED", "TIMEOUT", "UNMAPPED", "ENGINE_ERROR")
"""`ReviewClass`, as written."""

Found = StepReview | Task


async def _list_reviews(call: Call) -> Any:
    """Steps of workflows first, then standalone tasks (for credentials that may read those)."""
    paging = call.paging("reviews", (str, str))
    kind = call.query.get("kind")
    after: Any = paging.after or (_STEP, None)
    shows_tasks = call.principal.allows("tasks:read") and "definition_id" not in call.query

    def read(conn: Connection) -> list[Found]:
        found: list[Found] = []
        if kind in (None, _STEP) and after[0] == _STEP:
            found += queries.page(
                conn,
                call.namespace_id,
                review_class=call.query.get("review_class"),
                definition_id=call.query.get("definition_id"),
                before=after[1],
                limit=paging.take,
            )
        if kind in (None, _TASK) and shows_tasks and len(found) < paging.take:
            found += list_tasks(
                conn,
                call.namespace_id,
                TaskFilter(
                    states=("NEEDS_REVIEW",), review_class=call.query.get("review_class"), standalone=True
                ),
                before=after[1] if after[0] == _TASK else None,
                limit=paging.take - len(found),
            )
        return found

    rows = await call.server.database.read(read)
    compiled = {
        key: await call.server.weave.catalog.get(key)
        for key in {row.definition_key for row in rows if isinstance(row, StepReview)}
    }
    return paging.page(rows, lambda row: _item(row, compiled), _position)


def _position(row: Found) -> tuple[str, str]:
    return (_STEP if isinstance(row, StepReview) else _TASK, row.id)


def _item(row: Found, compiled: dict[str, Compiled]) -> dict[str, Any]:
    if isinstance(row, Task):
        view: dict[str, Any] = {
            "kind": _TASK,
            "task_id": row.id,
            "handler": row.handler,
            "reason": row.error_code,
            "allowed": ["SUCCEEDED", "FAILED", "CANCELLED", "RETRY"],
        }
    else:
        view = _step_item(row, compiled[row.definition_key])
    view |= {
        "review_class": str(row.review_class or "UNKNOWN"),
        "revision": str(row.revision),
        "since": to_rfc3339(row.last if isinstance(row, Task) else row.since),
        "business_key": row.business_key,
    }
    return {name: value for name, value in view.items() if value is not None}


def _step_item(row: StepReview, compiled: Compiled) -> dict[str, Any]:
    node = compiled.definition.nodes.get(row.step_key)
    view: dict[str, Any] = {
        "kind": _STEP,
        "workflow_id": row.instance_id,
        "definition_id": row.definition_id,
        "step_key": row.step_key,
        "task_id": row.task_id,
        "reason": row.reason,
        "allowed": ["FAILED", "RERUN"]
        if node is not None and node.kind in ("BRANCH", "JOIN")
        else ["SUCCEEDED", "FAILED", "RERUN"],
    }
    if isinstance(node, TaskNode | PollNode):
        view["handler"] = node.handler.partition("@")[0]
        if node.review is not None:
            view["guide"] = node.review.guide
    return view


async def _decide(call: Call) -> Any:
    body: DecideReview = call.body
    instance_id, step_key = call.path["workflow_id"], call.path["step_key"]
    meaning: Json = {
        "basis": body.basis,
        "code": body.code,
        "evidence": body.evidence,
        "expected_revision": body.expected_revision,
        "message": body.message,
        "reason": body.reason,
        "result": body.result,
        "step_key": step_key,
        "verdict": body.verdict,
        "workflow_id": instance_id,
    }
    return await send(
        call.server.database,
        call.server.weave,
        ResolveStep(
            key=call.command_key("workflow.review", meaning),
            instance_id=instance_id,
            namespace_id=call.namespace_id,
            step_key=step_key,
            verdict=Verdict(body.verdict),
            expected_revision=body.expected_revision,
            actor=call.principal.actor,
            reason=body.reason,
            basis=body.basis,
            seed=call.seed(),
            weave=call.server.weave,
            evidence=body.evidence,
            result=body.result,
            code=body.code,
            message=body.message,
        ),
    )


ROUTES = (
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/reviews/{step_key}",
        "workflows:recover",
        Workflow,
        _decide,
        "Decide on a step in review",
        body=DecideReview,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/reviews",
        "workflows:read",
        Page[ReviewItem],
        _list_reviews,
        "List what waits for a person: steps, then standalone tasks",
        query=(
            *PAGING,
            one_of("kind", (_STEP, _TASK), "Only steps, or only standalone tasks."),
            one_of("review_class", _CLASSES, "Only reviews of this class."),
            name_filter("definition_id", "Only steps of workflows of this definition."),
        ),
    ),
)
