"""Reads of the signals of an instance."""

from __future__ import annotations

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.places import Place, below
from orbit_server.storage.tables import signals
from orbit_server.weave.state.signals import BODIES, SIGNALS_BY_ID, SignalBodyRow, SignalRow

_ROW = [signals.c[name] for name in SIGNALS_BY_ID.columns]


def get(conn: Connection, instance_id: Id, signal_id: Id) -> SignalRow | None:
    """One signal of this instance."""
    query = select(*_ROW).where(signals.c.id == signal_id, signals.c.instance_id == instance_id)
    rows = SIGNALS_BY_ID.rows([tuple(row) for row in conn.execute(query)])
    return rows[0] if rows else None


def body(conn: Connection, signal_id: Id) -> SignalBodyRow | None:
    """What was sent with a signal."""
    return BODIES.load(conn, [signal_id]).get(signal_id)


def page(
    conn: Connection, instance_id: Id, state: str | None, before: Place | None, limit: int
) -> list[SignalRow]:
    """Newest first by (accepted_at, id); `before` is the last one seen."""
    c = signals.c
    query = select(*_ROW).where(c.instance_id == instance_id)
    if state is not None:
        query = query.where(c.state == state)
    if before is not None:
        query = query.where(below(c.accepted_at, c.id, before))
    query = query.order_by(c.accepted_at.desc(), c.id.desc()).limit(limit)
    return SIGNALS_BY_ID.rows([tuple(row) for row in conn.execute(query)])
