"""Wire models of tasks, their attempts and their reviews."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from orbit_sdk.protocol.common import (
    Answer,
    BusinessKey,
    Counter,
    ErrorCode,
    EvidenceText,
    HandlerName,
    Id,
    IdempotencyKey,
    Instant,
    Labels,
    Managed,
    Message,
    QueueName,
    Request,
)
from orbit_sdk.protocol.workflows import Basis, Version
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.limits import DEFAULT_LIMITS

TaskState = Literal[
    "SCHEDULED",
    "READY",
    "OFFERED",
    "RUNNING",
    "RETRY_WAIT",
    "VERIFYING",
    "CANCELLING",
    "NEEDS_REVIEW",
    "SUCCEEDED",
    "FAILED",
    "CANCELLED",
    "EXPIRED",
]
RecoveryName = Literal["READ_ONLY", "IDEMPOTENT", "VERIFIABLE", "MARKED", "CONSERVATIVE"]
DurationMs = Annotated[int, Field(ge=1, le=DEFAULT_LIMITS.total_ms)]
TraceParent = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")
]


class RetryPolicy(Request):
    """How often and how fast an attempt is repeated; every field has the documented default."""

    max_attempts: Annotated[int, Field(ge=1, le=DEFAULT_LIMITS.attempts)] = DEFAULTS.attempts
    backoff_ms: DurationMs = DEFAULTS.backoff_ms
    factor_percent: Annotated[int, Field(ge=100, le=1000)] = DEFAULTS.backoff_factor_percent
    max_backoff_ms: DurationMs = DEFAULTS.max_backoff_ms
    jitter_percent: Annotated[int, Field(ge=0, le=100)] = DEFAULTS.jitter_percent


class SubmitTask(Request):
    """One piece of work. At most one of `delay_ms` and `run_at`; neither means now."""

    queue: QueueName
    handler: HandlerName
    handler_version: Version
    parameters: dict[str, JsonValue] = {}
    parameters_version: Version = 1
    recovery: RecoveryName = "CONSERVATIVE"
    can_verify: bool = False
    delay_ms: DurationMs | None = None
    run_at: Instant | None = None
    start_within_ms: DurationMs | None = None
    attempt_timeout_ms: DurationMs = DEFAULTS.attempt_timeout_ms
    total_timeout_ms: DurationMs = DEFAULTS.total_timeout_ms
    retry: RetryPolicy = RetryPolicy()
    priority: Annotated[int, Field(ge=0, le=9)] = DEFAULTS.priority
    business_key: BusinessKey | None = None
    concurrency_key: BusinessKey | None = None
    fairness_key: BusinessKey | None = None
    labels: Labels = {}
    linked_to: Id | None = None
    """An earlier task that this one stands for, with other parameters: the earlier one is never edited."""
    traceparent: TraceParent | None = None
    """W3C trace context of the caller; it is no part of what makes two submissions equal."""


class SubmitItem(SubmitTask):
    idempotency_key: IdempotencyKey


class SubmitBatch(Request):
    items: Annotated[list[SubmitItem], Field(min_length=1, max_length=1000)]


class Task(Answer):
    id: Id
    queue: str
    handler: str
    handler_version: int
    state: TaskState
    cancel_requested: bool
    priority: int
    attempts_used: int
    attempts_max: int
    revision: Counter
    review_class: str | None = None
    error_code: str | None = None
    due_at: Instant | None = None
    business_key: str | None = None
    workflow_id: Id | None = None
    step_key: str | None = None
    round: int | None = None
    probe_of: Id | None = None
    created_at: Instant
    settled_at: Instant | None = None


class TaskError(Answer):
    code: str
    message: str | None = None


class Evidence(Answer):
    """A late or contradicting report: stored, shown, never applied by itself."""

    id: Id
    attempt_id: Id | None = None
    kind: str
    contradiction: bool
    at: Instant
    body: JsonValue = None


class TaskChoice(Answer):
    """One decision of a person. `needs_evidence`: an effect may have happened, so evidence has to be named;
    `reason` says why it is not allowed, or what to heed.
    """

    verdict: Literal["SUCCEEDED", "FAILED", "CANCELLED", "RETRY"]
    allowed: bool
    needs_evidence: bool = False
    reason: str | None = None


class TaskDetail(Task):
    """`decisions` is there where a person may decide something: in review, and to retry what has failed."""

    parameters: JsonValue = None
    parameters_version: int = 1
    result: JsonValue = None
    error: TaskError | None = None
    effect_key: str
    recovery: str
    labels: dict[str, str] = {}
    retry_of: Id | None = None
    linked_to: Id | None = None
    evidence: list[Evidence] = []
    decisions: list[TaskChoice] = []


class Attempt(Answer):
    id: Id
    attempt_no: int
    generation: Counter
    kind: Literal["RUN", "VERIFY"]
    state: Literal["OFFERED", "RUNNING", "CLOSED"]
    outcome: str | None = None
    charged: bool
    worker: str | None = None
    build: str | None = None
    offered_at: Instant
    started_at: Instant | None = None
    progress_at: Instant | None = None
    progress_timeout_ms: int | None = None
    marked_at: Instant | None = None
    closed_at: Instant | None = None
    error: JsonValue = None


class CancelTask(Managed):
    """Why, and for whom."""


class ResolveTask(Managed):
    """A person's decision on a standalone task in review. RETRY makes a new task with `retry_of`.

    `adopt` names stored evidence of the task instead of a `result`; for every verdict but SUCCEEDED it has to
    say that no effect can happen any more.
    """

    verdict: Literal["SUCCEEDED", "FAILED", "CANCELLED", "RETRY"]
    expected_revision: Counter
    basis: Basis
    evidence: EvidenceText | None = None
    result: JsonValue = None
    adopt: Id | None = None
    code: ErrorCode | None = None
    message: Message | None = None
