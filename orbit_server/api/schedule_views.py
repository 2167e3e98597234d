"""How schedules, their occurrences and their records are shown; and the rows of their routes."""

from __future__ import annotations

from itertools import islice
from typing import Any

import orjson

from orbit_sdk.calendar.notes import local_text, notes, warnings
from orbit_sdk.calendar.plans import CronPlan
from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.schedules import (
    BackfillAnswer,
    BackfillSchedule,
    ControlSchedule,
    CreateSchedule,
    EditSchedule,
    Fire,
    FireRecord,
    Schedule,
    ScheduleAnswer,
    ScheduleDetail,
    SchedulePreview,
    TriggerAnswer,
    TriggerSchedule,
)
from orbit_sdk.values.instants import Micros, to_rfc3339
from orbit_server.api import schedules
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, one_of, whole
from orbit_server.api.routes import Route
from orbit_server.schedules import queries
from orbit_server.schedules.decide import next_planned, span_in_force
from orbit_server.schedules.lifecycle import FireState, ScheduleState
from orbit_server.schedules.rows import FireRow, RecordRow, ScheduleRow, VersionRow
from orbit_server.schedules.turn import versions_of


async def _row(call: Call) -> ScheduleRow:
    row = await call.server.database.read(
        lambda conn: queries.get(conn, call.namespace_id, call.path["schedule_id"])
    )
    if row is None:
        raise NotFound("no such schedule")
    return row


async def _list(call: Call) -> Any:
    paging = call.paging("schedules", (str,))
    before: Any = paging.after[0] if paging.after else None
    rows = await call.server.database.read(
        lambda conn: queries.page(conn, call.namespace_id, call.query.get("state"), before, paging.take)
    )
    return paging.page(rows, _summary, lambda row: (row.id,))


async def _get(call: Call) -> Any:
    row = await _row(call)
    versions = await call.server.database.read(lambda conn: queries.versions(conn, row.id, live=True))
    view = _summary(row)
    if row.state is ScheduleState.ACTIVE:
        upcoming = next_planned(versions_of(versions), row.accounted_to)
        if upcoming is not None:
            view["next_at"] = to_rfc3339(upcoming)
    values = call.principal.allows("payloads:read")
    view["versions"] = [_version(version, values=values) for version in versions]
    return view


async def _fires(call: Call) -> Any:
    paging = call.paging("fires", (int, str), call.path["schedule_id"])
    row = await _row(call)
    before: Any = paging.after
    rows = await call.server.database.read(
        lambda conn: queries.fires(conn, row.id, call.query.get("state"), before, paging.take)
    )
    return paging.page(rows, _fire, lambda fire: (fire.planned_at, fire.id))


async def _records(call: Call) -> Any:
    paging = call.paging("records", (int, str), call.path["schedule_id"])
    row = await _row(call)
    before: Any = paging.after
    rows = await call.server.database.read(lambda conn: queries.records(conn, row.id, before, paging.take))
    return paging.page(rows, _record, lambda record: (record.at, record.id))


async def _preview(call: Call) -> Any:
    row = await _row(call)
    stored = await call.server.database.read(lambda conn: queries.versions(conn, row.id, live=True))
    start = max(row.accounted_to, await call.server.database.now())
    left: int = call.query.get("count", 10)
    fires: list[dict[str, Any]] = []
    warned: list[str] = []
    for version, low, high in span_in_force(versions_of(stored), start, 1 << 62):
        spec = version.spec
        after, until = spec.span(low, high)
        found: list[Micros] = list(islice(spec.plan.fires(after, until), left)) if after < until else []
        said: list[str | None] = [None] * len(found)
        if isinstance(spec.plan, CronPlan) and found:
            said = notes(spec.plan, found)
            warned += warnings(spec.plan, after, found[-1])
        fires += [
            {"utc": to_rfc3339(at), "local": local_text(spec.zone, at), "note": note}
            for at, note in zip(found, said, strict=True)
        ]
        left -= len(found)
        if left <= 0:
            break
    return {"fires": fires, "warnings": warned}


