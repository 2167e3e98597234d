"""What a decision answers: the new facts, and orders to the shell. Data only; the shell stores and obeys."""

from __future__ import annotations

from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.state import Instance, Signal, Step
from orbit_sdk.errors import Code, Detail
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.record import record


@record(frozen=True, slots=True)
class Retry:
    max_attempts: int
    backoff_ms: int
    factor_percent: int
    max_backoff_ms: int
    jitter_percent: int


@record(frozen=True, slots=True)
class CreateTask:
    """Order: create the Pulse task of an activation. Instants are absolute.
    Its gate is open: a paused instance creates no tasks.

    `handler` is the handler's name. `effect_key` is derived from (root, step key, round) and is the same over
    re-activations. `attempts_max` is what is left.
    """

    task_id: str
    activation_id: str
    step_key: str
    round: int
    handler: str
    handler_version: int
    queue: str
    parameters: Json
    recovery: str
    can_verify: bool
    retry: Retry
    attempts_max: int
    attempt_timeout_ms: int
    total_deadline_at: int
    latest_start_at: int | None
    priority: int
    effect_key: str
    concurrency_key: str | None = None
    fairness_key: str | None = None


@record(frozen=True, slots=True)
class CancelTask:
    """Order: cancel what has not started, ask what runs."""

    task_id: str
    reason: str


@record(frozen=True, slots=True)
class DetachTask:
    """Order: nobody waits for this query any more; unstarted it is cancelled, else it settles alone."""

    task_id: str


@record(frozen=True, slots=True)
class GateTasks:
    """Order: close (pause) or open (resume) the gate on these live tasks."""

    task_ids: tuple[str, ...]
    closed: bool


@record(frozen=True, slots=True)
class SettleTask:
    """Order: a review decision settles the old task. `phase` SUCCEEDED (with result), FAILED or CANCELLED.

    Nothing to do when the task settled meanwhile.
    """

    task_id: str
    phase: str
    reason: str
    result: Json = None
    error_code: str | None = None
    error_message: str | None = None


Effect = CreateTask | CancelTask | DetachTask | GateTasks | SettleTask


@record(frozen=True, slots=True)
class StepChange:
    before: Step | None
    after: Step


@record(frozen=True, slots=True)
class SignalChange:
    """`before` is None for a signal this decision accepted."""

    before: Signal | None
    after: Signal


@record(frozen=True, slots=True)
class Payload:
    """A value the engine made that must be stored: `kind` is result, failure, output or input."""

    id: str
    kind: str
    body: Json


@record(frozen=True, slots=True)
class Event:
    """A timeline event, as seed types: `aggregate_kind` workflow | workflow_step | workflow_signal."""

    id: str
    aggregate_kind: str
    aggregate_id: str
    aggregate_revision: int
    type: str
    state_scope: str
    state: str
    payload: dict[str, Json]
    step_key: str | None = None
    signal_id: str | None = None


@record(frozen=True, slots=True)
class Decision:
    """The new head plus everything that changed, in the order it happened.

    `applied` is False when the cause was stale (the shell marks its inbox row STALE). `output` is set exactly
    when the instance became SUCCEEDED, `error` (code, message) exactly when it became FAILED. `effects_kept`
    (cancel only) lists steps whose work had succeeded and stays done; those that only read are not listed.
    """

    before: Instance | None
    instance: Instance
    steps: tuple[StepChange, ...] = ()
    signals: tuple[SignalChange, ...] = ()
    payloads: tuple[Payload, ...] = ()
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
    applied: bool = True
    output: Json = None
    error: tuple[str, str] | None = None
    effects_kept: tuple[str, ...] = ()
    transitions: int = 0


@record(frozen=True, slots=True)
class Refusal:
    """The command is not allowed now; nothing changes. `code` is a code of `orbit_sdk.errors`."""

    code: Code
    message: str
    details: tuple[Detail, ...] = ()


@record(frozen=True, slots=True)
class Missing:
    """The decision needs facts, closed steps (by key) or signal bodies (by signal id) that the caller did not
    load.

    Load them and decide again; everything that is known to be needed is named at once.
    """

    facts: frozenset[FactKey] = frozenset()
    steps: frozenset[str] = frozenset()
    signals: frozenset[str] = frozenset()


Answer = Decision | Refusal | Missing
