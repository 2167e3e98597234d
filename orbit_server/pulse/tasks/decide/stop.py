"""Ending a task from outside: expiry, cancel, detach, and a person's decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orbit_sdk.engine.records import altered
from orbit_server.pulse.tasks.decide.move import Body, Move, close, last_start_of, to
from orbit_server.pulse.tasks.decide.probe import unasked
from orbit_server.pulse.tasks.lifecycle import (
    TERMINAL,
    VERIFIED,
    WAITING,
    ErrorCode,
    ReviewClass,
    Said,
    TaskState,
)
from orbit_server.pulse.tasks.records import Attempt, Task


def may_have_effect(task: Task) -> bool:
    """A closed attempt may have had an effect, or evidence says so (never of a READ_ONLY attempt)."""
    return task.effect_possible or task.late_success


def to_review(
    task: Task, now: int, code: str, review_class: ReviewClass = ReviewClass.UNKNOWN, **changes: object
) -> Task:
    """The task as a person will find it."""
    return to(task, TaskState.NEEDS_REVIEW, now, review_class=review_class, error_code=code, **changes)


def failed(task: Task, now: int, code: str, **changes: object) -> Task:
    """Definitely failed."""
    return to(task, TaskState.FAILED, now, error_code=code, **changes)


def cancelled(task: Task, now: int, **changes: object) -> Task:
    """Ended without an effect, because somebody asked for it or nobody waits any more."""
    code = ErrorCode.DETACHED if task.detached else ErrorCode.CANCELLED
    return to(task, TaskState.CANCELLED, now, error_code=code, **changes)


def expire(task: Task, now: int) -> Move:
    """No start is possible any more: EXPIRED, or a person when an attempt may have had an effect."""
    if may_have_effect(task):
        return Move(to_review(task, now, ErrorCode.EXPIRED))
    return Move(to(task, TaskState.EXPIRED, now, error_code=ErrorCode.EXPIRED))


def deadline(task: Task, now: int) -> Move | None:
    """The task's `deadline_at` has passed; None when it has not, or does not count here."""
    if task.state in WAITING:
        limit = last_start_of(task)
        return expire(task, now) if limit is not None and now > limit else None
    if task.state in VERIFIED and task.attempt_id is None:
        limit = task.verify_deadline_at
        if limit is not None and now > limit:
            if task.probe_of is not None:
                return unasked(task, now)
            return Move(to_review(task, now, ErrorCode.VERIFICATION_EXHAUSTED))
    return None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What a cancel did. `tell`: a worker runs it and has to be asked to stop."""

    move: Move | None
    tell: bool = False


def cancel(task: Task, attempt: Attempt | None, now: int) -> Cancelled:
    """Cancel what has not started, ask what runs. Asking again changes nothing.

    `attempt` is the open one, if any.
    """
    if task.state in TERMINAL or task.cancel_requested:
        return Cancelled(None)
    if task.state is TaskState.NEEDS_REVIEW:
        return Cancelled(Move(altered(task, cancel_requested=True, revision=task.revision + 1)))
    if task.probe_of is not None and task.state is TaskState.VERIFYING and attempt is None:
        return Cancelled(Move(cancelled(task, now, cancel_requested=True)))
    if task.state in (TaskState.RUNNING, TaskState.VERIFYING):
        after = to(
            task,
            TaskState.CANCELLING,
            now,
            cancel_requested=True,
            due_at=task.due_at,
            lease_until=task.lease_until,
            verify_deadline_at=task.verify_deadline_at,
        )
        return Cancelled(Move(after), tell=task.state is TaskState.RUNNING)
    closed = None if attempt is None else close(attempt, Said.NOT_STARTED, now, charged=False)
    if may_have_effect(task):
        after = to_review(task, now, ErrorCode.EFFECT_UNKNOWN, cancel_requested=True)
    else:
        after = cancelled(task, now, cancel_requested=True)
    return Cancelled(Move(after, closed))


def detach(task: Task, attempt: Attempt | None, now: int) -> Move | None:
    """The workflow no longer waits for this task (its query lost to a receipt): it never becomes a review.

    Unstarted it is cancelled, started it settles on its own without a further attempt.
    """
    if task.state in TERMINAL or task.detached:
        return None
    loose = altered(task, detached=True)
    if task.attempt_id is not None and task.state is not TaskState.OFFERED:
        return Move(altered(loose, revision=task.revision + 1))
    if task.state is TaskState.VERIFYING:
        loose = to(loose, TaskState.CANCELLING, now)
    closed = None if attempt is None else close(attempt, Said.NOT_STARTED, now, charged=False)
    return Move(cancelled(loose, now), closed)


class Verdict(StrEnum):
    """What a person may decide about a task in review."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class Resolution:
    """A decision on a review: `body` is what the task's result or error becomes, `code` its error code."""

    verdict: Verdict
    body: Body | None = None
    code: str | None = None


def resolve(task: Task, resolution: Resolution, now: int) -> Move | None:
    """Settle a task in review; None when it is not in review."""
    if task.state is not TaskState.NEEDS_REVIEW:
        return None
    state = TaskState(resolution.verdict.value)
    code = None if state is TaskState.SUCCEEDED else resolution.code or ErrorCode.RESOLVED
    return Move(to(task, state, now, error_code=code), body=resolution.body)
