"""The rows of concurrency keys: classes with their limits, keys, and the places of tasks that are READY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.dialects import RowSql
from orbit_server.storage.kinds import LockOrder, RowKind

DEFAULT_CLASS = "default"
DEFAULT_MOST = 1
"""How many tasks of one key may be under way where nothing was said about its class."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    """How many tasks of each key of this class may be under way in one queue."""

    id: Id
    namespace_id: Id
    queue: str
    name: str
    running_max: int
    revision: int
    last: int


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. `held`: tasks that are admitted or run; `waiting`: READY tasks whose only cause is KEY.

    `admit_at` is set exactly while somebody waits: when the key has to be looked at again, because there is
    room, or because an admission may have to be taken back.
    """

    id: Id
    namespace_id: Id
    queue_id: Id
    class_id: Id
    name: str
    held: int
    waiting: int
    admit_at: int | None
    last: int


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A READY task with a key: it waits (`admitted_at` None), or is admitted and not claimed yet.

    `id` is the task's. A place without a key is given up: its row is removed.
    """

    id: Id
    key_id: Id | None
    admitted_at: int | None = None
    priority: int = 0
    virtual_start: int = 0


def class_of(key: str) -> str:
    """The class of a key: the part before the first colon."""
    name, colon, _ = key.partition(":")
    return name if colon and name else DEFAULT_CLASS


def class_id_of(namespace_id: Id, queue: str, name: str) -> Id:
    """The id of the row of a class in a queue, whether or not it exists."""
    return derive_id("class", namespace_id, queue, name)


def key_id_of(namespace_id: Id, queue: str, key: str) -> Id:
    """The id of a key's row, whether or not it exists."""
    return derive_id("key", namespace_id, queue, key)


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
