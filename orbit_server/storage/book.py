"""The book: the identity map of one transaction, on which every command of a group decides in turn.

Reading a row that this transaction has not loaded raises `MissingRow`, which the committer turns into
`Missing`: nothing is ever decided on a row that was not touched. Every write is journalled, so that a
refused, missing or failing decision leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, overload

from orbit_sdk.values.ids import Id
from orbit_server.storage.events import EVENTS_WRITTEN, EventRow
from orbit_server.storage.kinds import Kind
from orbit_server.storage.needs import Needs

R = TypeVar("R")


class MissingRow(LookupError):
    """A decision asked for a row that this transaction has not loaded."""

    def __init__(self, kind: str, row_id: Id) -> None:
        super().__init__(f"{kind} {row_id} is not loaded in this transaction")
        self.needs: Needs = {kind: (row_id,)}


class BookError(Exception):
    """A decision used the book wrongly (a bug): a stale row, a row twice, a member without its owner."""


class _Unknown:
    """Marks a row of which this transaction knows nothing."""


_UNKNOWN = _Unknown()


class _Shelf(Generic[R]):
    """The rows of one kind."""

    __slots__ = ("before", "fresh", "kind", "loaded", "owners", "rows", "stamps")

    def __init__(self, kind: Kind[R]) -> None:
        self.kind = kind
        self.rows: dict[Id, R | None] = {}
        self.owners: dict[Id, dict[Id, R]] = {}
        self.loaded: set[Id] = set()
        self.before: dict[Id, R] = {}
        self.fresh: dict[Id, None] = {}
        self.stamps: dict[Id, int] = {}

    def place(self, row_id: Id, row: R) -> None:
        self.rows[row_id] = row
        if self.kind.owner_kind is not None:
            self.owners.setdefault(self.kind.owner_of(row), {})[row_id] = row

    def withdraw(self, row_id: Id, row: R, previous: R | _Unknown | None) -> None:
        if isinstance(previous, _Unknown):
            del self.rows[row_id]
        else:
            self.rows[row_id] = previous
        if self.kind.owner_kind is not None:
            self.owners[self.kind.owner_of(row)].pop(row_id)


def _stamped(kind: Kind[R], row: R, at: int) -> R:
    """The row with `last` written back; time never goes back behind it."""
    return kind.stamped(row, at) if kind.last_of(row) < at else row


class Book:
    """The rows of one transaction. `now` is the instant of the command that decides (UTC microseconds)."""

    def __init__(self, kinds: Mapping[str, Kind[Any]], now: int = 0) -> None:
        self.now = now
        self.hints: list[object] = []
        self._shelves: dict[str, _Shelf[Any]] = {name: _Shelf(kind) for name, kind in kinds.items()}
        self._journal: list[tuple[_Shelf[Any], Id, Any, bool, int]] = []

    # --- what decisions use ---

    @overload
    def get(self, kind: Kind[R], row_id: Id) -> R | None: ...
    @overload
    def get(self, kind: str, row_id: Id) -> Any: ...
    def get(self, kind: Kind[Any] | str, row_id: Id) -> Any:
        """The row as it stands now, or None when there is none.

        Raises:
            MissingRow: not loaded in this transaction.
            BookError: a member whose owner was not asked for (use `members` or `member`).
        """
        shelf = self._shelf(kind)
        row = shelf.rows.get(row_id, _UNKNOWN)
        if isinstance(row, _Unknown):
            if shelf.kind.owner_kind is not None:
                raise BookError(f"{shelf.kind.name} are known by their owner; no loaded owner has {row_id}")
            raise MissingRow(shelf.kind.name, row_id)
        return row

    @overload
    def members(self, kind: Kind[R], owner_id: Id) -> tuple[R, ...]: ...
    @overload
    def members(self, kind: str, owner_id: Id) -> tuple[Any, ...]: ...
    def members(self, kind: Kind[Any] | str, owner_id: Id) -> tuple[Any, ...]:
        """All rows of the owner as they stand now, inserted ones included; MissingRow when not loaded."""
        return tuple(self._owned(self._shelf(kind), owner_id).values())

    @overload
    def member(self, kind: Kind[R], owner_id: Id, row_id: Id) -> R | None: ...
    @overload
    def member(self, kind: str, owner_id: Id, row_id: Id) -> Any: ...
    def member(self, kind: Kind[Any] | str, owner_id: Id, row_id: Id) -> Any:
        """One row of the owner, or None when the owner has none of that id; MissingRow when not loaded."""
        return self._owned(self._shelf(kind), owner_id).get(row_id)

    @overload
    def insert(self, kind: Kind[R], row: R) -> R: ...
    @overload
    def insert(self, kind: str, row: R) -> R: ...
    def insert(self, kind: Kind[Any] | str, row: Any) -> Any:
        """Add a new row. A member is added only to an owner that this transaction holds."""
        shelf = self._shelf(kind)
        row_id = shelf.kind.key_of(row)
        previous = shelf.rows.get(row_id, _UNKNOWN)
        if previous is not None and not isinstance(previous, _Unknown):
            raise BookError(f"{shelf.kind.name} {row_id} is already there")
        owner_kind = shelf.kind.owner_kind
        if owner_kind is not None and owner_kind in self._shelves:
            owner_id = shelf.kind.owner_of(row)
            if self._shelves[owner_kind].rows.get(owner_id, _UNKNOWN) is _UNKNOWN:
                raise MissingRow(owner_kind, owner_id)
        shelf.place(row_id, row)
        shelf.fresh[row_id] = None
        shelf.stamps[row_id] = self.now
        self._journal.append((shelf, row_id, previous, True, 0))
        return row

    @overload
    def change(self, kind: Kind[R], before: R, after: R) -> R: ...
    @overload
    def change(self, kind: str, before: R, after: R) -> R: ...
    def change(self, kind: Kind[Any] | str, before: Any, after: Any) -> Any:
        """Replace a row by its next state. `before` must be the row as the book has it now.

        `last` needs no care: it is written back on every row that is new or changed.
        """
        shelf = self._shelf(kind)
        row_id = shelf.kind.key_of(after)
        if shelf.rows.get(row_id, _UNKNOWN) is not before:
            raise BookError(f"{shelf.kind.name} {row_id} has changed since it was read")
        first = row_id not in shelf.fresh and row_id not in shelf.before
        if first:
            shelf.before[row_id] = before
        stamp = shelf.stamps.get(row_id, 0)
        shelf.place(row_id, after)
        shelf.stamps[row_id] = max(stamp, self.now)
        self._journal.append((shelf, row_id, before, False, -1 if first else stamp))
        return after

    def known(self, kind: Kind[R]) -> list[R]:
        """Every row of this kind that the transaction holds, as they stand now."""
        return [row for row in self._shelf(kind).rows.values() if row is not None]

    def emit(self, event: EventRow) -> None:
        """Record what happened; written with the change."""
        self.insert("events", event)
        if not self.hints or self.hints[-1] is not EVENTS_WRITTEN:
            self.hints.append(EVENTS_WRITTEN)

    def after_commit(self, hint: object) -> None:
        """Leave a hint that wakes loops after the commit. Hints save waiting, they never carry work."""
        self.hints.append(hint)

    # --- what the committer uses ---

    def missing(self, kind: str, ids: Sequence[Id]) -> list[Id]:
        """Those of the ids that are not loaded yet."""
        shelf = self._shelf(kind)
        known: Container[Id] = shelf.rows if shelf.kind.owner_kind is None else shelf.loaded
        return [row_id for row_id in ids if row_id not in known]

    def put(self, kind: str, ids: Sequence[Id], found: Mapping[Id, Any]) -> None:
        """Take in what was loaded for these ids; ids without a row are known to be absent."""
        shelf = self._shelf(kind)
        if shelf.kind.owner_kind is None:
            for row_id in ids:
                shelf.rows[row_id] = found.get(row_id)
            return
        key_of = shelf.kind.key_of
        for owner_id in ids:
            members = {key_of(row): row for row in cast("tuple[Any, ...]", found.get(owner_id, ()))}
            shelf.owners[owner_id] = members
            shelf.loaded.add(owner_id)
            shelf.rows.update(members)

    def latest(self, needs: Needs) -> int:
        """The latest `last` of the named rows: time never goes back behind it."""
        latest = 0
        for name, ids in needs.items():
            shelf = self._shelves[name]
            if shelf.kind.owner_kind is None:
                for row_id in ids:
                    row = shelf.rows.get(row_id)
                    if row is not None:
                        latest = max(latest, shelf.kind.last_of(row), shelf.stamps.get(row_id, 0))
        return latest

    def mark(self) -> tuple[int, int]:
        """A point to which `undo` can return."""
        return len(self._journal), len(self.hints)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget everything written since the mark."""
        entries, hints = mark
        del self.hints[hints:]
        while len(self._journal) > entries:
            shelf, row_id, previous, inserted, stamp = self._journal.pop()
            if inserted:
                del shelf.fresh[row_id], shelf.stamps[row_id]
                shelf.withdraw(row_id, shelf.rows[row_id], previous)
                continue
            shelf.place(row_id, previous)
            if stamp < 0:
                del shelf.before[row_id]
            shelf.stamps[row_id] = max(stamp, 0)

    def written(self) -> list[tuple[Kind[Any], list[Any], list[tuple[Any, Any]]]]:
        """Per kind in lock order: rows to insert and (before, after) pairs to update, `last` written back."""
        result = []
        for shelf in self._shelves.values():
            if not shelf.fresh and not shelf.before:
                continue
            kind, rows, stamps = shelf.kind, shelf.rows, shelf.stamps
            inserted = [_stamped(kind, rows[row_id], stamps[row_id]) for row_id in shelf.fresh]
            changed = [
                (before, _stamped(kind, after, stamps[row_id]))
                for row_id, before in shelf.before.items()
                if (after := rows[row_id]) != before
            ]
            if inserted or changed:
                result.append((kind, inserted, changed))
        return result

    # --- inside ---

    def _shelf(self, kind: Kind[Any] | str) -> _Shelf[Any]:
        return self._shelves[kind if isinstance(kind, str) else kind.name]

    def _owned(self, shelf: _Shelf[Any], owner_id: Id) -> dict[Id, Any]:
        """The owner's members; an owner made in this transaction has only what was inserted here."""
        owner_kind = shelf.kind.owner_kind
        if owner_kind is None:
            raise BookError(f"{shelf.kind.name} have no owner")
        if owner_id not in shelf.loaded:
            owners = self._shelves.get(owner_kind)
            if owners is None or owner_id not in owners.fresh:
                raise MissingRow(shelf.kind.name, owner_id)
        return shelf.owners.get(owner_id, {})
