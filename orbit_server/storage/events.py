"""The event row: what happened, written in the transaction of the change it tells of."""

from __future__ import annotations

from orbit_sdk.values.ids import Id
from orbit_sdk.values.record import record
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


@record(frozen=True, slots=True)
class EventRow:
    """One fact in the past tense. `payload` is canonical JSON; subscriptions are fed from these rows."""

    id: Id
    namespace_id: Id
    workflow_id: Id | None
    task_id: Id | None
    aggregate_kind: str
    aggregate_id: Id
    aggregate_revision: int
    type: str
    state_scope: str | None
    state: str | None
    step_key: str | None
    signal_id: Id | None
    occurred_at: int
    payload: str
    fanned_out: bool = False


class EventsWritten:
    """Hint: there are events that nobody was told of yet."""


EVENTS_WRITTEN = EventsWritten()

EVENTS: RowKind[EventRow] = RowKind("events", LockOrder.RECORDS, tables.events, EventRow)
