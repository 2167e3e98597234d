"""Getting an attempt under way: due, claimed, offered, started, marked, renewed, bound to another session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.decide.move import Move, close, shaped, to, too_late
from orbit_server.pulse.tasks.decide.probe import not_read_only
from orbit_server.pulse.tasks.decide.stop import expire, may_have_effect, to_review
from orbit_server.pulse.tasks.lifecycle import (
    REPEATABLE,
    VERIFIED,
    AttemptKind,
    AttemptState,
    ErrorCode,
    Recovery,
    Said,
    TaskState,
    stricter,
)
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import PulseTimes


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who an attempt is offered to: what is written down of the session, and what its worker declares.

    `one_step`: the worker counts on a start with the offer, where the recovery level allows that.
    """

    session_id: Id
    namespace_id: Id
    nonce: str
    worker: str
    build: str
    recovery: Recovery
    can_verify: bool
    one_step: bool = False
    progress_timeout_ms: int | None = None


def due(task: Task, now: int) -> Move | None:
    """The task's `due_at` has come: it is READY, or may be asked about again. None when there is nothing to
    do.
    """
    if task.due_at is None or now < task.due_at:
        return None
    if task.state in VERIFIED:
        return Move(shaped(task, task.state, now, {}))
    if too_late(task, now):
        return expire(task, now)
    if task.state is TaskState.READY:
        return Move(shaped(task, task.state, now, {}))
    return Move(to(task, TaskState.READY, now, virtual_start=now))


def claimable(task: Task) -> AttemptKind | None:
    """What kind of attempt the task waits for, if it may be claimed now."""
    if task.blocked:
        return None
    if task.state is TaskState.READY:
        return AttemptKind.RUN
    if task.state in VERIFIED and task.attempt_id is None:
        return AttemptKind.VERIFY
    return None


def claim(
    task: Task, earlier: Iterable[Attempt], who: Claimant, attempt_id: Id, now: int, times: PulseTimes
) -> Move | None:
    """Open an attempt for this session, started at once where that is safe; None when there is nothing to
    claim.

    `earlier` is read for a verification only. The move has no attempt when the task cannot be started any
    more.
    """
    kind = claimable(task)
    if kind is None:
        return None
    level = Recovery.READ_ONLY if kind is AttemptKind.VERIFY else stricter(task.recovery, who.recovery)
    if kind is AttemptKind.RUN:
        if too_late(task, now):
            return expire(task, now)
        if task.probe_of is not None and level is not Recovery.READ_ONLY:
            return not_read_only(task, now)
        if _would_repeat(task, level):
            return Move(_doubted(task, now))
    attempt = _opened(task, kind, (who, level), attempt_id, now, times)
    if kind is AttemptKind.VERIFY:
        attempt = altered(attempt, asked_generation=_asked(task, earlier))
    started = attempt.state is AttemptState.RUNNING
    state = task.state
    used = task.attempts_used
    if kind is AttemptKind.RUN:
        state = TaskState.RUNNING if started else TaskState.OFFERED
        used += 1 if started else 0
    after = to(
        task,
        state,
        now,
        attempt_id=attempt_id,
        lease_until=attempt.lease_until,
        generation=attempt.generation,
        attempts_used=used,
        can_verify=task.can_verify or (who.can_verify and task.probe_of is None),
        **_keeping_verification(task, kind),
    )
    return Move(after, attempt)


def _opened(
    task: Task,
    kind: AttemptKind,
    offer: tuple[Claimant, Recovery],
    attempt_id: Id,
    now: int,
    times: PulseTimes,
) -> Attempt:
    """The new attempt, offered or started at once."""
    who, level = offer
    # A verification is short and reports nothing.
    patience_ms = who.progress_timeout_ms if kind is AttemptKind.RUN else None
    # Its lease counts from a ready that may be half a lease old: little time would be gone before it began.
    enough = min(task.attempt_timeout_ms, patience_ms or task.attempt_timeout_ms) >= times.lease_ms
    started = who.one_step and level in REPEATABLE and enough
    limit_at = now + task.attempt_timeout_ms * 1000 if started else None
    return Attempt(
        id=attempt_id,
        task_id=task.id,
        namespace_id=task.namespace_id,
        attempt_no=task.attempts_used + (1 if kind is AttemptKind.RUN else 0),
        generation=task.generation + 1,
        kind=kind,
        state=AttemptState.RUNNING if started else AttemptState.OFFERED,
        session_id=who.session_id,
        worker=who.worker,
        build=who.build,
        nonce=who.nonce,
        recovery=level,
        offered_at=now,
        started_at=now if started else None,
        lease_until=now + times.lease_ms * 1000,
        limit_at=limit_at,
        marked_at=None,
        closed_at=None,
        outcome=None,
        charged=started and kind is AttemptKind.RUN,
        effect_possible=False,
        error=None,
        permits=None,
        asked_generation=None,
        progress_timeout_ms=patience_ms,
    )


