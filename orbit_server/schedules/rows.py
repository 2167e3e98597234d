"""The rows of schedules: how the committer touches, loads and saves them.

A schedule owns its versions, its waiting fires and its records: whoever changes one of them touches it first.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.schedules.lifecycle import Cause, FireState, ScheduleState
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

__all__ = [
    "FIRES",
    "INBOX",
    "KINDS",
    "RECORDS",
    "SCHEDULES",
    "VERSIONS",
    "WAITING",
    "FireRow",
    "RecordRow",
    "ScheduleInboxRow",
    "ScheduleRow",
    "VersionRow",
    "version_id",
]


def version_id(schedule_id: Id, version: int) -> Id:
    """The row id of one version."""
    return derive_id("schedule version", schedule_id, str(version))


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """The hot row. Everything planned up to `accounted_to` is accounted for; `due_at` is when to look again.

    `unfinished` counts STARTED fires, `waiting` WAITING ones. What was planned up to `kept_from` is not kept
    any more.
    """

    id: Id
    namespace_id: Id
    name: str
    state: ScheduleState
    version: int
    revision: int
    accounted_to: int
    due_at: int | None
    unfinished: int
    waiting: int
    created_at: int
    last: int
    kept_from: int | None = None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version, written once; `live` until everything that it plans is accounted for.

    `priority_max` caps what it starts, as it caps the credential that made the version.
    """

    id: Id
    schedule_id: Id
    version: int
    effective_at: int
    live: bool
    spec: str
    made_by: str
    made_at: int
    priority_max: int | None = None


@dataclass(frozen=True, slots=True)
class FireRow:
    """One occurrence. `start_at` while WAITING: not before; None: when an earlier one has ended."""

    id: Id
    schedule_id: Id
    namespace_id: Id
    version: int
    cause: Cause
    state: FireState
    planned_at: int
    start_at: int | None
    first_at: int | None
    merged: int
    target_kind: str
    target_id: Id | None
    target_version: int | None
    reason: str | None
    note: str | None
    outcome: str | None
    decided_at: int | None
    finished_at: int | None
    last: int


@dataclass(frozen=True, slots=True)
class RecordRow:
    """Planned instants that did not run one by one."""

    id: Id
    schedule_id: Id
    namespace_id: Id
    at: int
    version: int
    reason: str
    first_at: int
    last_at: int
    count: int


@dataclass(frozen=True, slots=True)
class ScheduleInboxRow:
    """The target of a fire has ended. `state`: PENDING or APPLIED."""

    id: Id
    schedule_id: Id
    fire_id: Id
    state: str
    outcome: str
    created_at: int


SCHEDULES: RowKind[ScheduleRow] = RowKind(
    "schedules", LockOrder.SCHEDULES, tables.schedules, ScheduleRow, touchable=True
)
VERSIONS: RowKind[VersionRow] = RowKind(
    "schedule_versions",
    LockOrder.SCHEDULES + 1,
    tables.schedule_versions,
    VersionRow,
    owner="schedule_id",
    owner_kind="schedules",
    live="live = 1",
)
# Which fires wait is read by the owner; each is then named by its id to be changed.
WAITING: RowKind[FireRow] = RowKind(
    "schedule_waiting",
    LockOrder.SCHEDULES + 2,
    tables.schedule_fires,
    FireRow,
    owner="schedule_id",
    owner_kind="schedules",
    live="state = 'WAITING'",
)
FIRES: RowKind[FireRow] = RowKind("schedule_fires", LockOrder.SCHEDULES + 3, tables.schedule_fires, FireRow)
RECORDS: RowKind[RecordRow] = RowKind(
    "schedule_records", LockOrder.RECORDS, tables.schedule_records, RecordRow
)
INBOX: RowKind[ScheduleInboxRow] = RowKind(
    "schedule_inbox", LockOrder.INBOX, tables.schedule_inbox, ScheduleInboxRow
)

KINDS = (SCHEDULES, VERSIONS, WAITING, FIRES, RECORDS, INBOX)
