"""What the end of an attempt means for its task: results, declared errors, lost leases, answers of
verification.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_server.pulse.tasks.decide import probe
from orbit_server.pulse.tasks.decide.move import Body, Move, Note, close, to, too_late
from orbit_server.pulse.tasks.decide.policy import RetryPolicy, backoff_us, verify_backoff_us
from orbit_server.pulse.tasks.decide.start import lease_over, withdraw
from orbit_server.pulse.tasks.decide.stop import cancelled, failed, may_have_effect, to_review
from orbit_server.pulse.tasks.lifecycle import (
    AttemptKind,
    AttemptState,
    ErrorCode,
    Recovery,
    ReviewClass,
    Said,
    TaskState,
)
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import PulseTimes


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended, as said by the worker or found by the server.

    `result` and `error` are canonical JSON (`error` is `{"code", "message", "details"}`); `digest` is of
    whichever is there. `effect_unknown` belongs to RETRYABLE; `asked_generation` to the answers of a
    verification.
    """

    said: Said
    result: str | None = None
    error: str | None = None
    digest: str = ""
    code: str | None = None
    effect_unknown: bool = True
    retry_after_ms: int | None = None
    asked_generation: int | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """What every decision here stands on."""

    now: int
    policy: RetryPolicy
    times: PulseTimes


_NO_EFFECT = frozenset(
    {Said.FINAL, Said.CANCELLED, Said.HAND_BACK, Said.DISCARDED, Said.NOT_STARTED, Said.NOT_DELIVERED}
)
_HANDED_BACK = frozenset({Said.HAND_BACK, Said.DISCARDED, Said.NOT_DELIVERED})
_STOPS = _HANDED_BACK | {Said.CANCELLED}


def finish(task: Task, attempt: Attempt, report: Report, ground: Ground) -> Move:
    """The end of the task's open attempt, which was started."""
    if task.probe_of is not None:
        return _probed(task, attempt, report, ground)
    return _finished(task, attempt, report, ground)


def _probed(task: Task, attempt: Attempt, report: Report, ground: Ground) -> Move:
    said = (report.said, report.result, report.error, report.digest)
    if attempt.kind is AttemptKind.VERIFY:
        return probe.answered(task, attempt, said, ground.now)
    return probe.ran(task, _finished(task, attempt, report, ground), said, ground.now)


def _finished(task: Task, attempt: Attempt, report: Report, ground: Ground) -> Move:
    if attempt.kind is AttemptKind.VERIFY:
        return _verified(task, attempt, report, ground)
    if report.said is Said.CANCELLED and task.state is not TaskState.CANCELLING:
        report = altered(report, said=Said.EXCEPTION)
    if report.said in _HANDED_BACK:
        return _handed_back(task, attempt, report, ground)
    effect = _may_have_effect(attempt, report)
    closed = close(attempt, report.said, ground.now, charged=True, effect=effect, error=report.error)
    after, body = _outcome(task, closed, report, ground)
    notes: tuple[Note, ...] = ()
    if report.said is Said.INVALID_RESULT:
        notes = (Note("INVALID_RESULT", report.result or report.error, report.digest, contradiction=False),)
    return Move(after, closed, body, notes)


def lease_ended(task: Task, attempt: Attempt, ground: Ground) -> Move | None:
    """Nobody renewed, or the attempt's time is over; None while the lease is still honoured."""
    if not lease_over(task, ground.now, ground.times):
        return None
    if attempt.state is AttemptState.OFFERED:
        return withdraw(task, attempt, ground.now, ground.times)
    return finish(task, attempt, Report(_why_ended(task.lease_until or 0, attempt)), ground)


def _why_ended(lease_until: int, attempt: Attempt) -> Said:
    """A lease that went as far as it could: the attempt's time is over, or its handler reported nothing."""
    if attempt.limit_at is not None and lease_until >= attempt.limit_at:
        return Said.TIMED_OUT
    until = attempt.progress_until
    return Said.NO_PROGRESS if until is not None and lease_until >= until else Said.LEASE_LOST


def late(task: Task, attempt: Attempt, report: Report, known_digest: str | None) -> Move | None:
    """A report of a closed attempt: None when it only repeats what is known, else evidence.

    `known_digest` is of the task's stored result. The success of a lost attempt is remembered on the task,
    unless its handler has no effects: no later failure is definite then.
    """
    if _repeats(task, attempt, report, known_digest):
        return None
    success = report.said in (Said.SUCCEEDED, Said.HAPPENED, Said.INVALID_RESULT)
    contradiction = success and task.state in (TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED)
    contradiction = contradiction or (
        task.state is TaskState.SUCCEEDED and attempt.outcome is not Said.LEASE_LOST
    )
    note = Note(f"LATE_{report.said}", report.result or report.error, report.digest, contradiction)
    flagged = task
    had_effect = attempt.kind is AttemptKind.RUN and attempt.recovery is not Recovery.READ_ONLY
    if success and had_effect and heeds_late_success(task):
        flagged = altered(task, late_success=True)
    return Move(flagged, notes=(note,))