@dataclass(frozen=True, slots=True)
class Started:
    """The start is granted (or was, to this very process): the lease in force, and whether a cancel is
    wanted.
    """

    lease_until: int
    limit_at: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The attempt must not begin; `reason` is for the worker's log."""

    reason: str


def start(
    task: Task, attempt: Attempt, asker: tuple[Id, str], now: int, times: PulseTimes
) -> tuple[Move | None, Started | Withdrawn]:
    """Grant the start of an offer, or withdraw it. The move is None when nothing changes.

    `asker` is the session and the nonce of the worker process that asks.
    """
    if attempt.state is AttemptState.CLOSED or task.attempt_id != attempt.id:
        return None, Withdrawn("the offer is closed")
    if (attempt.session_id, attempt.nonce) != asker:
        return None, Withdrawn("the offer belongs to another worker")
    if attempt.state is AttemptState.RUNNING:
        return None, _started(task, attempt)
    if task.lease_until is None or now > task.lease_until:
        return withdraw(task, attempt, now, times), Withdrawn("the lease has ended")
    if attempt.kind is AttemptKind.RUN:
        if task.gate:
            return withdraw(task, attempt, now, times), Withdrawn("the workflow is paused")
        if too_late(task, now):
            closed = close(attempt, Said.NOT_STARTED, now, charged=False)
            return Move(expire(task, now).task, closed), Withdrawn("its time is over")
        if _would_repeat(task, attempt.recovery):
            closed = close(attempt, Said.NOT_STARTED, now, charged=False)
            return Move(_doubted(task, now), closed), Withdrawn("an earlier attempt may have had its effect")
    limit_at = now + task.attempt_timeout_ms * 1000
    runs = attempt.kind is AttemptKind.RUN
    begun = altered(attempt, state=AttemptState.RUNNING, started_at=now, limit_at=limit_at, charged=runs)
    lease_until = _lease_end(begun, now, times)
    begun = altered(begun, lease_until=lease_until)
    after = to(
        task,
        TaskState.RUNNING if runs else task.state,
        now,
        lease_until=lease_until,
        attempts_used=task.attempts_used + (1 if runs else 0),
        **_keeping_verification(task, attempt.kind),
    )
    return Move(after, begun), _started(after, begun)


def withdraw(task: Task, attempt: Attempt, now: int, times: PulseTimes) -> Move:
    """Close an offer that was never started: not charged, and offered again after a short back-off."""
    closed = close(attempt, Said.NOT_STARTED, now, charged=False)
    due_at = now + times.withdrawn_backoff_ms * 1000
    if attempt.kind is AttemptKind.VERIFY:
        return Move(to(task, TaskState.VERIFYING, now, attempt_id=None, due_at=due_at), closed)
    return Move(to(task, TaskState.READY, now, attempt_id=None, due_at=due_at, virtual_start=now), closed)


def gate(task: Task, attempt: Attempt | None, closed: bool, now: int) -> Move | None:
    """Close or open the workflow's gate. An offer is withdrawn; what was started goes on; verification is
    free.
    """
    value = 1 if closed else 0
    if task.gate == value or task.settled_at is not None:
        return None
    if closed and task.state is TaskState.OFFERED and attempt is not None:
        ended = close(attempt, Said.NOT_STARTED, now, charged=False)
        return Move(to(task, TaskState.READY, now, attempt_id=None, gate=value, virtual_start=now), ended)
    if task.state is TaskState.NEEDS_REVIEW:
        return Move(altered(task, gate=value))
    return Move(shaped(task, task.state, now, {"gate": value, "due_at": task.due_at}))


