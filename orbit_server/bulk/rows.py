"""How bulks are touched, loaded and saved. Whoever changes an item, or adds one, touches its bulk first."""

from __future__ import annotations

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.bulk.records import BulkRow, ItemRow, RestartRow, SpecRow
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

__all__ = ["BULKS", "ITEMS", "KINDS", "RESTARTS", "SPECS", "item_id", "restart_id"]


def item_id(bulk_id: Id, subject_id: Id, step_key: str | None) -> Id:
    """One thing is an item of a bulk at most once."""
    return derive_id("bulk item", bulk_id, subject_id, step_key or "")


def restart_id(origin_id: Id) -> Id:
    """One workflow is restarted by bulks at most once."""
    return derive_id("bulk restart", origin_id)


BULKS: RowKind[BulkRow] = RowKind("bulks", LockOrder.BULKS, tables.bulks, BulkRow, touchable=True)
ITEMS: RowKind[ItemRow] = RowKind("bulk_items", LockOrder.BULKS + 1, tables.bulk_items, ItemRow)
SPECS: RowKind[SpecRow] = RowKind("bulk_specs", LockOrder.COLD, tables.bulk_specs, SpecRow)
# Read and written under the touch of the workflow that was restarted.
RESTARTS: RowKind[RestartRow] = RowKind("bulk_restarts", LockOrder.COLD, tables.bulk_restarts, RestartRow)

KINDS = (BULKS, ITEMS, SPECS, RESTARTS)
