"""Reads of tasks and how they are shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson
from sqlalchemy import Connection

from orbit_sdk.definition.masking import MASK
from orbit_sdk.errors import NotFound
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.names import handler_key
from orbit_server.api.call import Call
from orbit_server.api.counts import count_view
from orbit_server.api.masking import Masks, hidden, masks_of, shown
from orbit_server.api.workflows import present
from orbit_server.pulse.tasks import queries
from orbit_server.pulse.tasks.decide.choices import choices
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.tasks.lists import TaskFilter, count_tasks, page_tasks
from orbit_server.pulse.tasks.queries import TaskDetail
from orbit_server.pulse.tasks.records import Attempt, Evidence, Task
from orbit_server.weave.instances import queries as instances

_MESSAGE_CHARS = 1_000
"""Of a message so much is shown in lists."""

TASK_STATES = tuple(state.value for state in TaskState)


async def read_task(call: Call, task_id: str) -> Task:
    """The task of this id in the caller's namespace; NotFound otherwise."""
    task = await call.server.database.read(lambda conn: queries.get_task(conn, call.namespace_id, task_id))
    if task is None:
        raise NotFound("no such task")
    return task


def _narrow(call: Call) -> TaskFilter:
    handler, _, version = call.query.get("handler", "").partition("@")
    state = call.query.get("state")
    return TaskFilter(
        states=None if state is None else (state,),
        queue=call.query.get("queue"),
        handler=handler or None,
        handler_version=int(version) if version else None,
        business_key=call.query.get("business_key"),
        instance_id=call.query.get("workflow_id"),
        error_code=call.query.get("error_code"),
        review_class=call.query.get("review_class"),
        step=call.query.get("step"),
        definition_id=call.query.get("definition_id"),
        definition_version=call.query.get("version"),
        schedule_id=call.query.get("schedule_id"),
        labels=call.query.get("labels", {}),
        created_from=call.query.get("created_from"),
        created_to=call.query.get("created_to"),
    )


async def list_tasks(call: Call) -> Any:
    """A page of tasks."""
    paging = call.paging("tasks", (str,))
    before: Any = paging.after[0] if paging.after else None
    narrow = _narrow(call)
    found = await call.server.database.read(
        lambda conn: page_tasks(conn, call.namespace_id, narrow, before=before, limit=paging.take)
    )
    reached = None if found.reached is None else (found.reached,)
    return paging.page(found.rows, task_view, lambda row: (row.id,), reached)


async def count(call: Call) -> Any:
    """How many tasks there are."""
    narrow, group_by = _narrow(call), call.query.get("group_by")
    return count_view(
        await call.server.database.read(lambda conn: count_tasks(conn, call.namespace_id, narrow, group_by))
    )


async def get_task(call: Call) -> Any:
    """One task with parameters, end and evidence."""
    task_id = call.path["task_id"]

    def read(conn: Connection) -> tuple[TaskDetail, list[Evidence], str | None, str | None] | None:
        detail = queries.get_detail(conn, call.namespace_id, task_id)
        if detail is None:
            return None
        key = None
        if detail.task.instance_id is not None:
            row = instances.head(conn, call.namespace_id, detail.task.instance_id)
            key = None if row is None else row.definition_key
        return detail, queries.evidence_of(conn, task_id), key, queries.retry_of(conn, task_id)

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such task")
    detail, evidence, definition_key, retry = found
    reads = call.principal.allows("payloads:read")
    masks = None
    if not reads and definition_key is not None:
        masks = masks_of(await call.server.weave.catalog.get(definition_key))
    decided = [asdict(each) for each in choices(detail.task, retry)]
    view = _detail(detail, evidence, masks, reads=reads)
    if detail.task.state is TaskState.NEEDS_REVIEW or any(each["allowed"] for each in decided):
        view["decisions"] = [present(each) for each in decided]
    return view


async def list_attempts(call: Call) -> Any:
    """A page of a task's attempts."""
    task_id = call.path["task_id"]
    paging = call.paging("attempts", (int,), task_id)
    after: Any = paging.after

    def read(conn: Connection) -> list[Attempt] | None:
        if queries.get_task(conn, call.namespace_id, task_id) is None:
            return None
        return queries.attempts_of(conn, task_id)

    rows = await call.server.database.read(read)
    if rows is None:
        raise NotFound("no such task")
    newest = [row for row in reversed(rows) if after is None or row.generation < after[0]]
    reads = call.principal.allows("payloads:read")
    return paging.page(
        newest[: paging.take], lambda row: attempt_view(row, reads=reads), lambda row: (row.generation,)
    )


