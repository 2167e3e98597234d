"""The commands that carry a bulk on: asking about items, adding them to the plan, doing them, ending.

An item is done in one transaction with everything that the same order does when it is given once, its own
audit row included, and with the item's row: however often it is sent, and by however many servers, it is
done once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import FailedPrecondition, OrbitError
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.bulk import decide as decisions
from orbit_server.bulk.actions import Action, Draft
from orbit_server.bulk.commands import BulkDueAt
from orbit_server.bulk.lifecycle import BulkState, ItemState
from orbit_server.bulk.records import BulkRow, ItemRow, RestartRow
from orbit_server.bulk.rows import BULKS, ITEMS, RESTARTS, restart_id
from orbit_server.platform.audit import AUDIT
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Command, Done, Keyless, Missing, Needs, Outcome, Refused
from orbit_server.weave.state.running import NotInMemory, merged

__all__ = ["WHY_MAX", "AddItems", "ApplyItem", "EndBulk", "GiveUpItem", "Judge", "Judged"]

WHY_MAX: Final = 500
"""Characters of a reason that are kept with an item."""


# --- planning ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """What the engine says about an item: the state that would follow, or why it is refused."""

    then: str | None
    error: OrbitError | None = None


class _OnItem(Keyless):
    """What asking about an item and doing it share."""

    __slots__ = ()
    action: Action
    draft: Draft
    command: Command[Any]

    def _item_needs(self) -> Needs:
        return merged(self.command.needs(), self.action.more(self.draft))

    def more(self, book: Book) -> Needs:
        return self.command.more(book)

    def _act(self, book: Book) -> Done[Any] | OrbitError | Missing:
        """The item's own order, decided on the book. What is refused may have written: undo it."""
        try:
            self.action.check(book, self.draft)
            outcome: Outcome[Any] = self.command.decide(book)
        except NotInMemory:
            raise
        except OrbitError as error:
            return error
        return outcome.error if isinstance(outcome, Refused) else outcome


@dataclass(frozen=True, slots=True)
class Judge(_OnItem):
    """Decide an item and take everything back: the verdict of its order, now."""

    action: Action
    draft: Draft
    command: Command[Any]

    @property
    def lane(self) -> str:
        return self.draft.bulk_id

    def needs(self) -> Needs:
        return self._item_needs()

    def decide(self, book: Book) -> Outcome[Judged]:
        moved = self.action.changed(book, self.draft)
        if moved is not None:
            return Done(Judged(None, _changed(moved)))
        mark = book.mark()
        acted = self._act(book)
        book.undo(mark)
        if isinstance(acted, Missing):
            return acted
        if isinstance(acted, OrbitError):
            return Done(Judged(None, acted))
        return Done(Judged(_state_in(acted.answer)))


@dataclass(frozen=True, slots=True)
class AddItems(Keyless):
    """One bite of a plan. It holds only while the plan still stands at `seen`: two servers add it once."""

    bulk_id: Id
    seen: Id | None
    items: Sequence[ItemRow]
    place: Id | None
    more_left: bool

    @property
    def lane(self) -> str:
        return self.bulk_id

    def needs(self) -> Needs:
        return {BULKS.name: (self.bulk_id,)}

    def decide(self, book: Book) -> Done[bool]:
        row = book.get(BULKS, self.bulk_id)
        if row is None or row.state is not BulkState.PLANNING or row.place != self.seen:
            return Done(answer=False)
        for item in self.items:
            book.insert(ITEMS, item)
        refused = sum(not item.allowed for item in self.items)
        after = decisions.planned(
            row, len(self.items), refused, self.place, more=self.more_left, now=book.now
        )
        book.change(BULKS, row, after)
        book.after_commit(BulkDueAt(after.due_at))
        return Done(answer=True)


