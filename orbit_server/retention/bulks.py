"""Bulks that were kept long enough: their items in bites, then their rows, and the keys of their requests."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.bulk.lifecycle import BulkState
from orbit_server.retention.rows import end_keys, remove
from orbit_server.storage.tables import bulk_items, bulk_restarts, bulk_specs, bulks

BITE: Final = 500
"""Items of one transaction."""


def purge_bulk(conn: Connection, bulk_id: Id, now: int) -> int:
    """One bite of a bulk that is marked PURGING. Answers how many rows went; 0 when nothing is left."""
    state = conn.execute(select(bulks.c.state).where(bulks.c.id == bulk_id)).scalar()
    if state != BulkState.PURGING:
        return 0
    found = select(bulk_items.c.id).where(bulk_items.c.bulk_id == bulk_id).limit(BITE)
    ids = [row_id for (row_id,) in conn.execute(found)]
    if ids:
        return remove(conn, bulk_items.c.id, ids)
    end_keys(conn, [bulk_id], now)
    columns = (bulk_restarts.c.bulk_id, bulk_specs.c.id, bulks.c.id)
    return sum(remove(conn, column, [bulk_id]) for column in columns)
