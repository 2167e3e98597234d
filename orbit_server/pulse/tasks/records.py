"""The rows of a task as frozen values; every field is the column of that name."""

from __future__ import annotations

from orbit_sdk.values.ids import Id
from orbit_sdk.values.record import record
from orbit_server.pulse.tasks.lifecycle import (
    AttemptKind,
    AttemptState,
    Recovery,
    ReviewClass,
    Said,
    TaskState,
)


@record(frozen=True, slots=True)
class Task:
    """The hot row. Instants are UTC microseconds, durations milliseconds.

    `blocked` is a set of `Block` causes, meaningful while READY or waiting to be verified. `due_at`,
    `deadline_at` and `lease_until` are set exactly while a loop has to look at them. `attempts_used` counts
    charged starts; `effect_possible` says that a closed attempt may have had an effect; `late_success` that
    stored evidence says so. `revision` counts what others must see; leases and renewals do not move it.
    """

    id: Id
    namespace_id: Id
    queue_id: Id
    queue: str
    handler: str
    handler_version: int
    state: TaskState
    blocked: int
    gate: int
    priority: int
    virtual_start: int
    due_at: int | None
    deadline_at: int | None
    latest_start_at: int | None
    total_deadline_at: int | None
    attempt_timeout_ms: int
    attempts_used: int
    attempts_max: int
    uncharged: int
    generation: int
    recovery: Recovery
    can_verify: bool
    verify_deadline_at: int | None
    attempt_id: Id | None
    lease_until: int | None
    cancel_requested: bool
    effect_possible: bool
    late_success: bool
    detached: bool
    review_class: ReviewClass | None
    error_code: str | None
    instance_id: Id | None
    activation_id: Id | None
    step_key: str | None
    round: int
    business_key: str | None
    concurrency_key: str | None
    fairness_key: str | None
    revision: int
    created_at: int
    settled_at: int | None
    last: int
    counted: int = 0
    """In which backlogs it counts (`limits.rows.Counted`)."""
    probe_of: Id | None = None
    """The task that it finds out about (`decide/probe.py`); with `can_verify` it asks that task's verify
    handler.
    """


@record(frozen=True, slots=True)
class Attempt:
    """One authorisation to run or to verify. `generation` rises with every attempt of the task and fences it.

    `nonce` is of the worker process that it was offered to. The lease in force is the task's; `lease_until`
    here is the one granted with the offer, the start or the last reconnect. `outcome`, `charged` and `error`
    (canonical JSON) are final once the state is CLOSED, and `session_id` is then null. `progress_at` is kept
    only where the handler declares a progress time-out.
    """

    id: Id
    task_id: Id
    namespace_id: Id
    attempt_no: int
    generation: int
    kind: AttemptKind
    state: AttemptState
    session_id: Id | None
    worker: str | None
    build: str | None
    nonce: str | None
    recovery: Recovery
    offered_at: int
    started_at: int | None
    lease_until: int
    limit_at: int | None
    marked_at: int | None
    closed_at: int | None
    outcome: Said | None
    charged: bool
    effect_possible: bool
    error: str | None
    permits: str | None
    asked_generation: int | None
    progress_timeout_ms: int | None = None
    progress_at: int | None = None

    @property
    def progress_until(self) -> int | None:
        """The attempt is over after this instant unless its handler reports progress (None: no such rule)."""
        if self.progress_timeout_ms is None or self.started_at is None:
            return None
        return (self.progress_at or self.started_at) + self.progress_timeout_ms * 1000


@record(frozen=True, slots=True)
class TaskSpec:
    """What was accepted, written once. `parameters`, `policy` and `labels` are canonical JSON.

    `policy` is the effective retry policy in force for the task's whole life (see `RetryPolicy`), `trace` the
    W3C trace context of the submitter.
    """

    task_id: Id
    parameters: str
    digest: str
    policy: str | None
    effect_key: str
    labels: str | None
    parameters_version: int
    submitted_by: str | None
    retry_of: Id | None
    idempotency_id: Id | None
    trace: str | None = None
    linked_to: Id | None = None
    """An earlier task that this one stands for, with other parameters."""


@record(frozen=True, slots=True)
class TaskResult:
    """How a settled task ended: exactly one of `result` and `error` (canonical JSON), written once."""

    task_id: Id
    result: str | None
    error: str | None
    digest: str | None
    at: int


@record(frozen=True, slots=True)
class Progress:
    """The latest progress (canonical JSON) that any attempt of the task reported."""

    task_id: Id
    attempt_id: Id
    body: str
    at: int


@record(frozen=True, slots=True)
class Evidence:
    """What was reported beside the decided course: late, different, unusable. `contradiction`: it denies the
    state.
    """

    id: Id
    task_id: Id
    attempt_id: Id | None
    namespace_id: Id
    kind: str
    body: str | None
    digest: str | None
    contradiction: bool
    at: int


@record(frozen=True, slots=True)
class Peer:
    """Another task of the same effect key: `id` is that task, `task_id` the one it was asked for."""

    id: Id
    task_id: Id


@record(frozen=True, slots=True)
class InboxRow:
    """A change of a task that its workflow must see. `state`: PENDING, APPLIED, STALE or ERROR."""

    id: Id
    namespace_id: Id
    instance_id: Id
    task_id: Id
    activation_id: Id
    source_revision: int
    state: str
    created_at: int
