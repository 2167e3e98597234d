"""A small domain over two real tables, to drive the committer with: counters that own notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from orbit_sdk.errors import FailedPrecondition
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.book import Book
from orbit_server.storage.commands import (
    Command,
    CommandKey,
    Done,
    Keyless,
    Missing,
    Needs,
    Order,
    Outcome,
    Refused,
)
from orbit_server.storage.events import EventRow
from orbit_server.storage.kinds import LockOrder, RowKind

NAMESPACE = derive_id("test", "namespace")


class Mood(StrEnum):
    """An enum column."""

    CALM = "CALM"
    BUSY = "BUSY"


@dataclass(frozen=True, slots=True)
class Counter:
    """A row of `queues`: the owner."""

    id: Id
    namespace_id: Id
    name: Mood
    paused: bool
    wake_seq: int
    virtual_time: int
    revision: int
    last: int


@dataclass(frozen=True, slots=True)
class Note:
    """A row of `payloads`: a member of a counter."""

    id: Id
    instance_id: Id
    kind: str
    body: str
    digest: str


COUNTERS = RowKind("counters", LockOrder.QUEUES, tables.queues, Counter, touchable=True)
NOTES = RowKind("notes", LockOrder.LIMITS, tables.payloads, Note, owner="instance_id", owner_kind="counters")
KINDS = [COUNTERS, NOTES]


def cid(name: str) -> Id:
    """The id of a counter."""
    return derive_id("counter", name)


def counter(name: str, value: int = 0) -> Counter:
    return Counter(cid(name), NAMESPACE, Mood.CALM, False, value, 0, 1, 0)


def note(owner: str, text: str) -> Note:
    return Note(derive_id("note", owner, text), cid(owner), "NOTE", f'"{text}"', "d")


def event(name: str, at: int) -> EventRow:
    return EventRow(
        derive_id("event", name, str(at)), NAMESPACE, None, None, "counter", cid(name), 1, "counter.bumped",
        None, None, None, None, at, "{}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Create(Order):
    """A keyed request: make a counter."""

    name: str
    key: CommandKey | None
    refuse: Callable[[], bool] = lambda: False

    @property
    def lane(self) -> str:
        return cid(self.name)

    def needs(self) -> Needs:
        return {"counters": (cid(self.name),)}

    def decide(self, book: Book) -> Outcome[dict[str, Any]]:
        if self.refuse() or book.get(COUNTERS, cid(self.name)) is not None:
            return Refused(FailedPrecondition(f"counter {self.name} exists"))
        row = book.insert(COUNTERS, counter(self.name))
        book.after_commit(("created", self.name))
        return Done({"id": row.id, "name": self.name}, subject_id=row.id)


@dataclass(frozen=True, slots=True)
class Bump(Keyless):
    """Raise a counter by one, write a note of it; idempotent by its note."""

    name: str
    text: str
    companion: Command[Any] | None = None
    follow_ups: Sequence[Command[Any]] = ()

    @property
    def lane(self) -> str:
        return cid(self.name)

    def needs(self) -> Needs:
        return {"counters": (cid(self.name),), "notes": (cid(self.name),)}

    def decide(self, book: Book) -> Outcome[int]:
        row = book.get(COUNTERS, cid(self.name))
        if row is None:
            row = book.insert(COUNTERS, counter(self.name))
        own = note(self.name, self.text)
        if book.member(NOTES, row.id, own.id) is None:
            book.insert(NOTES, own)
            row = book.change(
                COUNTERS, row, replace(row, wake_seq=row.wake_seq + 1, revision=row.revision + 1)
            )
        return Done(row.wake_seq, self.follow_ups)


@dataclass(frozen=True, slots=True)
class Act(Keyless):
    """Whatever a test wants decided."""

    name: str
    act: Callable[[Book], Outcome[Any]]
    named: Needs | None = None
    lead: Callable[[Book], Needs] | None = None

    @property
    def lane(self) -> str:
        return cid(self.name)

    def needs(self) -> Needs:
        return {"counters": (cid(self.name),)} if self.named is None else self.named

    def more(self, book: Book) -> Needs:
        return {} if self.lead is None else self.lead(book)

    def decide(self, book: Book) -> Outcome[Any]:
        return self.act(book)


def key(name: str, *, digest: str = "d1", namespace: Id = NAMESPACE, operation: str = "create") -> CommandKey:
    return CommandKey(namespace, operation, name, digest)


def missing(kind: str, *ids: Id) -> Missing:
    return Missing({kind: ids})