def task_view(task: Task) -> dict[str, Any]:
    """The summary of a task (`protocol.tasks.Task`)."""
    view: dict[str, Any] = {
        "id": task.id,
        "queue": task.queue,
        "handler": task.handler,
        "handler_version": task.handler_version,
        "state": task.state.value,
        "cancel_requested": task.cancel_requested,
        "priority": task.priority,
        "attempts_used": task.attempts_used,
        "attempts_max": task.attempts_max,
        "revision": str(task.revision),
        "created_at": to_rfc3339(task.created_at),
    }
    optional: dict[str, Any] = {
        "review_class": None if task.review_class is None else task.review_class.value,
        "error_code": task.error_code,
        "due_at": _at(task.due_at),
        "business_key": task.business_key,
        "workflow_id": task.instance_id,
        "step_key": task.step_key,
        "round": task.round or None,
        "probe_of": task.probe_of,
        "settled_at": _at(task.settled_at),
    }
    view.update(present(optional))
    return view


def _detail(
    detail: TaskDetail, evidence: list[Evidence], masks: Masks | None, *, reads: bool
) -> dict[str, Any]:
    task, spec, result = detail.task, detail.spec, detail.result
    view = task_view(task)
    view["recovery"] = task.recovery.value
    view["effect_key"] = "" if spec is None else spec.effect_key
    key = handler_key(task.handler, task.handler_version)
    if spec is not None:
        view["parameters_version"] = spec.parameters_version
        links = {"retry_of": spec.retry_of, "linked_to": spec.linked_to}
        view |= present({"labels": shown(spec.labels), **links})
        if reads:
            view["parameters"] = shown(spec.parameters)
        else:
            view["parameters"] = (
                hidden(spec.parameters) if masks is None else masks.parameters(key, spec.parameters)
            )
    if result is not None and result.result is not None:
        if reads:
            view["result"] = shown(result.result)
        else:
            view["result"] = (
                hidden(result.result) if masks is None else masks.handler_result(key, result.result)
            )
    if result is not None and result.error is not None:
        error = orjson.loads(result.error)
        view["error"] = present({"code": error.get("code"), "message": error.get("message")})
    view["evidence"] = [evidence_view(found, reads=reads) for found in evidence]
    return view


def evidence_view(found: Evidence, *, reads: bool) -> dict[str, Any]:
    """A piece of evidence (`protocol.tasks.Evidence`)."""
    view: dict[str, Any] = {
        "id": found.id,
        "kind": found.kind,
        "contradiction": bool(found.contradiction),
        "at": to_rfc3339(found.at),
    }
    body = shown(found.body) if reads else hidden(found.body)
    return view | present({"attempt_id": found.attempt_id, "body": body})


def error_view(text: str | None, *, reads: bool) -> dict[str, Any] | None:
    """Code and message of a stored error; the message cut where it gets long, and masked where the reader may
    not read values.
    """
    if text is None:
        return None
    error = orjson.loads(text)
    message = str(error.get("message") or "")
    if len(message) > _MESSAGE_CHARS:
        message = message[:_MESSAGE_CHARS] + "…"
    return {"code": str(error.get("code") or "ERROR"), "message": message if reads else MASK}


def attempt_view(row: Attempt, *, reads: bool) -> dict[str, Any]:
    """An attempt (`protocol.tasks.Attempt`)."""
    view: dict[str, Any] = {
        "id": row.id,
        "attempt_no": row.attempt_no,
        "generation": str(row.generation),
        "kind": row.kind.value,
        "state": row.state.value,
        "charged": bool(row.charged),
        "offered_at": to_rfc3339(row.offered_at),
    }
    optional = {
        "outcome": None if row.outcome is None else row.outcome.value,
        "worker": row.worker,
        "build": row.build,
        "started_at": _at(row.started_at),
        "progress_at": _at(row.progress_at),
        "progress_timeout_ms": row.progress_timeout_ms,
        "marked_at": _at(row.marked_at),
        "closed_at": _at(row.closed_at),
        "error": shown(row.error) if reads else error_view(row.error, reads=False),
    }
    return view | present(optional)


def _at(micros: int | None) -> str | None:
    return None if micros is None else to_rfc3339(micros)
