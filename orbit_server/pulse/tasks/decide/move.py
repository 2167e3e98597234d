"""What a decision answers, and the one place where a task takes its next form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orbit_sdk.engine.records import altered
from orbit_server.pulse.tasks.lifecycle import (
    LEGAL_MOVES,
    TERMINAL,
    VERIFIED,
    WAITING,
    AttemptState,
    Block,
    Said,
    TaskState,
)
from orbit_server.pulse.tasks.records import Attempt, Task


class IllegalMove(Exception):
    """A decision wanted a move that the table of the lifecycle does not have (a bug)."""


@dataclass(frozen=True, slots=True)
class Body:
    """How a settled task ended: canonical JSON of its result or of its error."""

    result: str | None = None
    error: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A piece of evidence to keep. `digest` is of the whole body, of which `body` may be a part."""

    kind: str
    body: str | None
    digest: str
    contradiction: bool


@dataclass(frozen=True, slots=True)
class Move:
    """The next form of the task and of the attempt concerned; and what to store beside them."""

    task: Task
    attempt: Attempt | None = None
    body: Body | None = None
    notes: tuple[Note, ...] = ()


def to(task: Task, state: TaskState, now: int, **changes: Any) -> Task:
    """The task in its next state, one revision on, with the fields that loops and claims look for made to
    fit.

    Raises:
        IllegalMove: the lifecycle has no such move.
    """
    if state is not task.state and state not in LEGAL_MOVES[task.state]:
        raise IllegalMove(f"{task.state} to {state}")
    changes["revision"] = task.revision + 1
    return shaped(task, state, now, changes)


def shaped(task: Task, state: TaskState, now: int, changes: dict[str, Any]) -> Task:
    """`changes` applied, and what follows from the state: due, deadline, lease, blocked, settled."""
    if state in TERMINAL or state is TaskState.NEEDS_REVIEW:
        changes |= _AT_REST
        if state in TERMINAL:
            changes["settled_at"] = now
            changes["review_class"] = None
        return altered(task, state=state, **changes)
    attempt_id = changes.get("attempt_id", task.attempt_id)
    if attempt_id is None:
        changes["lease_until"] = None
    due_at = changes.setdefault("due_at", None)
    if state in WAITING:
        changes["deadline_at"] = last_start_of(task)
    elif state in VERIFIED and attempt_id is None:
        changes["deadline_at"] = changes.get("verify_deadline_at", task.verify_deadline_at)
    else:
        changes["deadline_at"] = None
    if state not in VERIFIED:
        changes["verify_deadline_at"] = None
    changes["blocked"] = _blocked(
        state,
        changes.get("gate", task.gate),
        attempt_id is not None,
        due_at is not None,
        task.blocked & Block.KEY,
    )
    return altered(task, state=state, **changes)


def last_start_of(task: Task) -> int | None:
    """The last instant at which an attempt may start, or None without a limit."""
    latest, total = task.latest_start_at, task.total_deadline_at
    if latest is None or total is None:
        return total if latest is None else latest
    return min(latest, total)


def too_late(task: Task, at: int) -> bool:
    """A start at this instant would be after the latest start or the total deadline."""
    limit = last_start_of(task)
    return limit is not None and at > limit


def close(
    attempt: Attempt, said: Said, now: int, *, charged: bool, effect: bool = False, error: str | None = None
) -> Attempt:
    """The attempt as it ended. Closing frees its session and every permit."""
    return altered(
        attempt,
        state=AttemptState.CLOSED,
        session_id=None,
        closed_at=now,
        outcome=said,
        charged=charged,
        effect_possible=effect,
        error=error,
        permits=None,
    )


_AT_REST: dict[str, Any] = {
    "due_at": None,
    "deadline_at": None,
    "lease_until": None,
    "attempt_id": None,
    "blocked": 0,
    "verify_deadline_at": None,
}


def _blocked(state: TaskState, gate: int, held: bool, backing_off: bool, key: int) -> int:
    """Causes as a plain number. A verification is held by nothing but an open attempt or its own back-off."""
    if state in VERIFIED:
        return int(Block.HELD if held else Block.NOT_DUE if backing_off else Block.NONE)
    if state not in WAITING:
        return int(key)
    blocked = key
    if gate:
        blocked |= Block.GATE
    if backing_off and state is TaskState.READY:
        blocked |= Block.NOT_DUE
    return int(blocked)
