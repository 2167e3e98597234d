"""Schedules: make, edit, pause, resume, trigger, backfill."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, cast

from orbit_sdk.errors import InvalidArgument, NotFound, PermissionDenied
from orbit_sdk.protocol.common import micros_of
from orbit_sdk.protocol.schedules import (
    BackfillSchedule,
    ControlSchedule,
    CreateSchedule,
    EditSchedule,
    ScheduleSpec,
    TaskTarget,
)
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.schedules import commands, queries
from orbit_server.schedules.decide import span_in_force
from orbit_server.schedules.specs import accepted_spec
from orbit_server.schedules.targets import Means
from orbit_server.schedules.turn import versions_of
from orbit_server.storage.commands import Command
from orbit_server.weave.service import send

__all__ = ["backfill", "create", "edit", "pause", "resume", "trigger"]

BACKFILL_MAX: Final = 1_000


async def create(call: Call) -> Any:
    """The route of creation."""
    body: CreateSchedule = call.body
    _require_target(call, body)
    now = await call.server.database.now()
    spec = accepted_spec(body, now)
    _fits(call, spec)
    by = _by(call, "create", call.seed().nth(0), _meaning(body), None)
    return await _send(call, commands.CreateSchedule(by, body.name, spec, body.paused))


async def edit(call: Call) -> Any:
    """The route of a new version."""
    body: EditSchedule = call.body
    _require_target(call, body)
    now = await call.server.database.now()
    effective = None if body.effective_at is None else micros_of(body.effective_at)
    spec = accepted_spec(body, now if effective is None else effective)
    _fits(call, spec)
    by = _by(call, "edit", call.path["schedule_id"], _meaning(body), body.reason)
    return await _send(call, commands.EditSchedule(by, spec, body.expected_version, effective))


async def pause(call: Call) -> Any:
    """The route of pausing."""
    return await _control(call, "pause")


async def resume(call: Call) -> Any:
    """The route of resuming."""
    return await _control(call, "resume")


async def trigger(call: Call) -> Any:
    """The route of one more occurrence."""
    by = _by(call, "trigger", call.path["schedule_id"], _meaning(call.body), call.body.reason)
    return await _send(call, commands.TriggerSchedule(by))


async def backfill(call: Call) -> Any:
    """The route of running what did not run."""
    body: BackfillSchedule = call.body
    schedule_id = call.path["schedule_id"]
    start, end = micros_of(body.start_at), micros_of(body.end_at)
    if end <= start:
        raise InvalidArgument.at("end_at", "must be later than start_at")
    rows = await call.server.database.read(
        lambda conn: (
            queries.versions(conn, schedule_id, live=False)
            if queries.get(conn, call.namespace_id, schedule_id)
            else []
        )
    )
    if not rows:
        raise NotFound("no such schedule")
    # What was planned before there was a schedule is what its first version would have planned.
    versions = versions_of(rows)
    first = versions[0]
    versions[0] = type(first)(first.version, min(first.effective_at, start), first.spec)
    instants = tuple(
        at
        for version, low, high in span_in_force(versions, start - 1, end - 1)
        for at in islice(version.spec.plan.fires(*version.spec.span(low, high)), BACKFILL_MAX + 1)
    )
    if len(instants) > BACKFILL_MAX:
        raise InvalidArgument.at("end_at", f"takes in more than {BACKFILL_MAX} planned instants at once")
    by = _by(call, "backfill", schedule_id, _meaning(body), body.reason)
    return await _send(call, commands.BackfillSchedule(by, instants, body.per_minute, body.dry_run))


async def _control(call: Call, action: str) -> Any:
    body: ControlSchedule = call.body
    by = _by(call, action, call.path["schedule_id"], _meaning(body), body.reason)
    return await _send(call, commands.ControlSchedule(by, action == "pause"))


def _meaning(body: Any) -> Json:
    return cast("Json", body.model_dump(mode="json"))


def _by(call: Call, action: str, schedule_id: str, meaning: Json, reason: str | None) -> commands.Ordered:
    subject: Json = None if action == "create" else schedule_id
    return commands.Ordered(
        key=call.command_key(f"schedule.{action}", {"body": meaning, "schedule_id": subject}),
        schedule_id=schedule_id,
        namespace_id=call.namespace_id,
        actor=call.principal.actor,
        reason=reason,
        seed=call.seed(),
        means=Means(call.server.weave, call.server.limits.of_backlog),
        priority_max=call.principal.priority_max,
        on_behalf_of=None if action == "create" else call.on_behalf_of,
    )


async def _send(call: Call, command: Command[Any]) -> Any:
    return await send(call.server.database, call.server.weave, command)


def _require_target(call: Call, spec: ScheduleSpec) -> None:
    """Who makes a schedule could start its target by hand. Raises PermissionDenied."""
    if isinstance(spec.target, TaskTarget):
        call.principal.require("tasks:submit")
        call.principal.require_submit(spec.target.queue)
        call.principal.require_priority(spec.target.priority)
    elif not call.principal.allows("workflows:start"):
        raise PermissionDenied("this credential lacks the permission workflows:start")


def _fits(call: Call, spec: str) -> None:
    most = call.server.settings.limits.input_bytes
    if len(spec.encode()) > most:
        raise InvalidArgument.at("target", f"makes the schedule longer than {most} bytes")
