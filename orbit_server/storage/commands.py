"""What a command is and what a decision may answer: the values between every domain and the committer.

A command is a small frozen value that carries everything needed to decide. It names the rows it needs, the
committer touches and loads them for a whole group of commands, and `decide` then reads and writes the book of
that transaction. A command may be run several times (faults repeat the group), so it is idempotent by its own
identity: ids it makes come from its seed, never from a clock or a random source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage.needs import NOTHING, Needs

if TYPE_CHECKING:
    from orbit_server.storage.book import Book

__all__ = [
    "NOTHING",
    "Answered",
    "Command",
    "CommandKey",
    "Done",
    "Finalizer",
    "FinalizerRun",
    "Keyless",
    "Missing",
    "Needs",
    "Order",
    "Outcome",
    "Refused",
]

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class CommandKey:
    """The identity of a request that creates something: kept with its digest and its answer.

    Two requests mean the same when namespace, operation, key and digest agree. A refused request
    binds nothing.
    """

    namespace_id: Id
    operation: str
    key: str
    digest: str

    @property
    def id(self) -> Id:
        """Id of the key's row: a second row of the same key cannot exist."""
        return derive_id("idempotency", self.namespace_id, self.operation, self.key)


@dataclass(frozen=True, slots=True)
class Done(Generic[A_co]):
    """Decided. `answer` goes to the caller after the commit.

    The answer of a command with a key is stored with it and must be JSON (dict, list, str, int, bool, None);
    an equal request gets it again, whenever it comes. `subject_id` is the id of what was created.
    `follow_ups` run in the same group; a follow-up that is refused, misses a row or fails is only dropped.
    Follow-ups and companions are answered to nobody and have no key of their own.
    """

    answer: A_co
    follow_ups: Sequence[Command[Any]] = ()
    subject_id: Id | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The command changes nothing; its caller gets `error`. Raising the error in `decide` means the same."""

    error: OrbitError


@dataclass(frozen=True, slots=True)
class Missing:
    """The decision met rows that this transaction has not touched: run the command again with them."""

    needs: Needs


Outcome: TypeAlias = Done[A] | Refused | Missing


class Command(Protocol[A_co]):
    """A write. Implementations are frozen dataclasses; `Order` and `Keyless` supply the usual defaults.

    One may bring a second command, as its attribute `companion`: it is decided right after the first was
    Done, and its needs are gathered with the group. Refused, missing a row or raising only drops it: what it
    would have done is found again from stored rows.
    """

    @property
    def key(self) -> CommandKey | None:
        """The identity of a creating request, else None."""

    @property
    def lane(self) -> str:
        """Id of the aggregate that this command changes: commands of one aggregate share a lane."""
        ...

    def needs(self) -> Needs:
        """The rows known beforehand."""
        ...

    def more(self, book: Book) -> Needs:
        """Asked after each kind (in lock order) that this command named: what else, in later kinds only."""
        ...

    def decide(self, book: Book) -> Outcome[A_co]:
        """Decide on the book, purely: no I/O, no clock, no randomness."""
        ...


class Order:
    """Base of a command: nothing more is needed than `needs` says."""

    __slots__ = ()

    asks_after: ClassVar[frozenset[str] | None] = None
    """Kinds after which `more` is asked; None for all that the command names. Narrow it where it is asked
    often and most kinds tell it nothing new."""

    def more(self, book: Book) -> Needs:  # noqa: ARG002  # the signature is the protocol's
        return NOTHING


class Keyless(Order):
    """Base of a command that is not a keyed request: repeating it is harmless by its own identity."""

    __slots__ = ()

    @property
    def key(self) -> CommandKey | None:
        """None: there is no request to remember."""
        return None


@dataclass(frozen=True, slots=True)
class Answered(Generic[A_co]):
    """An accepted command: its answer, whether an earlier equal request had got it, when it was decided."""

    answer: A_co
    replayed: bool
    at: int


class FinalizerRun(Protocol):
    """One group's part of a finalizer. `finish` may be repeated: it must not depend on an earlier run."""

    def needs(self) -> Needs:
        """Rows to touch and load with the group (limit rows)."""
        ...

    def finish(self, book: Book) -> None:
        """Called in the transaction after all decisions. Raising undoes only what this call did."""

    def closed(self, committed: bool | None) -> None:
        """Called on the event loop when the group has ended: give back what is left of the reservation.

        True: what `finish` last wrote is committed. False: nothing of it is. None: an unknown COMMIT may have
        applied it; what it wrote is found again from stored rows.
        """


class Finalizer(Protocol):
    """Work joined to every group, registered at start-up (claiming newly ready tasks for reserved slots)."""

    def open(self, commands: Sequence[Command[Any]]) -> FinalizerRun | None:
        """Called on the event loop before BEGIN: reserve, make the ids; None when there is nothing to do."""
