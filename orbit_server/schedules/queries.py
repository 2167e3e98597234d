"""Reads of schedules: no locks, no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.schedules.rows import (
    FIRES,
    RECORDS,
    SCHEDULES,
    VERSIONS,
    FireRow,
    RecordRow,
    ScheduleRow,
    VersionRow,
)
from orbit_server.storage.tables import schedule_fires, schedule_records, schedule_versions, schedules

__all__ = ["fires", "get", "page", "records", "versions"]


def _columns(table: Any, names: Sequence[str]) -> list[Any]:
    return [table.c[name] for name in names]


def get(conn: Connection, namespace_id: Id, schedule_id: Id) -> ScheduleRow | None:
    """The hot row, or None when there is none in this namespace."""
    query = select(*_columns(schedules, SCHEDULES.columns)).where(schedules.c.id == schedule_id)
    rows = SCHEDULES.rows([tuple(row) for row in conn.execute(query)])
    return rows[0] if rows and rows[0].namespace_id == namespace_id else None


def versions(conn: Connection, schedule_id: Id, *, live: bool) -> list[VersionRow]:
    """The versions, oldest first; `live`: only those in force now or later."""
    table = schedule_versions.c
    query = select(*_columns(schedule_versions, VERSIONS.columns)).where(table.schedule_id == schedule_id)
    if live:
        query = query.where(table.live == 1)
    return VERSIONS.rows([tuple(row) for row in conn.execute(query.order_by(table.version))])


def page(
    conn: Connection, namespace_id: Id, state: str | None, before: Id | None, take: int
) -> list[ScheduleRow]:
    """Schedules, newest first."""
    table = schedules.c
    query = select(*_columns(schedules, SCHEDULES.columns)).where(table.namespace_id == namespace_id)
    if state is not None:
        query = query.where(table.state == state)
    if before is not None:
        query = query.where(table.id < before)
    rows = conn.execute(query.order_by(table.id.desc()).limit(take))
    return SCHEDULES.rows([tuple(row) for row in rows])


def fires(
    conn: Connection, schedule_id: Id, state: str | None, before: tuple[int, Id] | None, take: int
) -> list[FireRow]:
    """Occurrences, latest planned first."""
    table = schedule_fires.c
    query = select(*_columns(schedule_fires, FIRES.columns)).where(table.schedule_id == schedule_id)
    if state is not None:
        query = query.where(table.state == state)
    if before is not None:
        at, row_id = before
        query = query.where(table.planned_at <= at, (table.planned_at < at) | (table.id < row_id))
    rows = conn.execute(query.order_by(table.planned_at.desc(), table.id.desc()).limit(take))
    return FIRES.rows([tuple(row) for row in rows])


def records(conn: Connection, schedule_id: Id, before: tuple[int, Id] | None, take: int) -> list[RecordRow]:
    """What did not run one by one, newest record first."""
    table = schedule_records.c
    query = select(*_columns(schedule_records, RECORDS.columns)).where(table.schedule_id == schedule_id)
    if before is not None:
        at, row_id = before
        query = query.where(table.at <= at, (table.at < at) | (table.id < row_id))
    rows = conn.execute(query.order_by(table.at.desc(), table.id.desc()).limit(take))
    return RECORDS.rows([tuple(row) for row in rows])
