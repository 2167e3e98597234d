"""What a workflow went through: activations, rounds, operations of people, origin of tasks."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection

from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.history import Activation, Operation, Origin, Round
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.names import handler_key
from orbit_server.api.call import Call
from orbit_server.api.events import authorised
from orbit_server.api.masking import hidden, masks_of, shown
from orbit_server.api.query import PAGING
from orbit_server.api.routes import Route
from orbit_server.api.workflows import compiled_of, present, step_item
from orbit_server.platform.audit import AuditRow
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.instances import history, queries
from orbit_server.weave.instances.history import ActivationFacts
from orbit_server.weave.instances.history import Round as RoundFacts
from orbit_server.weave.state.rows import InstanceRow


async def _of_step(call: Call) -> tuple[InstanceRow, Compiled]:
    row = await call.server.database.read(
        lambda conn: queries.head(conn, call.namespace_id, call.path["workflow_id"])
    )
    if row is None:
        raise NotFound("no such workflow")
    compiled = await compiled_of(call, row)
    if call.path["step_key"] not in compiled.definition.nodes:
        raise NotFound("no such step")
    return row, compiled


async def _list_activations(call: Call) -> Any:
    key = call.path["step_key"]
    paging = call.paging("activations", (int,), f"{call.path['workflow_id']} {key}")
    row, compiled = await _of_step(call)
    before: Any = paging.after[0] if paging.after else None
    found = await call.server.database.read(
        lambda conn: history.activations(conn, row.id, key, before, paging.take)
    )
    return paging.page(
        found,
        lambda item: _activation(call, item, compiled),
        lambda item: (item.facts.row.activation_no,),
    )


def _activation(call: Call, item: ActivationFacts, compiled: Compiled) -> dict[str, Any]:
    facts, key = item.facts, item.facts.row.step_key
    view = step_item(facts, compiled)
    view["attempts_spent"] = facts.row.attempts_spent
    if call.principal.allows("payloads:read"):
        values = {
            "result": shown(facts.result),
            "failure": shown(facts.failure),
            "parameters": shown(item.parameters),
        }
    else:
        masks = masks_of(compiled)
        values = {
            "result": masks.result(key, facts.result),
            "failure": hidden(facts.failure),
            "parameters": None
            if item.handler is None
            else masks.parameters(handler_key(*item.handler), item.parameters),
        }
    return view | present(values)


async def _list_rounds(call: Call) -> Any:
    key = call.path["step_key"]
    paging = call.paging("rounds", (str,), f"{call.path['workflow_id']} {key}")
    row, compiled = await _of_step(call)
    before: Any = paging.after[0] if paging.after else None
    found = await call.server.database.read(
        lambda conn: history.rounds(conn, row.id, key, before, paging.take)
    )
    return paging.page(found, lambda item: _round(call, item, compiled), lambda item: (item.task_id,))


def _round(call: Call, item: RoundFacts, compiled: Compiled) -> dict[str, Any]:
    view: dict[str, Any] = {
        "task_id": item.task_id,
        "activation_id": item.activation_id,
        "task_state": item.state,
        "attempts_used": item.attempts_used,
        "attempts_max": item.attempts_max,
        "created_at": to_rfc3339(item.created_at),
    }
    if call.principal.allows("payloads:read"):
        values = (shown(item.result), shown(item.error))
    else:
        key = handler_key(item.handler, item.handler_version)
        values = (masks_of(compiled).handler_result(key, item.result), hidden(item.error))
    return view | present(
        {
            "round": item.round or None,
            "settled_at": None if item.settled_at is None else to_rfc3339(item.settled_at),
            "error_code": item.error_code,
            "result": values[0],
            "error": values[1],
        }
    )


async def _list_operations(call: Call) -> Any:
    paging = call.paging("operations", (int, str), call.path["workflow_id"])
    row = await authorised(call)
    after: Any = paging.after

    def read(conn: Connection) -> list[tuple[AuditRow, str | None]]:
        return history.operations(conn, row.id, after, paging.take)

    found = await call.server.database.read(read)
    return paging.page(found, _operation, lambda item: (item[0].at, item[0].id))


def _operation(item: tuple[AuditRow, str | None]) -> dict[str, Any]:
    row, step_key = item
    view: dict[str, Any] = {
        "id": row.id,
        "at": to_rfc3339(row.at),
        "actor": row.actor,
        "action": row.action,
        "step_key": step_key,
        "activation_id": None if step_key is None else row.subject_id,
    }
    for name in ("on_behalf_of", "reason", "basis", "evidence", "before_digest", "after_digest"):
        view[name] = getattr(row, name)
    view["details"] = None if row.details is None else orjson.loads(row.details)
    return present(view)


async def _origin(call: Call) -> Any:
    def read(conn: Connection) -> tuple[history.Origin, InstanceRow | None] | None:
        found = history.origin(conn, call.namespace_id, call.path["task_id"])
        if found is None:
            return None
        owner = found.instance_id
        return found, None if owner is None else queries.head(conn, call.namespace_id, owner)

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such task")
    task, row = found
    view: dict[str, Any] = {
        "task_id": task.task_id,
        "kind": "SUBMITTED" if task.instance_id is None else "WORKFLOW",
        "workflow_id": task.instance_id,
        "round": task.round or None,
    }
    if row is not None:
        view |= {"definition_id": row.definition_id, "definition_version": row.definition_version}
    for name in ("step_key", "activation_id", "activation_no", "business_key", "effect_key", "retry_of"):
        view[name] = getattr(task, name)
    if task.instance_id is None:
        view["submitted_by"] = task.submitted_by
    return present(view)


_STEP = "/v1/workflows/{workflow_id}/steps/{step_key}"

ROUTES = (
    Route(
        "GET",
        f"{_STEP}/activations",
        "workflows:read",
        Page[Activation],
        _list_activations,
        "List the activations of a step with what each was given and left, newest first",
        query=PAGING,
    ),
    Route(
        "GET",
        f"{_STEP}/rounds",
        "workflows:read",
        Page[Round],
        _list_rounds,
        "List the tasks of a step, the rounds of a POLL, newest first",
        query=PAGING,
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/operations",
        "workflows:audit:read",
        Page[Operation],
        _list_operations,
        "List what people did to a workflow, newest first",
        query=PAGING,
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/origin",
        "tasks:read",
        Origin,
        _origin,
        "Read why a task exists",
    ),
)