def heeds_late_success(task: Task) -> bool:
    """Whether the stored success of another attempt of its effect key changes what may be decided here."""
    if task.recovery is Recovery.READ_ONLY or task.late_success:
        return False
    return task.state is not TaskState.SUCCEEDED


def _repeats(task: Task, attempt: Attempt, report: Report, known_digest: str | None) -> bool:
    # Outside a cancel a stop is recorded as what it then is: an exception.
    as_recorded = Said.EXCEPTION if report.said is Said.CANCELLED else report.said
    if attempt.outcome not in (report.said, as_recorded):
        return False
    if report.said in (Said.SUCCEEDED, Said.HAPPENED):
        return known_digest == report.digest and task.state is TaskState.SUCCEEDED
    return attempt.error == report.error


def _may_have_effect(attempt: Attempt, report: Report) -> bool:
    """Whether this end leaves it open (or certain) that the attempt had an effect."""
    if attempt.recovery is Recovery.READ_ONLY or report.said in _NO_EFFECT:
        return False
    if attempt.recovery is Recovery.MARKED and attempt.marked_at is None:
        return False
    if report.said is Said.RETRYABLE:
        return report.effect_unknown
    return True


def _outcome(task: Task, closed: Attempt, report: Report, ground: Ground) -> tuple[Task, Body | None]:
    now = ground.now
    if report.said is Said.SUCCEEDED:
        after = to(task, TaskState.SUCCEEDED, now, error_code=None)
        return after, Body(result=report.result, digest=report.digest)
    error = Body(error=report.error, digest=report.digest)
    if report.said is Said.FINAL:
        code = report.code or Said.FINAL.value
        if task.late_success and not task.detached:
            return to_review(task, now, ErrorCode.LATE_SUCCESS), None
        return failed(task, now, code, effect_possible=False), error
    held = altered(task, effect_possible=task.effect_possible or closed.effect_possible)
    if task.detached:
        return cancelled(held, now), None
    if report.said is Said.INVALID_RESULT:
        return to_review(held, now, ErrorCode.INVALID_RESULT, ReviewClass.UNMAPPED), None
    if report.said is Said.NEEDS_PERSON:
        review_class = ReviewClass.UNKNOWN if may_have_effect(held) else ReviewClass.DEFINITE
        return to_review(held, now, report.code or ErrorCode.NEEDS_PERSON, review_class), None
    if report.said is Said.NEEDS_VERIFICATION:
        return _verify_or_review(held, ground), None
    if task.state is TaskState.CANCELLING:
        return _stopped(held, closed, report, ground), None
    if report.said is Said.RETRYABLE and not report.effect_unknown:
        return _retry_or_end(held, closed, report, ground, error)
    return _by_level(held, closed, report, ground, error)


def _stopped(task: Task, closed: Attempt, report: Report, ground: Ground) -> Task:
    """A cancelled task's attempt ended without a result: CANCELLED only where nothing can have happened."""
    if report.said in _STOPS or not closed.effect_possible:
        if may_have_effect(task):
            return to_review(task, ground.now, ErrorCode.EFFECT_UNKNOWN)
        return cancelled(task, ground.now)
    return _verify_or_review(task, ground)


def _by_level(
    task: Task, closed: Attempt, report: Report, ground: Ground, error: Body
) -> tuple[Task, Body | None]:
    """The end is unknown: what may be repeated is what the recovery level allows."""
    if closed.recovery is Recovery.IDEMPOTENT or not closed.effect_possible:
        return _retry_or_end(task, closed, report, ground, error)
    if closed.recovery in (Recovery.VERIFIABLE, Recovery.MARKED):
        return _verify_or_review(task, ground), None
    return to_review(task, ground.now, ErrorCode.EFFECT_UNKNOWN), None


