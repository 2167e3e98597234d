"""Bulks: plan, look, apply, stop."""

from __future__ import annotations

from typing import Any, Final, get_args

import orjson
from pydantic import BaseModel

from orbit_sdk.definition.masking import MASK
from orbit_sdk.errors import Detail, InvalidArgument, NotFound, PermissionDenied, ResourceExhausted
from orbit_sdk.protocol.bulk import (
    ApplyBulk,
    Bulk,
    BulkAnswer,
    BulkDetail,
    BulkItem,
    BulkResult,
    BulkState,
    GrantBudgets,
    PlanBulk,
    ReviewSteps,
    ReviewTasks,
    StopBulk,
)
from orbit_sdk.protocol.common import Page
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_handler_key, is_name
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, flag, one_of
from orbit_server.api.routes import Route
from orbit_server.api.sizes import require_evidence, require_result
from orbit_server.api.workflows import present
from orbit_server.bulk import commands, lifecycle, queries
from orbit_server.bulk.actions import ACTIONS, PRIORITY_MAX
from orbit_server.bulk.candidates import FILTERS
from orbit_server.bulk.decide import Terms
from orbit_server.bulk.lifecycle import ENDED, ItemState, Target
from orbit_server.bulk.records import BulkRow, ItemRow
from orbit_server.weave.service import send

_SECOND: Final = 1_000_000
EXPIRES_US: Final = 24 * 3600 * _SECOND
"""A plan that nobody applies expires after 24 hours."""
OPEN_MAX: Final = 100
"""Bulks of a namespace that have not ended."""
_READS: Final = {
    Target.STEPS: "workflows:read",
    Target.WORKFLOWS: "workflows:read",
    Target.TASKS: "tasks:read",
}


_STARTS: Final = frozenset({"task.retry", "workflow.restart"})


async def _plan(call: Call) -> Any:
    body: PlanBulk = call.body
    kind: str = body.action.kind
    _require(call, kind)
    _check(call, body)
    narrow = body.filter.model_dump(mode="json", exclude_none=True)
    orders = body.action.model_dump(mode="json", exclude_none=True)
    if call.principal.priority_max is not None:
        orders[PRIORITY_MAX] = call.principal.priority_max
    if await call.server.database.read(lambda conn: queries.open_bulks(conn, call.namespace_id)) >= OPEN_MAX:
        raise ResourceExhausted(
            f"{OPEN_MAX} bulks of this namespace have not ended: apply or stop some", retry_after_ms=60_000
        )
    command = commands.CreateBulk(
        _by(call, "plan", call.seed().nth(0), body.reason),
        action=kind,
        filter=canonical_json(narrow),
        orders=canonical_json(orders),
        most=body.most,
        expires_in_us=EXPIRES_US,
    )
    return await send(call.server.database, call.server.weave, command)


async def _apply(call: Call) -> Any:
    row = await _row(call)
    _require(call, row.action)
    await _require_cap(call, row)
    body: ApplyBulk = call.body
    terms = Terms(round(_SECOND / body.per_second), body.max_failures, body.max_failure_percent)
    command = commands.ApplyBulk(_by(call, "apply", row.id, body.reason), terms)
    return await send(call.server.database, call.server.weave, command)


async def _stop(call: Call) -> Any:
    row = await _row(call)
    _require(call, row.action)
    command = commands.StopBulk(_by(call, "stop", row.id, call.body.reason))
    return await send(call.server.database, call.server.weave, command)


async def _list(call: Call) -> Any:
    paging = call.paging("bulk", (str,))
    before: Any = paging.after[0] if paging.after else None
    shown = [kind for kind, action in ACTIONS.items() if call.principal.allows(_READS[action.target])]
    rows = await call.server.database.read(
        lambda conn: queries.page(
            conn, call.namespace_id, shown, call.query.get("state"), before, paging.take
        )
    )
    return paging.page(rows, _view, lambda row: (row.id,))


async def _get(call: Call) -> Any:
    row = await _row(call)
    spec = await call.server.database.read(lambda conn: queries.spec(conn, row.id))
    orders = orjson.loads(spec.orders)
    orders.pop(PRIORITY_MAX, None)
    if "result" in orders and not call.principal.allows("payloads:read"):
        orders["result"] = MASK
    return _view(row) | {"reason": spec.reason, "filter": orjson.loads(spec.filter), "orders": orders}


