"""Kinds: what the committer must know of one sort of row. Three set-based things: touch, load, save.

`RowKind` is a kind derived from a table and a frozen dataclass whose fields are the columns; nearly every
domain needs no more than that. A kind of *members* (steps of an instance, attempts of a task) is read by
owner, after the owner was touched: every writer of a member touches its owner first, so that members need no
touch of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum, IntEnum
from operator import attrgetter
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sqlalchemy import Connection, Table

from orbit_sdk.values.ids import Id
from orbit_server.storage.pipe import Pipe
from orbit_server.storage.row_sql import RowSql

R = TypeVar("R")


class LockOrder(IntEnum):
    """The order in which every transaction takes its locks; insert-only kinds come last."""

    BULKS = 10
    SCHEDULES = 20
    SUBSCRIPTIONS = 25
    NAMESPACES = 26
    DEFINITIONS = 28
    INSTANCES = 30
    STEPS = 40
    SIGNALS = 50
    TASKS = 60
    ATTEMPTS = 70
    SESSIONS = 75
    QUEUES = 80
    LIMITS = 85
    COLD = 90
    INBOX = 92
    RECORDS = 95


class Kind(Protocol[R]):
    """One sort of row. The committer uses kinds in the order of (`order`, `name`) and knows none of them."""

    @property
    def name(self) -> str: ...
    @property
    def order(self) -> int: ...
    @property
    def owner_kind(self) -> str | None:
        """Name of the kind that owns these members; None when rows stand for themselves."""

    def touch(self, conn: Connection, ids: Sequence[Id], /) -> None:
        """Lock and certify the rows. A no-op where one process writes, for members and insert-only kinds."""

    def load(self, conn: Connection, ids: Sequence[Id]) -> Mapping[Id, Any]:
        """Id -> row; for members owner id -> tuple of rows. Absent rows are absent."""
        ...

    def ask(self, conn: Connection, pipe: Pipe, ids: Sequence[Id]) -> Callable[[], Mapping[Id, Any]]:
        """As `load`, in two parts: what is answered gives the rows once the pipe was flushed."""
        ...

    def save(self, conn: Connection, inserted: Sequence[R], changed: Sequence[tuple[R, R]]) -> None:
        """Write new rows, and of changed ones (before, after) the changed columns, by primary key."""

    def key_of(self, row: R, /) -> Id: ...
    def owner_of(self, row: R, /) -> Id:
        """Id of the owner (members only)."""
        ...

    def last_of(self, row: R, /) -> int:
        """The row's latest instant; 0 where the table keeps none."""
        ...

    def stamped(self, row: R, at: int, /) -> R:
        """The row with `last` = at (the row itself where the table keeps none)."""
        ...


class RowKind(Generic[R]):
    """A kind derived from a table and a frozen dataclass: field names are column names.

    Columns that are not fields must have a server default. Fields of type bool and of an Enum (or None) are
    turned back from what the database gives.

    Args:
        name: the kind's name in needs and in the book.
        order: place in the lock order.
        table: the declared table.
        row: the frozen dataclass.
        key: the primary key column.
        owner, owner_kind: for members, the column that holds the owner's id and the owner's kind.
        live: for members, a fixed SQL condition; only rows where it holds are loaded.
        touchable: rows are touched (the table has `lock_seq`) before they are read.
    """

    def __init__(  # noqa: PLR0913  # a declaration, read by name
        self,
        name: str,
        order: int,
        table: Table,
        row: type[R],
        *,
        key: str = "id",
        owner: str | None = None,
        owner_kind: str | None = None,
        live: str | None = None,
        touchable: bool = False,
    ) -> None:
        if (owner is None) != (owner_kind is None):
            raise ValueError(f"kind {name}: owner and owner_kind come together")
        self.name = name
        self.order = int(order)
        self.table = table
        self.row = row
        self.owner_kind = owner_kind
        self._touchable = touchable
        self.columns: tuple[str, ...] = tuple(field.name for field in fields(cast(Any, row)))
        unknown = set(self.columns) - set(table.columns.keys())
        if unknown:
            raise ValueError(f"kind {name}: no such columns in {table.name}: {sorted(unknown)}")
        self._key = key
        self.key_of: Callable[[R], Id] = attrgetter(key)
        self.owner_of: Callable[[R], Id] = attrgetter(owner) if owner else _no_owner
        self._values = cast("Callable[[R], tuple[Any, ...]]", attrgetter(*self.columns))
        self._build = _builder(row, self.columns)
        self._last = self.columns.index("last") if "last" in self.columns else None
        self._sql = RowSql(table.name, key, self.columns, owner=owner, live=live)

    def touch(self, conn: Connection, ids: Sequence[Id]) -> None:
        if self._touchable:
            self._sql.touch(conn, ids)

    def load(self, conn: Connection, ids: Sequence[Id]) -> Mapping[Id, Any]:
        return self._mapped(self._sql.select(conn, ids))

    def ask(self, conn: Connection, pipe: Pipe, ids: Sequence[Id]) -> Callable[[], Mapping[Id, Any]]:
        replies = self._sql.ask(pipe, conn, ids)
        return lambda: self._mapped([row for reply in replies for row in reply.rows])

    def _mapped(self, found: Sequence[Sequence[Any]]) -> Mapping[Id, Any]:
        rows = self._build(found)
        if self.owner_kind is None:
            key_of = self.key_of
            return {key_of(row): row for row in rows}
        owner_of = self.owner_of
        by_owner: dict[Id, list[R]] = {}
        for row in rows:
            by_owner.setdefault(owner_of(row), []).append(row)
        return {owner: tuple(members) for owner, members in by_owner.items()}

    def rows(self, found: Sequence[Sequence[Any]]) -> list[R]:
        """Rows from database tuples in the order of `columns`, for read functions."""
        return self._build(found)

    def save(self, conn: Connection, inserted: Sequence[R], changed: Sequence[tuple[R, R]]) -> None:
        values = self._values
        if changed:
            self._sql.update(conn, [(values(before), values(after)) for before, after in changed])
        if inserted:
            self._sql.insert(conn, [values(row) for row in inserted])

    def last_of(self, row: R) -> int:
        return cast(int, cast(Any, row).last) if self._last is not None else 0

    def stamped(self, row: R, at: int) -> R:
        if self._last is None:
            return row
        values = list(self._values(row))
        values[self._last] = at
        return self.row(*values)


def _no_owner(_row: object) -> Id:
    raise TypeError("rows of this kind have no owner")


def _builder(row: type[R], columns: Sequence[str]) -> Callable[[Sequence[Sequence[Any]]], list[R]]:
    """How rows are made of database tuples: the few columns that need it are converted, the rest passes."""
    hints = get_type_hints(row)
    convert = [
        (index, conversion)
        for index, column in enumerate(columns)
        if (conversion := _conversion(hints[column])) is not None
    ]
    if not convert:
        return lambda found: [row(*values) for values in found]

    def build(found: Sequence[Sequence[Any]]) -> list[R]:
        rows = []
        for values in found:
            own = list(values)
            for index, conversion in convert:
                if own[index] is not None:
                    own[index] = conversion(own[index])
            rows.append(row(*own))
        return rows

    return build


def _conversion(hint: Any) -> Callable[[Any], Any] | None:
    if get_origin(hint) in (Union, UnionType):
        return next((found for part in get_args(hint) if (found := _conversion(part)) is not None), None)
    if hint is bool:
        return bool
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {member.value: member for member in hint}.__getitem__
    return None