# --- applying ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApplyItem(_OnItem):
    """Do one item, when its turn has come. Answers whether it is settled now, by this command.

    What is not as it was planned is skipped; what is refused although nothing moved is a failure.
    """

    action: Action
    draft: Draft
    command: Command[Any]
    planned_by: str

    @property
    def lane(self) -> str:
        return self.draft.bulk_id

    def needs(self) -> Needs:
        own = {BULKS.name: (self.draft.bulk_id,), ITEMS.name: (self.draft.item_id,)}
        return merged(own, self._item_needs())

    def decide(self, book: Book) -> Outcome[bool]:
        row, item = book.get(BULKS, self.draft.bulk_id), book.get(ITEMS, self.draft.item_id)
        if row is None or item is None or item.state is not ItemState.PENDING:
            return Done(answer=False)
        if not decisions.is_due(row, book.now):
            return Done(answer=False)
        moved = self.action.changed(book, self.draft)
        if moved is not None:
            return _settle(book, row, item, ItemState.SKIPPED_CHANGED, _changed(moved))
        known = {audit.id for audit in book.known(AUDIT)}
        mark = book.mark()
        acted = self._act(book)
        if isinstance(acted, Missing):
            return acted
        if isinstance(acted, OrbitError):
            book.undo(mark)
            moved = self._elsewhere(book)
            state = ItemState.REFUSED if moved is None else ItemState.SKIPPED_CHANGED
            return _settle(book, row, item, state, acted)
        self._name_bulk(book, known)
        made = _made_by(acted.answer, item.subject_id)
        if made is not None and self.action.more(self.draft):
            book.insert(RESTARTS, RestartRow(restart_id(item.subject_id), row.id, made))
        done = _settle(book, row, item, ItemState.APPLIED, None, made)
        return replace(done, follow_ups=acted.follow_ups)

    def _elsewhere(self, book: Book) -> str | None:
        """Whether another bulk has done it in the meantime, without a trace in the row that was frozen."""
        try:
            self.action.check(book, self.draft)
        except OrbitError as error:
            return error.message
        return None

    def _name_bulk(self, book: Book, known: set[Id]) -> None:
        """Every audit row of the action says which bulk it belongs to, and who planned it."""
        names: Mapping[str, Json] = {"bulk_id": self.draft.bulk_id, "planned_by": self.planned_by}
        fresh = [audit for audit in book.known(AUDIT) if audit.id not in known]
        assert fresh, "every action leaves an audit row"
        for audit in fresh:
            told: dict[str, Json] = {} if audit.details is None else orjson.loads(audit.details)
            book.change(AUDIT, audit, altered(audit, details=canonical_json({**told, **names})))


@dataclass(frozen=True, slots=True)
class GiveUpItem(Keyless):
    """An item whose command cannot be decided at all: settled as a failure, so that the rest goes on."""

    bulk_id: Id
    item_id: Id
    error: OrbitError

    @property
    def lane(self) -> str:
        return self.bulk_id

    def needs(self) -> Needs:
        return {BULKS.name: (self.bulk_id,), ITEMS.name: (self.item_id,)}

    def decide(self, book: Book) -> Done[bool]:
        row, item = book.get(BULKS, self.bulk_id), book.get(ITEMS, self.item_id)
        if row is None or item is None or item.state is not ItemState.PENDING:
            return Done(answer=False)
        if not decisions.is_due(row, book.now):
            return Done(answer=False)
        return _settle(book, row, item, ItemState.REFUSED, self.error)


@dataclass(frozen=True, slots=True)
class EndBulk(Keyless):
    """What time does to a bulk: a plan expires, an ended one is purged. Answers the state."""

    bulk_id: Id

    @property
    def lane(self) -> str:
        return self.bulk_id

    def needs(self) -> Needs:
        return {BULKS.name: (self.bulk_id,)}

    def decide(self, book: Book) -> Done[bool]:
        row = book.get(BULKS, self.bulk_id)
        if row is None:
            return Done(answer=False)
        after = decisions.expired(row, book.now) or decisions.purging(row, book.now)
        if after is None:
            return Done(answer=False)
        book.change(BULKS, row, after)
        return Done(answer=True)


def _changed(why: str) -> OrbitError:
    return FailedPrecondition(why)


def _settle(  # the whole of what is known about the end of an item
    book: Book,
    row: BulkRow,
    item: ItemRow,
    state: ItemState,
    error: OrbitError | None,
    made_id: Id | None = None,
) -> Done[bool]:
    ended = altered(
        item,
        state=state,
        code=None if error is None else error.code.value,
        why=None if error is None else error.message[:WHY_MAX],
        made_id=made_id,
        settled_at=book.now,
    )
    book.change(ITEMS, item, ended)
    after = book.change(BULKS, row, decisions.settled(row, state, book.now))
    book.after_commit(BulkDueAt(after.due_at))
    return Done(answer=True)


def _state_in(answer: Mapping[str, Any]) -> str | None:
    """The state that a command's answer tells of."""
    found = answer.get("workflow", answer).get("state")
    return None if found is None else str(found)


def _made_by(answer: Mapping[str, Any], subject_id: Id) -> Id | None:
    """The workflow or task that a command has made, if its answer is about another than the item's."""
    found = answer.get("workflow", answer)
    made = found.get("id") or found.get("task_id")
    return None if made is None or made == subject_id else str(made)