async def _items(call: Call) -> Any:
    paging = call.paging("bulk items", (int,), call.path["bulk_id"])
    row = await _row(call)
    after: Any = paging.after[0] if paging.after else None
    states = _states(row, call.query.get("result"))
    allowed: bool | None = call.query.get("allowed")
    found = await call.server.database.read(
        lambda conn: queries.items(conn, row.id, states, after, paging.take, allowed=allowed)
    )
    return paging.page(found, lambda item: _item(row, item), lambda item: (item.number,))


# --- shared ------------------------------------------------------------------------------------------------


async def _row(call: Call) -> BulkRow:
    """Out of the caller's scope is as good as absent. Raises NotFound."""
    row = await call.server.database.read(
        lambda conn: queries.get(conn, call.namespace_id, call.path["bulk_id"])
    )
    if row is None or not call.principal.allows(_READS[ACTIONS[row.action].target]):
        raise NotFound("no such bulk")
    return row


def _require(call: Call, kind: str) -> None:
    """Who does something to many may read them, and may do it to one."""
    action = ACTIONS[kind]
    for permission in (_READS[action.target], *action.rights):
        call.principal.require(permission)


async def _require_cap(call: Call, row: BulkRow) -> None:
    """What is started holds to the cap of the plan, so whoever applies it may have no lower one."""
    most = call.principal.priority_max
    if most is None or row.action not in _STARTS:
        return
    spec = await call.server.database.read(lambda conn: queries.spec(conn, row.id))
    planned = orjson.loads(spec.orders).get(PRIORITY_MAX)
    if planned is None or planned > most:
        raise PermissionDenied(
            f"this credential submits with a priority of at most {most}, the plan was made for more:"
            " plan it with this credential"
        )


def _by(call: Call, operation: str, bulk_id: Id, reason: str | None) -> commands.By:
    body: BaseModel = call.body
    meaning: Json = {
        "body": body.model_dump(mode="json"),
        "bulk_id": None if operation == "plan" else bulk_id,
    }
    return commands.By(
        key=call.command_key(f"bulk.{operation}", meaning),
        bulk_id=bulk_id,
        namespace_id=call.namespace_id,
        actor=call.principal.actor,
        reason=reason,
        seed=call.seed(),
        on_behalf_of=call.on_behalf_of,
    )


def _check(call: Call, body: PlanBulk) -> None:
    """What would be refused for every item is refused once."""
    limits = call.server.settings.limits
    action = body.action
    fits = FILTERS[ACTIONS[action.kind].target]
    problems = [
        Detail(f"filter.{name}", f"does not fit {action.kind}; {', '.join(sorted(fits))} do")
        for name in sorted(body.filter.model_dump(exclude_none=True))
        if name not in fits
    ]
    evidence = getattr(action, "evidence", None)
    require_evidence(limits, evidence)
    adopts = isinstance(action, ReviewSteps | ReviewTasks) and action.adopt
    if adopts and "result" in action.model_fields_set:
        problems.append(Detail("action.adopt", "and result exclude each other"))
    if getattr(action, "basis", None) == "PROVEN" and not evidence and not adopts:
        problems.append(Detail("action.evidence", "is required with basis PROVEN; silence is never evidence"))
    if isinstance(action, ReviewSteps) and action.verdict == "FAILED" and action.code is None:
        problems.append(Detail("action.code", "is required when a step is concluded as failed"))
    if isinstance(action, GrantBudgets) and not (action.attempts or action.rounds or action.time_ms):
        problems.append(Detail("action.attempts", "or rounds or time_ms: say what is granted"))
    handler = body.filter.handler
    if handler is not None and not (is_name(handler) or is_handler_key(handler)):
        problems.append(Detail("filter.handler", "must be a handler such as job.submit or job.submit@1"))
    if isinstance(action, ReviewSteps | ReviewTasks):
        require_result(limits, canonical_json(action.result))
    if problems:
        raise InvalidArgument(f"{problems[0].field} {problems[0].reason}", problems)


