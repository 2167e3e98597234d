"""Commands about attempts that a worker holds: start, renew, mark, report. Reconnects: see `reconnect.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import evidence_id_of
from orbit_server.pulse.tasks.decide import finish as finishing
from orbit_server.pulse.tasks.decide import start as starting
from orbit_server.pulse.tasks.decide.finish import Ground, Report
from orbit_server.pulse.tasks.decide.move import Move, Note
from orbit_server.pulse.tasks.decide.policy import policy_of
from orbit_server.pulse.tasks.holdings import may_need
from orbit_server.pulse.tasks.lifecycle import AttemptState, Said
from orbit_server.pulse.tasks.operations import apply
from orbit_server.pulse.tasks.records import Attempt, Progress, Task
from orbit_server.pulse.tasks.rows import (
    ATTEMPTS,
    EVIDENCE,
    TASK_PEERS,
    TASK_PROGRESS,
    TASK_RESULTS,
    TASK_SPECS,
    TASKS,
)
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Command, Done, Keyless, Needs


@dataclass(frozen=True, slots=True)
class Held:
    """An attempt as its holder names it."""

    task_id: Id
    attempt_id: Id
    generation: int


def find(book: Book, held: Held, namespace_id: Id) -> tuple[Task, Attempt] | None:
    """The rows of what is named, or None when it does not exist in this namespace with this generation."""
    task = book.get(TASKS, held.task_id)
    if task is None or task.namespace_id != namespace_id:
        return None
    attempt = book.member(ATTEMPTS, held.task_id, held.attempt_id)
    if attempt is None or attempt.generation != held.generation:
        return None
    return task, attempt


def ground(book: Book, task: Task, times: PulseTimes, *, retries: bool = True) -> Ground:
    """What a decision about the end of an attempt stands on; the policy is read only where it may count."""
    spec = book.get(TASK_SPECS, task.id) if retries else None
    return Ground(book.now, policy_of(None if spec is None else spec.policy), times)


def _rows_of(items: Sequence[Held]) -> Needs:
    ids = [item.task_id for item in items]
    return {"tasks": ids, "attempts": ids}


# --- start -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """`granted`: begin, with so much lease and so much time; else `reason` says why not."""

    granted: bool
    lease_ms: int = 0
    limit_ms: int = 0
    cancel_requested: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StartAttempt(Keyless):
    """May this offer begin? The same process gets the same answer again; nobody else gets a yes."""

    namespace_id: Id
    session_id: Id
    nonce: str
    held: Held
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return self.held.task_id

    def needs(self) -> Needs:
        return _rows_of([self.held])

    def decide(self, book: Book) -> Done[StartAnswer]:
        found = find(book, self.held, self.namespace_id)
        if found is None:
            return Done(StartAnswer(granted=False, reason="there is no such offer"))
        task, attempt = found
        move, answer = starting.start(task, attempt, (self.session_id, self.nonce), book.now, self.times)
        if move is not None:
            apply(book, task, attempt, move)
        if isinstance(answer, starting.Withdrawn):
            return Done(StartAnswer(granted=False, reason=answer.reason))
        lease_ms = max(0, answer.lease_until - book.now) // 1000
        limit_ms = max(0, answer.limit_at - book.now) // 1000
        return Done(
            StartAnswer(
                granted=True, lease_ms=lease_ms, limit_ms=limit_ms, cancel_requested=answer.cancel_requested
            )
        )


# --- renew and mark ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Renewal:
    lease_ms: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class RenewLeases(Keyless):
    """Lengthen leases. Answers by attempt id; None: the attempt is no longer this session's."""

    namespace_id: Id
    session_id: Id
    items: tuple[Held, ...]
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return self.items[0].task_id if self.items else ""

    def needs(self) -> Needs:
        return _rows_of(self.items)

    def decide(self, book: Book) -> Done[Mapping[Id, Renewal | None]]:
        return Done({item.attempt_id: self._renew(book, item) for item in self.items})

    def _renew(self, book: Book, item: Held) -> Renewal | None:
        found = find(book, item, self.namespace_id)
        if found is None:
            return None
        task, attempt = found
        after = starting.renew(task, attempt, self.session_id, book.now, self.times)
        if after is None or after.lease_until is None:
            return None
        book.change(TASKS, task, after)
        return Renewal((after.lease_until - book.now) // 1000, starting.wants_cancel(after, attempt))


@dataclass(frozen=True, slots=True)
class MarkEffect(Keyless):
    """An effect is about to begin. Answers GRANTED (which is stored before it is said), CANCELLED or LOST."""

    namespace_id: Id
    session_id: Id
    nonce: str
    held: Held

    @property
    def lane(self) -> str:
        return self.held.task_id

    def needs(self) -> Needs:
        return _rows_of([self.held])

    def decide(self, book: Book) -> Done[str]:
        found = find(book, self.held, self.namespace_id)
        if found is None:
            return Done("LOST")
        task, attempt = found
        marked, answer = starting.mark(task, attempt, (self.session_id, self.nonce), book.now)
        if marked is not None:
            book.change(ATTEMPTS, attempt, marked)
        return Done(answer)


@dataclass(frozen=True, slots=True)
class KeepProgress(Keyless):
    """Keep the latest progress (canonical JSON) of attempts this session holds; of others nothing is kept.

    Answers what was kept by attempt id: the lease (ms) where the handler has a progress time-out, which is
    renewed; else None.
    """

    namespace_id: Id
    session_id: Id
    items: tuple[tuple[Held, str], ...]
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return self.items[0][0].task_id if self.items else ""

    def needs(self) -> Needs:
        ids = [held.task_id for held, _ in self.items]
        return {"tasks": ids, "attempts": ids, "task_progress": ids}

    def decide(self, book: Book) -> Done[Mapping[Id, int | None]]:
        kept: dict[Id, int | None] = {}
        for held, body in self.items:
            found = find(book, held, self.namespace_id)
            if found is None or found[1].session_id != self.session_id:
                continue
            task, attempt = found
            renewed = starting.progressed(task, attempt, self.session_id, book.now, self.times)
            if renewed is not None:
                book.change(TASKS, task, renewed[0])
                book.change(ATTEMPTS, attempt, renewed[1])
            before = book.get(TASK_PROGRESS, held.task_id)
            after = Progress(held.task_id, held.attempt_id, body, book.now)
            if before is None:
                book.insert(TASK_PROGRESS, after)
            else:
                book.change(TASK_PROGRESS, before, after)
            until = None if renewed is None else renewed[0].lease_until
            kept[attempt.id] = None if until is None else (until - book.now) // 1000
        return Done(kept)


# --- report ------------------------------------------------------------------------------------------------


class Settled(StrEnum):
    """ACCEPTED (again too), EVIDENCE: kept beside the task, REFUSED: nothing was stored. All end the re-
    sending.
    """

    ACCEPTED = "ACCEPTED"
    EVIDENCE = "EVIDENCE"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    settled: Settled
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecordResult(Keyless):
    """How an attempt ended. Repeat-safe: the attempt and its generation are its identity.

    `companion` is decided right after it, in the same transaction: it lets the workflow see the change at
    once. `lane` is the workflow's id for a task of a workflow, else the task's. `nonce` is of the reporting
    process: what another holds is not ended by it.
    """

    namespace_id: Id
    held: Held
    report: Report
    lane: str
    companion: Command[Any] | None = None
    times: PulseTimes = TIMES
    nonce: str | None = None

    def needs(self) -> Needs:
        return _rows_of([self.held])

    def more(self, book: Book) -> Needs:
        found = find(book, self.held, self.namespace_id)
        if found is None:
            return {}
        task, attempt = found
        if attempt.state is AttemptState.CLOSED:
            return {"task_results": [task.id], "evidence": [self._evidence_id], "task_peers": [task.id]}
        if self._is_strangers(attempt):
            return {"evidence": [self._evidence_id]}
        wanted: dict[str, list[Id]] = may_need(task, attempt)
        if self.report.said not in _NEVER_RETRIED:
            wanted["task_specs"] = [task.id]
        return wanted

    @property
    def _evidence_id(self) -> Id:
        return evidence_id_of(self.held.attempt_id, self.report.digest)

    def decide(self, book: Book) -> Done[RecordAnswer]:
        found = find(book, self.held, self.namespace_id)
        if found is None:
            return Done(RecordAnswer(Settled.REFUSED, "there is no such attempt"))
        task, attempt = found
        if attempt.state is not AttemptState.CLOSED and self._is_strangers(attempt):
            return self._claimed(book, task, attempt, "STRANGER", "the attempt belongs to another process")
        if attempt.state is AttemptState.OFFERED:
            return self._unstarted(book, task, attempt)
        if attempt.state is AttemptState.RUNNING and task.attempt_id == attempt.id:
            if not starting.lease_over(task, book.now, self.times):
                retries = self.report.said not in _NEVER_RETRIED
                move = finishing.finish(
                    task, attempt, self.report, ground(book, task, self.times, retries=retries)
                )
                apply(book, task, attempt, move)
                return Done(RecordAnswer(Settled.ACCEPTED))
            ended = finishing.lease_ended(task, attempt, ground(book, task, self.times))
            if ended is not None and ended.attempt is not None:
                task, attempt = apply(book, task, attempt, ended), ended.attempt
        return self._late(book, task, attempt)

    def _unstarted(self, book: Book, task: Task, attempt: Attempt) -> Done[RecordAnswer]:
        """An offer can only be handed back; anything else about it is a claim to keep, not to believe."""
        if self.report.said in (Said.HAND_BACK, Said.DISCARDED):
            apply(book, task, attempt, starting.withdraw(task, attempt, book.now, self.times))
            return Done(RecordAnswer(Settled.ACCEPTED))
        return self._claimed(book, task, attempt, "UNSTARTED", "the attempt was never started")

    def _is_strangers(self, attempt: Attempt) -> bool:
        return self.nonce is not None and attempt.nonce != self.nonce

    def _claimed(
        self, book: Book, task: Task, attempt: Attempt, kind: str, reason: str
    ) -> Done[RecordAnswer]:
        """Keep what is claimed beside the task, which goes on as if nothing had been said."""
        if book.get(EVIDENCE, self._evidence_id) is None:
            report = self.report
            note = Note(
                f"{kind}_{report.said}", report.result or report.error, report.digest, contradiction=True
            )
            apply(book, task, attempt, Move(task, notes=(note,)))
        return Done(RecordAnswer(Settled.EVIDENCE, reason))

    def _late(self, book: Book, task: Task, attempt: Attempt) -> Done[RecordAnswer]:
        stored = book.get(TASK_RESULTS, task.id)
        move = finishing.late(task, attempt, self.report, None if stored is None else stored.digest)
        if move is None:
            return Done(RecordAnswer(Settled.ACCEPTED))
        if book.get(EVIDENCE, self._evidence_id) is None:
            apply(book, task, attempt, move)
            if move.task.late_success:
                self._warn_peers(book, task)
        return Done(RecordAnswer(Settled.EVIDENCE, f"the attempt had ended ({attempt.outcome})"))

    def _warn_peers(self, book: Book, task: Task) -> None:
        """Later tasks of the same effect key must know of the success before they start or fail."""
        for peer in book.members(TASK_PEERS, task.id):
            other = book.get(TASKS, peer.id)
            if other is not None and finishing.heeds_late_success(other):
                book.change(TASKS, other, replace(other, late_success=True))


_NEVER_RETRIED = frozenset({Said.SUCCEEDED, Said.FINAL})
