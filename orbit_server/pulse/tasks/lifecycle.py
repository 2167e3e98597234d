"""The lifecycle of a task on one page: its states, what it may do next, and the words of its attempts.

The decisions themselves are pure functions in `decide/`; this table is what they all must respect.
"""

from __future__ import annotations

from enum import IntFlag, StrEnum
from types import MappingProxyType


class TaskState(StrEnum):
    SCHEDULED = "SCHEDULED"
    READY = "READY"
    OFFERED = "OFFERED"
    RUNNING = "RUNNING"
    RETRY_WAIT = "RETRY_WAIT"
    VERIFYING = "VERIFYING"
    CANCELLING = "CANCELLING"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


_S = TaskState

TERMINAL = frozenset({_S.SUCCEEDED, _S.FAILED, _S.EXPIRED, _S.CANCELLED})
WAITING = frozenset({_S.SCHEDULED, _S.READY, _S.RETRY_WAIT})
"""No attempt is open, and latest start and total deadline count."""
VERIFIED = frozenset({_S.VERIFYING, _S.CANCELLING})
"""A verify attempt may be open or wanted."""

LEGAL_MOVES: MappingProxyType[TaskState, frozenset[TaskState]] = MappingProxyType(
    {
        _S.SCHEDULED: frozenset({_S.READY, _S.EXPIRED, _S.CANCELLED, _S.NEEDS_REVIEW}),
        _S.READY: frozenset({_S.OFFERED, _S.RUNNING, _S.EXPIRED, _S.CANCELLED, _S.NEEDS_REVIEW}),
        _S.OFFERED: frozenset({_S.RUNNING, _S.READY, _S.EXPIRED, _S.CANCELLED, _S.NEEDS_REVIEW}),
        _S.RUNNING: frozenset(
            {
                _S.READY,
                _S.RETRY_WAIT,
                _S.VERIFYING,
                _S.CANCELLING,
                _S.NEEDS_REVIEW,
                _S.SUCCEEDED,
                _S.FAILED,
                _S.CANCELLED,
            }
        ),
        _S.RETRY_WAIT: frozenset({_S.READY, _S.EXPIRED, _S.CANCELLED, _S.NEEDS_REVIEW}),
        _S.VERIFYING: frozenset(
            {_S.CANCELLING, _S.RETRY_WAIT, _S.NEEDS_REVIEW, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED}
        ),
        _S.CANCELLING: frozenset({_S.VERIFYING, _S.NEEDS_REVIEW, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED}),
        _S.NEEDS_REVIEW: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED}),
        _S.SUCCEEDED: frozenset(),
        _S.FAILED: frozenset(),
        _S.EXPIRED: frozenset(),
        _S.CANCELLED: frozenset(),
    }
)


class Block(IntFlag):
    """Why a READY task (or one that waits to be verified) stands outside the ready index."""

    NONE = 0
    GATE = 1
    """Its workflow is paused."""
    KEY = 2
    """Its concurrency key has no room."""
    NOT_DUE = 4
    """It backs off before it is offered, or asked about, again."""
    HELD = 8
    """An attempt is open."""


class Recovery(StrEnum):
    """What may be repeated after a lost lease, a time-out or an unexpected exception."""

    READ_ONLY = "READ_ONLY"
    IDEMPOTENT = "IDEMPOTENT"
    VERIFIABLE = "VERIFIABLE"
    MARKED = "MARKED"
    CONSERVATIVE = "CONSERVATIVE"


REPEATABLE = frozenset({Recovery.READ_ONLY, Recovery.IDEMPOTENT})
_RANK = {
    Recovery.READ_ONLY: 0,
    Recovery.IDEMPOTENT: 1,
    Recovery.VERIFIABLE: 2,
    Recovery.MARKED: 2,
    Recovery.CONSERVATIVE: 3,
}


def stricter(left: Recovery, right: Recovery) -> Recovery:
    """The more conservative of what task and worker declare; two of one rank that differ count as neither."""
    if _RANK[left] != _RANK[right]:
        return left if _RANK[left] > _RANK[right] else right
    return left if left is right else Recovery.CONSERVATIVE


class AttemptKind(StrEnum):
    RUN = "RUN"
    VERIFY = "VERIFY"


class AttemptState(StrEnum):
    OFFERED = "OFFERED"
    RUNNING = "RUNNING"
    CLOSED = "CLOSED"


class Said(StrEnum):
    """How an attempt ended: what a worker reports, and below it what only the server can find."""

    SUCCEEDED = "SUCCEEDED"
    FINAL = "FINAL"
    RETRYABLE = "RETRYABLE"
    NEEDS_VERIFICATION = "NEEDS_VERIFICATION"
    NEEDS_PERSON = "NEEDS_PERSON"
    CANCELLED = "CANCELLED"
    HAND_BACK = "HAND_BACK"
    DISCARDED = "DISCARDED"
    EXCEPTION = "EXCEPTION"
    INVALID_RESULT = "INVALID_RESULT"
    HAPPENED = "HAPPENED"
    CANNOT_HAPPEN_ANY_MORE = "CANNOT_HAPPEN_ANY_MORE"
    CANNOT_TELL = "CANNOT_TELL"

    NOT_STARTED = "NOT_STARTED"
    NOT_DELIVERED = "NOT_DELIVERED"
    LEASE_LOST = "LEASE_LOST"
    TIMED_OUT = "TIMED_OUT"
    NO_PROGRESS = "NO_PROGRESS"


class ReviewClass(StrEnum):
    """Why a person is asked about a task."""

    UNKNOWN = "UNKNOWN"
    DEFINITE = "DEFINITE"
    UNMAPPED = "UNMAPPED"


class ErrorCode(StrEnum):
    """Orbit's own codes in `tasks.error_code`; any other code there is the handler's."""

    ATTEMPTS_EXHAUSTED = "ATTEMPTS_EXHAUSTED"
    EXPIRED = "EXPIRED"
    EFFECT_UNKNOWN = "EFFECT_UNKNOWN"
    LATE_SUCCESS = "LATE_SUCCESS"
    INVALID_RESULT = "INVALID_RESULT"
    NEEDS_PERSON = "NEEDS_PERSON"
    VERIFICATION_EXHAUSTED = "VERIFICATION_EXHAUSTED"
    CANCELLED = "CANCELLED"
    DETACHED = "DETACHED"
    RESOLVED_BY_RETRY = "RESOLVED_BY_RETRY"
    RESOLVED_BY_RECOVERY = "RESOLVED_BY_RECOVERY"
    RESOLVED = "RESOLVED"
    NOT_READ_ONLY = "NOT_READ_ONLY"