def _view(row: BulkRow) -> dict[str, Any]:
    allowed = row.items - row.refused
    view: dict[str, Any] = {
        "id": row.id,
        "state": row.state.value,
        "revision": str(row.revision),
        "action": row.action,
        "items": str(row.items),
        "allowed": str(allowed),
        "refused": str(row.refused),
        "truncated": row.truncated,
        "applied": str(row.applied),
        "skipped": str(row.skipped),
        "failed": str(row.failed),
        "left": str(allowed - row.applied - row.skipped - row.failed),
        "planned_by": row.made_by,
        "created_at": to_rfc3339(row.created_at),
        "expires_at": to_rfc3339(row.expires_at),
    }
    optional: dict[str, Any] = {
        "stopped_by": None if row.stopped_by is None else row.stopped_by.value,
        "applied_by": row.applied_by,
        "applied_for": row.applied_for,
        "per_second": round(_SECOND / row.interval_us, 3) if row.interval_us else None,
        "max_failures": row.failures_max,
        "max_failure_percent": row.failures_percent,
    }
    for name in ("planned_at", "started_at", "ended_at"):
        at = getattr(row, name)
        optional[name] = None if at is None else to_rfc3339(at)
    return view | present(optional)


def _item(row: BulkRow, item: ItemRow) -> dict[str, Any]:
    subject = "task_id" if ACTIONS[row.action].target is Target.TASKS else "workflow_id"
    view: dict[str, Any] = {
        "number": item.number,
        subject: item.subject_id,
        "expected": str(item.expected),
        "allowed": item.allowed,
    }
    result: str | None = item.state.value
    if item.state is ItemState.PENDING:
        result = "NOT_REACHED" if row.state in ENDED else None
    optional = {
        "step_key": item.step_key,
        "business_key": item.business_key,
        "then": item.then_state,
        "result": result,
        "code": item.code,
        "why": item.why,
        "evidence_id": item.evidence_id,
        "made_id": item.made_id,
        "settled_at": None if item.settled_at is None else to_rfc3339(item.settled_at),
    }
    return view | present(optional)


def _states(row: BulkRow, result: str | None) -> list[str] | None:
    """The stored states that are shown as this result."""
    if result is None:
        return None
    if result == "NOT_REACHED":
        return [ItemState.PENDING.value] if row.state in ENDED else []
    return [lifecycle.ItemState(result).value]


_OF_BULK: Final = "/v1/bulk/{bulk_id}"
_READ: Final = "workflows:read"
_OR: Final = "tasks:read"
"""Which of the two a bulk needs depends on what its items are."""

ROUTES = (
    Route(
        "POST",
        "/v1/bulk",
        _READ,
        answer=BulkAnswer,
        handler=_plan,
        summary="Plan one action for many workflows, steps in review or tasks; nothing is done yet",
        body=PlanBulk,
        idempotency="required",
        instead=_OR,
    ),
    Route(
        "GET",
        "/v1/bulk",
        _READ,
        answer=Page[Bulk],
        handler=_list,
        summary="List bulks, newest first",
        query=(*PAGING, one_of("state", get_args(BulkState), "Only bulks in this state.")),
        instead=_OR,
    ),
    Route(
        "GET",
        _OF_BULK,
        _READ,
        answer=BulkDetail,
        handler=_get,
        summary="Read one bulk and how far it is",
        instead=_OR,
    ),
    Route(
        "GET",
        f"{_OF_BULK}/items",
        _READ,
        answer=Page[BulkItem],
        handler=_items,
        summary="List the items of a bulk in the order in which they are done",
        query=(
            *PAGING,
            one_of("result", get_args(BulkResult), "Only items with this result."),
            flag("allowed", "Only items that the plan allows, or only those that it refuses."),
        ),
        instead=_OR,
    ),
    Route(
        "POST",
        f"{_OF_BULK}/apply",
        _READ,
        answer=BulkAnswer,
        handler=_apply,
        summary="Start a plan, with a rate and with stop conditions",
        body=ApplyBulk,
        idempotency="required",
        instead=_OR,
    ),
    Route(
        "POST",
        f"{_OF_BULK}/stop",
        _READ,
        answer=BulkAnswer,
        handler=_stop,
        summary="Stop a bulk, or give its plan up; what is done stays done",
        body=StopBulk,
        idempotency="required",
        instead=_OR,
    ),
)
