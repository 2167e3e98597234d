"""What a running workflow *is*: the facts the engine decides on.

Everything here is a frozen value. A server row, a simulated instance and a state met during exploration are
the same values, so that one engine serves them all. Nothing here knows a database, a clock or a socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.record import record


class InstanceState(StrEnum):
    """The summary of an instance, computed from facts in the order of `engine.summary`."""

    RUNNING = "RUNNING"
    WAITING = "WAITING"
    CANCELLING = "CANCELLING"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


TERMINAL_INSTANCE_STATES = frozenset({InstanceState.SUCCEEDED, InstanceState.FAILED, InstanceState.CANCELLED})


class StepState(StrEnum):
    """PENDING is a JOIN that waits for its arms; otherwise it and SKIPPED are only derived when read."""

    PENDING = "PENDING"
    WAITING_TASK = "WAITING_TASK"
    WAITING_SIGNAL = "WAITING_SIGNAL"
    WAITING_TIME = "WAITING_TIME"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    STOPPED = "STOPPED"


_S = StepState

STEP_MOVES: Final[Mapping[StepState, frozenset[StepState]]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED}),
        _S.WAITING_TASK: frozenset(
            {_S.WAITING_TIME, _S.NEEDS_REVIEW, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.WAITING_SIGNAL: frozenset({_S.NEEDS_REVIEW, _S.COMPLETED, _S.FAILED, _S.STOPPED}),
        _S.WAITING_TIME: frozenset({_S.WAITING_TASK, _S.NEEDS_REVIEW, _S.COMPLETED, _S.STOPPED}),
        _S.NEEDS_REVIEW: frozenset({_S.WAITING_TASK, _S.COMPLETED, _S.FAILED, _S.STOPPED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.SKIPPED: frozenset(),
        _S.STOPPED: frozenset(),
    }
)
"""What one activation may do next."""


class ReviewClass(StrEnum):
    """Why a person is asked."""

    UNKNOWN = "UNKNOWN"
    DEFINITE = "DEFINITE"
    EXPIRED = "EXPIRED"
    TIMEOUT = "TIMEOUT"
    UNMAPPED = "UNMAPPED"
    ENGINE_ERROR = "ENGINE_ERROR"


class ArmState(StrEnum):
    OPEN = "OPEN"
    DONE = "DONE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class SignalState(StrEnum):
    PENDING = "PENDING"
    CONSUMED = "CONSUMED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"


@record(frozen=True, slots=True)
class Instance:
    """The hot head of one workflow instance.

    `stopping` names the step whose definite failure is being settled; the instance becomes FAILED when all
    that was started is settled. `checkpoint` holds the exits that a long advance, or a pause, still has to
    follow, each as `"<step key>:<exit>"`, or `"<step key>:round"` for a round of a POLL that fell due during
    a pause; `advance_due_at` is set exactly while it must be continued by a scan. `effect_root` is what
    effect keys are made from: the id of this instance, or of the origin whose effects a restart keeps.
    """

    id: str
    namespace_id: str
    definition_id: str
    definition_version: int
    state: InstanceState
    started_at: int
    effect_root: str
    paused: bool = False
    cancel_requested: bool = False
    stopping: str | None = None
    control_version: int = 1
    revision: int = 1
    pending_signals: int = 0
    checkpoint: tuple[str, ...] = ()
    advance_due_at: int | None = None
    business_key: str | None = None
    ended_at: int | None = None
    last: int = 0


@record(frozen=True, slots=True)
class Granted:
    """What a person added to the definition's budgets. `attempts` belong to the present round of a POLL."""

    attempts: int = 0
    rounds: int = 0
    time_ms: int = 0


@record(frozen=True, slots=True)
class Step:
    """One activation of one node. The step itself is its latest activation; `revision` counts over all of
    them.

    `live` is true while the activation can still change (it waits, is in review, or is a JOIN with open
    arms). `result_ref` / `failure_ref` say where a value lies: `"T:<task id>"` (the task's stored result or
    error), `"S:<signal id>"` (a signal's body), `"P:<payload id>"` (a value the engine stored). `deadline_at`
    is absolute and survives re-activation: total deadline of a TASK, time-out of a WAIT, deadline of a POLL.
    `due_at` is the next instant at which time itself moves the step (timer, wait time-out, next round, poll
    deadline), or None. `task_revision` is the source revision of the last applied report of `task_id`.
    `granted` is in `deadline_at` already.
    """

    id: str
    instance_id: str
    step_key: str
    activation_no: int
    state: StepState
    live: bool
    opened_at: int
    revision: int = 1
    reason: str | None = None
    review_class: ReviewClass | None = None
    exit_taken: str | None = None
    task_id: str | None = None
    task_revision: int = 0
    round: int = 0
    attempts_spent: int = 0
    effect_possible: bool = False
    signal: str | None = None
    match_key: str | None = None
    deadline_at: int | None = None
    due_at: int | None = None
    arms: Mapping[str, ArmState] | None = None
    result_ref: str | None = None
    failure_ref: str | None = None
    closed_at: int | None = None
    granted: Granted | None = None


@record(frozen=True, slots=True)
class Signal:
    """The hot part of one accepted signal; `match_key` is `engine.matching.match_key(value)`.

    `leftover_of` is the step key of the wait that closed while this signal was pending and unaddressed.
    """

    id: str
    instance_id: str
    signal: str
    match_key: str
    state: SignalState
    accepted_at: int
    revision: int = 1
    step_key: str | None = None
    activation_id: str | None = None
    leftover_of: str | None = None
    expires_at: int | None = None
    disposition: str | None = None
    consumed_step: str | None = None
    consumed_wait_id: str | None = None


@record(frozen=True, slots=True)
class SignalBody:
    """The cold part of a signal: its body, and `meta` = {"actor", "accepted_at" (RFC 3339), "signal_id"}."""

    body: Json
    meta: Json


@record(frozen=True, slots=True)
class State:
    """What one decision sees: the head, the *live* steps by step key, and all PENDING signals (oldest first).

    `bodies` holds the bodies of pending signals where the caller loaded them; a decision that consumes one
    that is not there answers `Missing(signals=…)`.

    `closed` maps step keys to their latest, no longer live activation where the caller loaded it. An advance
    never needs it. AcceptSignal looks there for waits of that signal (`plan.waits`) that timed out, Cancel
    for work that stays done.
    """

    instance: Instance
    steps: Mapping[str, Step] = field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    closed: Mapping[str, Step] = field(default_factory=dict)
    bodies: Mapping[str, SignalBody] = field(default_factory=dict)