def _summary(row: ScheduleRow) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "name": row.name,
        "state": row.state.value,
        "version": row.version,
        "revision": str(row.revision),
        "accounted_to": to_rfc3339(row.accounted_to),
        "unfinished": row.unfinished,
        "waiting": row.waiting,
        "created_at": to_rfc3339(row.created_at),
    }
    if row.due_at is not None:
        view["next_at"] = to_rfc3339(row.due_at)
    return view


def _version(row: VersionRow, *, values: bool) -> dict[str, Any]:
    spec = orjson.loads(row.spec)
    if not values:
        target = spec["target"]
        hidden = "parameters" if target["kind"] == "TASK" else "input"
        target[hidden] = {}
    return {
        "version": row.version,
        "effective_at": to_rfc3339(row.effective_at),
        "made_by": row.made_by,
        "made_at": to_rfc3339(row.made_at),
        "spec": spec,
    }


def _fire(row: FireRow) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "cause": row.cause.value,
        "state": row.state.value,
        "planned_at": to_rfc3339(row.planned_at),
        "version": row.version,
        "merged": row.merged,
        "target_kind": row.target_kind,
    }
    for name in ("target_id", "target_version", "reason", "note", "outcome"):
        if getattr(row, name) is not None:
            view[name] = getattr(row, name)
    for name in ("start_at", "first_at", "decided_at", "finished_at"):
        at = getattr(row, name)
        if at is not None:
            view[name] = to_rfc3339(at)
    return view


def _record(row: RecordRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "at": to_rfc3339(row.at),
        "version": row.version,
        "reason": row.reason,
        "first_at": to_rfc3339(row.first_at),
        "last_at": to_rfc3339(row.last_at),
        "count": row.count,
    }


_ONE = "/v1/schedules/{schedule_id}"
_MANAGE = "schedules:manage"
_READ = "schedules:read"


def _order(action: str, answer: Any, handler: Any, summary: str, body: Any) -> Route:
    return Route(
        "POST", f"{_ONE}/{action}", _MANAGE, answer, handler, summary, body=body, idempotency="required"
    )


ROUTES = (
    Route(
        "POST",
        "/v1/schedules",
        _MANAGE,
        ScheduleAnswer,
        schedules.create,
        "Make a schedule",
        body=CreateSchedule,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/schedules",
        _READ,
        Page[Schedule],
        _list,
        "List schedules, newest first",
        query=(
            *PAGING,
            one_of("state", (each.value for each in ScheduleState), "Only schedules in this state."),
        ),
    ),
    Route("GET", _ONE, _READ, ScheduleDetail, _get, "Read one schedule with the versions that count"),
    Route(
        "GET",
        f"{_ONE}/fires",
        _READ,
        Page[Fire],
        _fires,
        "List the occurrences of a schedule, latest planned first",
        query=(
            *PAGING,
            one_of("state", (each.value for each in FireState), "Only occurrences in this state."),
        ),
    ),
    Route(
        "GET",
        f"{_ONE}/records",
        _READ,
        Page[FireRecord],
        _records,
        "List the planned instants that did not run one by one, newest record first",
        query=PAGING,
    ),
    Route(
        "GET",
        f"{_ONE}/preview",
        _READ,
        SchedulePreview,
        _preview,
        "Show when a schedule fires next",
        query=(whole("count", 1, 100, "How many instants."),),
    ),
    _order("edit", ScheduleAnswer, schedules.edit, "Give a schedule a new version", EditSchedule),
    _order("pause", ScheduleAnswer, schedules.pause, "Pause a schedule: nothing new starts", ControlSchedule),
    _order(
        "resume", ScheduleAnswer, schedules.resume, "Resume a schedule at its next instant", ControlSchedule
    ),
    _order("trigger", TriggerAnswer, schedules.trigger, "Start one more occurrence now", TriggerSchedule),
    _order(
        "backfill",
        BackfillAnswer,
        schedules.backfill,
        "Run what was planned and did not run",
        BackfillSchedule,
    ),
)