def renew(task: Task, attempt: Attempt, session_id: Id, now: int, times: PulseTimes) -> Task | None:
    """The task with a longer lease, or None when the attempt is no longer this session's."""
    if (
        attempt.state is AttemptState.CLOSED
        or task.attempt_id != attempt.id
        or attempt.session_id != session_id
    ):
        return None
    if lease_over(task, now, times):
        return None
    until = _lease_end(attempt, now, times)
    if until <= now:
        return None
    return altered(task, lease_until=until)


def progressed(
    task: Task, attempt: Attempt, session_id: Id, now: int, times: PulseTimes
) -> tuple[Task, Attempt] | None:
    """The handler reported: its time without progress starts anew and the lease is renewed. None: too late,
    or there is no such rule for this attempt.
    """
    if attempt.progress_timeout_ms is None or attempt.state is not AttemptState.RUNNING:
        return None
    # What came before the lease ended was in time; the allowance for clocks that differ is not for handlers.
    if task.lease_until is None or now > task.lease_until:
        return None
    fresh = altered(attempt, progress_at=now)
    after = renew(task, fresh, session_id, now, times)
    return None if after is None else (after, fresh)


def _lease_end(attempt: Attempt, now: int, times: PulseTimes) -> int:
    """A lease granted now never outlives the time of the attempt, or its time without progress."""
    until = now + times.lease_ms * 1000
    for limit in (attempt.limit_at, attempt.progress_until):
        if limit is not None and limit < until:
            until = limit
    return until


def mark(task: Task, attempt: Attempt, asker: tuple[Id, str], now: int) -> tuple[Attempt | None, str]:
    """Store that an effect is about to begin: GRANTED, CANCELLED or LOST; idempotent per attempt.

    Granted like a start: to the session and process that hold the attempt, while lease and time last.
    """
    if task.attempt_id != attempt.id or attempt.state is not AttemptState.RUNNING:
        return None, "LOST"
    if (attempt.session_id, attempt.nonce) != asker or attempt.kind is not AttemptKind.RUN:
        return None, "LOST"
    if (
        task.lease_until is None
        or now > task.lease_until
        or (attempt.limit_at is not None and now >= attempt.limit_at)
    ):
        return None, "LOST"
    if task.cancel_requested:
        return None, "CANCELLED"
    if attempt.marked_at is not None:
        return None, "GRANTED"
    return altered(attempt, marked_at=now), "GRANTED"


def bind(task: Task, attempt: Attempt, session_id: Id, now: int, times: PulseTimes) -> Move | None:
    """The running attempt, now of another session of the same process, with a new lease; None when it is
    lost.
    """
    bound = altered(attempt, session_id=session_id)
    after = renew(task, bound, session_id, now, times)
    if after is None or after.lease_until is None:
        return None
    return Move(after, altered(bound, lease_until=after.lease_until))


def wants_cancel(task: Task, attempt: Attempt) -> bool:
    """The worker should stop. A verification goes on: it finds out the truth that the cancel waits for."""
    return task.cancel_requested and attempt.kind is AttemptKind.RUN


def lease_over(task: Task, now: int, times: PulseTimes) -> bool:
    """The lease ended longer ago than clocks may differ; from here its results are evidence only."""
    return task.lease_until is None or task.lease_until + times.lease_skew_ms * 1000 < now


def _would_repeat(task: Task, level: Recovery) -> bool:
    """A start would risk a second effect of a handler (another worker's, say) that may not be repeated."""
    return level not in REPEATABLE and may_have_effect(task)


def _doubted(task: Task, now: int) -> Task:
    return to_review(task, now, ErrorCode.LATE_SUCCESS if task.late_success else ErrorCode.EFFECT_UNKNOWN)


def _started(task: Task, attempt: Attempt) -> Started:
    lease_until = task.lease_until or attempt.lease_until
    return Started(lease_until, attempt.limit_at or lease_until, wants_cancel(task, attempt))


def _keeping_verification(task: Task, kind: AttemptKind) -> dict[str, int | None]:
    return {"verify_deadline_at": task.verify_deadline_at} if kind is AttemptKind.VERIFY else {}


def _asked(task: Task, earlier: Iterable[Attempt]) -> int | None:
    if task.probe_of is not None:  # made with the generation that it asks about
        return next((attempt.asked_generation for attempt in earlier), task.generation)
    return max((attempt.generation for attempt in earlier if attempt.kind is AttemptKind.RUN), default=None)