def _retry_or_end(
    task: Task, closed: Attempt, report: Report, ground: Ground, error: Body | None
) -> tuple[Task, Body | None]:
    """Another attempt while attempts and time last; then FAILED, if that is definite."""
    now = ground.now
    code = ErrorCode.ATTEMPTS_EXHAUSTED
    if task.attempts_used < task.attempts_max:
        wait = backoff_us(ground.policy, task.attempts_used, closed.id, ground.times.backoff_floor_ms)
        due_at = now + max(wait, (report.retry_after_ms or 0) * 1000)
        if not too_late(task, due_at):
            return to(
                task, TaskState.RETRY_WAIT, now, attempt_id=None, due_at=due_at, error_code=report.code
            ), None
        code = ErrorCode.EXPIRED
    if may_have_effect(task):
        return to_review(
            task, now, ErrorCode.LATE_SUCCESS if task.late_success else ErrorCode.EFFECT_UNKNOWN
        ), None
    return failed(task, now, code), error


def _verify_or_review(task: Task, ground: Ground) -> Task:
    if not task.can_verify:
        return to_review(task, ground.now, ErrorCode.EFFECT_UNKNOWN)
    return to(
        task,
        TaskState.VERIFYING,
        ground.now,
        attempt_id=None,
        verify_deadline_at=ground.now + ground.times.verify_within_ms * 1000,
    )


def _handed_back(task: Task, attempt: Attempt, report: Report, ground: Ground) -> Move:
    """Started and given back with nothing left open: not charged a few times, then like any other attempt."""
    free = task.uncharged < ground.times.uncharged_attempts
    closed = close(attempt, report.said, ground.now, charged=not free, error=report.error)
    loose = (
        altered(task, attempts_used=task.attempts_used - 1, uncharged=task.uncharged + 1) if free else task
    )
    if task.detached:
        return Move(cancelled(loose, ground.now), closed)
    if task.state is TaskState.CANCELLING:
        return Move(_stopped(loose, closed, report, ground), closed)
    if free:
        after = to(loose, TaskState.READY, ground.now, attempt_id=None, virtual_start=ground.now)
        return Move(after, closed)
    error = Body(error=report.error, digest=report.digest)
    after, body = _retry_or_end(loose, closed, report, ground, error)
    return Move(after, closed, body)


def _verified(task: Task, attempt: Attempt, report: Report, ground: Ground) -> Move:
    """An answer to "did it happen?", or the end of an attempt that gave none."""
    now = ground.now
    closed = close(attempt, report.said, now, charged=False, error=report.error)
    about = report.asked_generation
    if about is not None and about != attempt.asked_generation:
        note = Note(
            "VERIFY_OTHER_GENERATION", report.result or report.error, report.digest, contradiction=False
        )
        return Move(_ask_again(task, closed, ground), closed, notes=(note,))
    if report.said in (Said.HAPPENED, Said.SUCCEEDED):
        after = to(task, TaskState.SUCCEEDED, now, error_code=None)
        return Move(after, closed, Body(result=report.result, digest=report.digest))
    if report.said is Said.CANNOT_HAPPEN_ANY_MORE:
        after, body = _cannot_happen(task, closed, report, ground)
        return Move(after, closed, body)
    if report.said is Said.INVALID_RESULT:
        note = Note("INVALID_RESULT", report.result or report.error, report.digest, contradiction=False)
        if task.detached:
            return Move(cancelled(task, now), closed, notes=(note,))
        return Move(
            to_review(task, now, ErrorCode.INVALID_RESULT, ReviewClass.UNMAPPED), closed, notes=(note,)
        )
    if report.said is Said.NEEDS_PERSON and not task.detached:
        return Move(to_review(task, now, report.code or ErrorCode.NEEDS_PERSON), closed)
    return Move(_ask_again(task, closed, ground), closed)


def _cannot_happen(task: Task, closed: Attempt, report: Report, ground: Ground) -> tuple[Task, Body | None]:
    if task.late_success and not task.detached:
        return to_review(task, ground.now, ErrorCode.LATE_SUCCESS), None
    clean = altered(task, effect_possible=False)
    if task.cancel_requested or task.detached:
        return cancelled(clean, ground.now), None
    return _retry_or_end(clean, closed, report, ground, Body(error=report.error, digest=report.digest))


def _ask_again(task: Task, closed: Attempt, ground: Ground) -> Task:
    now = ground.now
    if task.detached:
        return cancelled(task, now)
    limit = task.verify_deadline_at or now + ground.times.verify_within_ms * 1000
    asked_for = now - (limit - ground.times.verify_within_ms * 1000)
    wait = verify_backoff_us(
        asked_for,
        closed.id,
        min_ms=ground.times.verify_backoff_min_ms,
        max_ms=ground.times.verify_backoff_max_ms,
    )
    if now + wait > limit:
        return to_review(task, now, ErrorCode.VERIFICATION_EXHAUSTED)
    return to(task, TaskState.VERIFYING, now, attempt_id=None, due_at=now + wait, verify_deadline_at=limit)
