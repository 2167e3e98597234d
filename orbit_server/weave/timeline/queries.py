"""The event timeline of one instance: what was stored when its state changed.

Every row is checked before it is shown: it must belong to the instance, be of a known type, and its scope
must be the one of that type. A damaged row is an error (UNAVAILABLE), never an empty page.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from sqlalchemy import Connection, select

from orbit_sdk.engine.refs import step_id
from orbit_sdk.errors import Unavailable
from orbit_sdk.protocol.timeline import EVENT_SHAPES
from orbit_sdk.values.ids import Id, is_id
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_server.storage.places import Place, below
from orbit_server.storage.tables import events, signals, steps


@dataclass(frozen=True, slots=True)
class EventView:
    """One event; `payload` is canonical JSON, loaded for details only."""

    id: Id
    workflow_id: Id
    aggregate_kind: str
    aggregate_id: Id
    aggregate_revision: int
    type: str
    state_scope: str
    state: str
    step_key: str | None
    signal_id: Id | None
    occurred_at: int
    payload: str | None = None


_SUMMARY = [
    events.c[name]
    for name in (
        "id",
        "workflow_id",
        "aggregate_kind",
        "aggregate_id",
        "aggregate_revision",
        "type",
        "state_scope",
        "state",
        "step_key",
        "signal_id",
        "occurred_at",
    )
]


def page(
    conn: Connection, namespace_id: Id, instance_id: Id, before: Place | None, limit: int
) -> list[EventView]:
    """Newest first by (occurred_at, id); `before` is the last one seen. Raises Unavailable for a damaged
    row.
    """
    c = events.c
    query = select(*_SUMMARY).where(c.namespace_id == namespace_id, c.workflow_id == instance_id)
    if before is not None:
        query = query.where(below(c.occurred_at, c.id, before))
    query = query.order_by(c.occurred_at.desc(), c.id.desc()).limit(limit)
    return _checked(conn, instance_id, [EventView(*row) for row in conn.execute(query)])


def get(conn: Connection, namespace_id: Id, instance_id: Id, event_id: Id) -> EventView | None:
    """One event of this instance with its payload. Raises Unavailable for a damaged row."""
    c = events.c
    query = select(*_SUMMARY, c.payload).where(
        c.id == event_id, c.namespace_id == namespace_id, c.workflow_id == instance_id
    )
    row = conn.execute(query).first()
    if row is None:
        return None
    view = EventView(*row)
    if view.payload is None or len(view.payload.encode()) > DEFAULT_LIMITS.event_payload_bytes:
        raise Unavailable(f"the stored event {event_id} is damaged: its payload is absent or too large")
    _check_activation(conn, instance_id, event_id, view.payload)
    return _checked(conn, instance_id, [view])[0]


def _check_activation(conn: Connection, instance_id: Id, event_id: Id, payload: str) -> None:
    """The activation that an event names must be of this instance. What is no object is refused later."""
    try:
        said = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return
    named = said.get("activation_id") if isinstance(said, dict) else None
    if named is None:
        return
    s = steps.c
    own = conn.execute(select(s.id).where(s.id == str(named), s.instance_id == instance_id)).first()
    if own is None:
        raise Unavailable(f"the stored event {event_id} names an activation that is not of its workflow")


def _checked(conn: Connection, instance_id: Id, views: list[EventView]) -> list[EventView]:
    for view in views:
        _check_row(view, instance_id)
    named = {view.signal_id or view.aggregate_id for view in views if view.state_scope == "SIGNAL"}
    if named:
        s = signals.c
        owned = set(
            conn.execute(select(s.id).where(s.id.in_(sorted(named)), s.instance_id == instance_id)).scalars()
        )
        if named - owned:
            raise Unavailable(f"a stored event of workflow {instance_id} names a signal that is not its own")
    return views


def _check_row(view: EventView, instance_id: Id) -> None:
    shape = EVENT_SHAPES.get(view.type)
    if shape is None:
        raise Unavailable(f"the stored event {view.id} has the unknown type {view.type!r}")
    kind, scope, states = shape
    sound = (
        (view.aggregate_kind, view.state_scope) == (kind, scope)
        and view.state in states
        and is_id(view.aggregate_id)
        and view.aggregate_revision >= 1
    )
    if kind == "workflow":
        sound = sound and view.aggregate_id == instance_id
    elif kind == "workflow_step":
        sound = (
            sound and view.step_key is not None and view.aggregate_id == step_id(instance_id, view.step_key)
        )
    if not sound:
        raise Unavailable(f"the stored event {view.id} is damaged")
