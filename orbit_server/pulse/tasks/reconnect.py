"""Commands of a session that comes or goes: bind what the worker still holds, hand offers back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.attempts import Held, find, ground
from orbit_server.pulse.tasks.decide import finish as finishing
from orbit_server.pulse.tasks.decide import start as starting
from orbit_server.pulse.tasks.decide.finish import Report
from orbit_server.pulse.tasks.holdings import more_of
from orbit_server.pulse.tasks.lifecycle import AttemptState, Said
from orbit_server.pulse.tasks.operations import apply
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs


@dataclass(frozen=True, slots=True)
class Bound:
    """CONTINUE with so much lease, STOP, or SETTLED: its result is stored."""

    answer: str
    lease_ms: int = 0
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class BindAttempts(Keyless):
    """After a reconnect: settle what the worker still holds. Answers a `Bound` per listed attempt.

    `unlisted` are attempts that were started together with their offer for this same process and that it does
    not list: they provably never arrived, and are given back uncharged.
    """

    namespace_id: Id
    session_id: Id
    nonce: str
    listed: tuple[Held, ...] = ()
    unlisted: tuple[Held, ...] = ()
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return next((held.task_id for held in (*self.listed, *self.unlisted)), "")

    def needs(self) -> Needs:
        ids = [held.task_id for held in (*self.listed, *self.unlisted)]
        return {"tasks": ids, "attempts": ids, "task_specs": [held.task_id for held in self.unlisted]}

    def more(self, book: Book) -> Needs:
        offered = [held for held in self.listed if _is_offer(find(book, held, self.namespace_id))]
        return more_of(book, [held.task_id for held in (*self.unlisted, *offered)])

    def decide(self, book: Book) -> Done[Mapping[Id, Bound]]:
        for held in self.unlisted:
            _give_back(book, held, (self.namespace_id, self.nonce), self.times)
        return Done({held.attempt_id: self._bind(book, held) for held in self.listed})

    def _bind(self, book: Book, held: Held) -> Bound:
        found = find(book, held, self.namespace_id)
        if found is None:
            return Bound("STOP")
        task, attempt = found
        if attempt.state is AttemptState.CLOSED:
            return Bound("STOP" if attempt.outcome in _LOST else "SETTLED")
        if attempt.nonce != self.nonce:
            return Bound("STOP")
        if attempt.state is AttemptState.OFFERED:
            apply(book, task, attempt, starting.withdraw(task, attempt, book.now, self.times))
            return Bound("STOP")
        move = starting.bind(task, attempt, self.session_id, book.now, self.times)
        if move is None or move.task.lease_until is None:
            return Bound("STOP")
        apply(book, task, attempt, move)
        lease_ms = (move.task.lease_until - book.now) // 1000
        return Bound("CONTINUE", lease_ms, starting.wants_cancel(task, attempt))


_LOST = (Said.LEASE_LOST, Said.TIMED_OUT, Said.NO_PROGRESS, Said.NOT_STARTED, Said.NOT_DELIVERED)


@dataclass(frozen=True, slots=True)
class ReturnOffers(Keyless):
    """Offers of a session that closes or cannot deliver them go back to their queue. Answers how many did.

    Only what is bound to this session is touched. `undelivered`: attempts started with an offer that was
    provably never sent; they are given back uncharged.
    """

    namespace_id: Id
    session_id: Id
    offers: tuple[Held, ...] = ()
    undelivered: tuple[Held, ...] = ()
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return next((held.task_id for held in (*self.offers, *self.undelivered)), "")

    def needs(self) -> Needs:
        ids = [held.task_id for held in (*self.offers, *self.undelivered)]
        return {"tasks": ids, "attempts": ids, "task_specs": [held.task_id for held in self.undelivered]}

    def more(self, book: Book) -> Needs:
        return more_of(book, [held.task_id for held in (*self.offers, *self.undelivered)])

    def decide(self, book: Book) -> Done[int]:
        returned = 0
        for held in self.offers:
            found = find(book, held, self.namespace_id)
            if found is None:
                continue
            task, attempt = found
            if attempt.state is AttemptState.OFFERED and attempt.session_id == self.session_id:
                apply(book, task, attempt, starting.withdraw(task, attempt, book.now, self.times))
                returned += 1
        for held in self.undelivered:
            found = find(book, held, self.namespace_id)
            if found is not None and found[1].session_id == self.session_id:
                returned += _give_back(book, held, (self.namespace_id, found[1].nonce), self.times)
        return Done(returned)


def _is_offer(found: tuple[Task, Attempt] | None) -> bool:
    return found is not None and found[1].state is AttemptState.OFFERED


def _give_back(book: Book, held: Held, owner: tuple[Id, str | None], times: PulseTimes) -> int:
    """Close as never delivered what was started in one step and has not been heard of; 1 when it was."""
    namespace_id, nonce = owner
    found = find(book, held, namespace_id)
    if found is None:
        return 0
    task, attempt = found
    if attempt.nonce != nonce or task.attempt_id != attempt.id:
        return 0
    if attempt.state is AttemptState.OFFERED:
        apply(book, task, attempt, starting.withdraw(task, attempt, book.now, times))
        return 1
    if attempt.started_at != attempt.offered_at or starting.lease_over(task, book.now, times):
        return 0
    apply(
        book,
        task,
        attempt,
        finishing.finish(task, attempt, Report(Said.NOT_DELIVERED), ground(book, task, times)),
    )
    return 1
