"""The kinds of the rows of concurrency keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.keys.records import ClassRow, KeyRow, PlaceRow
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind
from orbit_server.storage.pipe import Pipe
from orbit_server.storage.row_sql import RowSql

_COLUMNS = ("id", "key_id", "admitted_at", "priority", "virtual_start")


class PlacesKind:
    """Places belong to their tasks: whoever writes one has touched the task. Rewriting one replaces it."""

    name = "key_places"
    order = int(LockOrder.LIMITS) + 3
    owner_kind: str | None = None

    def __init__(self) -> None:
        self._sql = RowSql("key_places", "id", _COLUMNS)

    def touch(self, conn: Connection, ids: Sequence[Id]) -> None:
        """Nothing of its own is locked."""

    def load(self, conn: Connection, ids: Sequence[Id]) -> Mapping[Id, PlaceRow]:
        """Places by task."""
        return {row[0]: PlaceRow(*row) for row in self._sql.select(conn, ids)}

    def ask(
        self,
        conn: Connection,
        pipe: Pipe,  # noqa: ARG002  # a kind's signature
        ids: Sequence[Id],
    ) -> Callable[[], Mapping[Id, Any]]:
        """Nothing is asked ahead: such rows are few and rare."""
        return lambda: self.load(conn, ids)

    def save(
        self, conn: Connection, inserted: Sequence[PlaceRow], changed: Sequence[tuple[PlaceRow, PlaceRow]]
    ) -> None:
        """Remove what stood there before, then insert what stands there now."""
        rows = [*inserted, *(after for _, after in changed)]
        self._sql.delete(conn, [row.id for row in rows])
        values: list[tuple[Any, ...]] = [
            (row.id, row.key_id, row.admitted_at, row.priority, row.virtual_start)
            for row in rows
            if row.key_id is not None
        ]
        if values:
            self._sql.insert(conn, values)

    def key_of(self, row: PlaceRow) -> Id:
        """The task."""
        return row.id

    def owner_of(self, row: PlaceRow) -> Id:  # noqa: ARG002  # a kind's signature
        """Places stand for themselves."""
        raise TypeError("places have no owner")

    def last_of(self, row: PlaceRow) -> int:  # noqa: ARG002  # a kind's signature
        """No instant of its own."""
        return 0

    def stamped(self, row: PlaceRow, at: int) -> PlaceRow:  # noqa: ARG002  # a kind's signature
        """The row itself."""
        return row


CLASSES: RowKind[ClassRow] = RowKind("key_classes", LockOrder.LIMITS + 1, tables.key_classes, ClassRow)
"""Read without a lock: a changed limit binds the decisions that read it."""
KEYS: RowKind[KeyRow] = RowKind(
    "concurrency_keys", LockOrder.LIMITS + 2, tables.concurrency_keys, KeyRow, touchable=True
)
PLACES = PlacesKind()
KINDS = (CLASSES, KEYS, PLACES)
