"""Reads of bulks: no locks, no decisions."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_server.bulk.lifecycle import BulkState, ItemState
from orbit_server.bulk.records import BulkRow, ItemRow, SpecRow
from orbit_server.bulk.rows import BULKS, ITEMS, SPECS
from orbit_server.storage.tables import bulk_items, bulks

__all__ = ["due", "get", "items", "next_due", "open_bulks", "page", "pending", "spec"]

_B, _I = bulks.c, bulk_items.c
_BULK = [_B[name] for name in BULKS.columns]
_ITEM = [_I[name] for name in ITEMS.columns]


def get(conn: Connection, namespace_id: Id, bulk_id: Id) -> BulkRow | None:
    """The hot row; None when there is none in this namespace, or it is being purged."""
    row = BULKS.load(conn, [bulk_id]).get(bulk_id)
    gone = row is None or row.namespace_id != namespace_id or row.state is BulkState.PURGING
    return None if gone else row


def spec(conn: Connection, bulk_id: Id) -> SpecRow:
    """What was asked."""
    found: SpecRow = SPECS.load(conn, [bulk_id])[bulk_id]
    return found


def page(
    conn: Connection,
    namespace_id: Id,
    actions: Iterable[str],
    state: str | None,
    before: Id | None,
    limit: int,
) -> list[BulkRow]:
    """Bulks of these kinds, newest first."""
    query = select(*_BULK).where(
        _B.namespace_id == namespace_id, _B.action.in_(sorted(actions)), _B.state != BulkState.PURGING.value
    )
    if state is not None:
        query = query.where(_B.state == state)
    if before is not None:
        query = query.where(_B.id < before)
    rows = conn.execute(query.order_by(_B.id.desc()).limit(limit))
    return BULKS.rows([tuple(row) for row in rows])


def items(  # filters, and where to go on
    conn: Connection,
    bulk_id: Id,
    states: Iterable[str] | None,
    after: int | None,
    limit: int,
    *,
    allowed: bool | None = None,
) -> list[ItemRow]:
    """Items in the order of the plan, which is the order in which they are done."""
    query = select(*_ITEM).where(_I.bulk_id == bulk_id)
    if states is not None:
        query = query.where(_I.state.in_(sorted(states)))
    if allowed is not None:
        query = query.where(_I.allowed == int(allowed))
    if after is not None:
        query = query.where(_I.number > after)
    rows = conn.execute(query.order_by(_I.number).limit(limit))
    return ITEMS.rows([tuple(row) for row in rows])


def pending(conn: Connection, bulk_id: Id, limit: int) -> list[ItemRow]:
    """The next items to be done."""
    return items(conn, bulk_id, [ItemState.PENDING.value], None, limit)


def due(conn: Connection, at: int, limit: int) -> list[BulkRow]:
    """Bulks that something has to be done about, the longest waiting first."""
    query = select(*_BULK).where(_B.due_at <= at).order_by(_B.due_at, _B.id).limit(limit)
    return BULKS.rows([tuple(row) for row in conn.execute(query)])


def next_due(conn: Connection, at: int) -> int | None:
    """When the next bulk is due after this instant."""
    query = select(_B.due_at).where(_B.due_at > at).order_by(_B.due_at).limit(1)
    return conn.execute(query).scalar()


def open_bulks(conn: Connection, namespace_id: Id) -> int:
    """How many bulks of a namespace have not ended."""
    query = select(func.count()).where(_B.namespace_id == namespace_id, _B.ended_at.is_(None))
    return int(conn.execute(query).scalar_one())
