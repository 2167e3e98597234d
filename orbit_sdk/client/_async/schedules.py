"""Schedules: make, edit, control, look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_same
from orbit_sdk.client.wire import Call, new_key
from orbit_sdk.protocol.common import micros_of
from orbit_sdk.protocol.schedules import (
    BackfillAnswer,
    Fire,
    FireRecord,
    Schedule,
    ScheduleAnswer,
    ScheduleDetail,
    SchedulePreview,
    TriggerAnswer,
)
from orbit_sdk.values.instants import to_rfc3339


class AsyncSchedules:
    """`client.schedules`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        spec: Mapping[str, Any],
        *,
        paused: bool = False,
        idempotency_key: str | None = None,
    ) -> ScheduleAnswer:
        """Make a schedule; `spec` has the fields of `protocol.schedules.ScheduleSpec`."""
        body = {**spec, "name": name, "paused": paused}
        call = Call("POST", "/v1/schedules", body=body, key=idempotency_key or new_key())
        return parse(ScheduleAnswer, await self._transport.call(call))

    async def edit(
        self,
        schedule_id: str,
        spec: Mapping[str, Any],
        *,
        expected_version: int,
        reason: str,
        effective_at: datetime | None = None,
        operation_id: str | None = None,
    ) -> ScheduleAnswer:
        """Give it a new version, in force from `effective_at` on (now by default)."""
        body: dict[str, Any] = {**spec, "expected_version": expected_version, "reason": reason}
        if effective_at is not None:
            body["effective_at"] = to_rfc3339(micros_of(effective_at))
        return parse(ScheduleAnswer, await self._order(schedule_id, "edit", body, operation_id))

    async def get(self, schedule_id: str) -> ScheduleDetail:
        """One schedule with the versions that count now or later."""
        found = parse(ScheduleDetail, await self._transport.call(Call("GET", f"/v1/schedules/{schedule_id}")))
        check_same(found.id, schedule_id, "schedule")
        return found

    def list(self, *, state: str | None = None) -> AsyncIterator[Schedule]:
        """Schedules, newest first."""
        return each(self._transport, "/v1/schedules", Schedule, {"state": state})

    def fires(self, schedule_id: str, *, state: str | None = None) -> AsyncIterator[Fire]:
        """Its occurrences, latest planned first."""
        return each(self._transport, f"/v1/schedules/{schedule_id}/fires", Fire, {"state": state})

    def records(self, schedule_id: str) -> AsyncIterator[FireRecord]:
        """What did not run one by one, and why, newest record first."""
        return each(self._transport, f"/v1/schedules/{schedule_id}/records", FireRecord, {})

    async def preview(self, schedule_id: str, *, count: int = 10) -> SchedulePreview:
        """When it fires next, with what is unusual near changes of the clock."""
        call = Call("GET", f"/v1/schedules/{schedule_id}/preview", params={"count": count})
        return parse(SchedulePreview, await self._transport.call(call))

    async def pause(
        self, schedule_id: str, *, reason: str, operation_id: str | None = None
    ) -> ScheduleAnswer:
        """Start nothing new; what is planned in the meantime is recorded, not made up for."""
        data = await self._order(schedule_id, "pause", {"reason": reason}, operation_id)
        return parse(ScheduleAnswer, data)

    async def resume(
        self, schedule_id: str, *, reason: str, operation_id: str | None = None
    ) -> ScheduleAnswer:
        """Go on with the next planned instant."""
        data = await self._order(schedule_id, "resume", {"reason": reason}, operation_id)
        return parse(ScheduleAnswer, data)

    async def trigger(
        self, schedule_id: str, *, reason: str, operation_id: str | None = None
    ) -> TriggerAnswer:
        """One more occurrence, now."""
        data = await self._order(schedule_id, "trigger", {"reason": reason}, operation_id)
        return parse(TriggerAnswer, data)

    async def backfill(  # noqa: PLR0913  # one keyword per thing a backfill may say
        self,
        schedule_id: str,
        start_at: datetime,
        end_at: datetime,
        *,
        reason: str,
        per_minute: int = 60,
        dry_run: bool = False,
        operation_id: str | None = None,
    ) -> BackfillAnswer:
        """Run what was planned in [start_at, end_at) and has not run."""
        body = {
            "start_at": to_rfc3339(micros_of(start_at)),
            "end_at": to_rfc3339(micros_of(end_at)),
            "per_minute": per_minute,
            "dry_run": dry_run,
            "reason": reason,
        }
        return parse(BackfillAnswer, await self._order(schedule_id, "backfill", body, operation_id))

    async def _order(
        self, schedule_id: str, action: str, body: Mapping[str, Any], operation_id: str | None
    ) -> Any:
        path = f"/v1/schedules/{schedule_id}/{action}"
        return await self._transport.call(Call("POST", path, body=dict(body), key=operation_id or new_key()))
