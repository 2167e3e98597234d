"""Wire models of workflow instances, their steps, signals, control and reviews."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from orbit_sdk.protocol.common import (
    Answer,
    BusinessKey,
    Counter,
    Digest,
    ErrorBody,
    ErrorCode,
    EvidenceText,
    Id,
    IdempotencyKey,
    Instant,
    Labels,
    Managed,
    Message,
    OnBehalfOf,
    Request,
    SignalEvidence,
)

WorkflowState = Literal[
    "RUNNING", "WAITING", "CANCELLING", "NEEDS_REVIEW", "SUCCEEDED", "FAILED", "CANCELLED"
]
StepStateName = Literal[
    "PENDING",
    "WAITING_TASK",
    "WAITING_SIGNAL",
    "WAITING_TIME",
    "COMPLETED",
    "FAILED",
    "SKIPPED",
    "NEEDS_REVIEW",
    "STOPPED",
]
Basis = Literal["PROVEN", "ACCEPTED_RISK"]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]


class StartWorkflow(Request):
    """`version` absent: the current version, resolved once at first acceptance. `draft`: the digest of a
    draft, which is run instead of a published version.
    """

    definition_id: str
    version: Version | None = None
    draft: Digest | None = None
    input: JsonValue
    parameters_version: Version = 1
    business_key: BusinessKey | None = None
    labels: Labels = {}


class RestartWorkflow(Managed):
    """A new instance from an origin. `effects` SAME: it means the very effects of the origin, which must have
    ended; NEW: other effects. `version` absent: the origin's; `input` absent: the origin's. `dry_run` answers
    what would follow and does nothing.
    """

    effects: Literal["SAME", "NEW"]
    version: Version | None = None
    input: JsonValue = None
    dry_run: bool = False


class StartItem(StartWorkflow):
    idempotency_key: IdempotencyKey


class StartBatch(Request):
    items: Annotated[list[StartItem], Field(min_length=1, max_length=1000)]


class Workflow(Answer):
    """The summary; `paused` and `cancel_requested` are shown beside the state. `draft`: it runs a draft, and
    its version is only what that says.
    """

    id: Id
    definition_id: str
    definition_version: int
    draft: bool = False
    state: WorkflowState
    paused: bool
    cancel_requested: bool
    control_version: Counter
    revision: Counter
    business_key: str | None = None
    started_at: Instant
    ended_at: Instant | None = None


class WorkflowError(Answer):
    code: str
    message: str


class WorkflowDetail(Workflow):
    input: JsonValue
    output: JsonValue = None
    error: WorkflowError | None = None
    labels: dict[str, str] = {}
    started_by: str
    parameters_version: int = 1


class BatchItem(Answer):
    """One result per item, in input order: either the workflow (or task) id or an error."""

    id: Id | None = None
    error: ErrorBody | None = None


class BatchResult(Answer):
    items: list[BatchItem]


class Step(Answer):
    """One user-defined step as it stands: `task_state` is the task's own phase."""

    key: str
    kind: str
    title: str | None = None
    state: StepStateName
    activation_id: Id | None = None
    activation_no: int = 0
    revision: Counter = 0
    reason: str | None = None
    review_class: str | None = None
    exit: str | None = None
    task_id: Id | None = None
    task_state: str | None = None
    round: int | None = None
    signal: str | None = None
    match: str | int | None = None
    due_at: Instant | None = None
    deadline_at: Instant | None = None
    opened_at: Instant | None = None
    closed_at: Instant | None = None


class StepDetail(Step):
    result: JsonValue = None
    failure: JsonValue = None


class Steps(Answer):
    workflow_id: Id
    revision: Counter
    items: list[Step]


class SignalContent(Request):
    """What a signal says. `on_behalf_of` names whom the caller acts for, and needs `act:on-behalf`."""

    signal: str
    body: JsonValue
    parameters_version: Version = 1
    step_key: str | None = None
    expires_at: Instant | None = None
    evidence: SignalEvidence | None = None
    on_behalf_of: OnBehalfOf | None = None


class SendSignal(SignalContent):
    """The Idempotency-Key is the signal's identity. `step_key` or `activation_id` address it narrowly."""

    match: str | int
    activation_id: Id | None = None


class SignalByKey(SignalContent):
    """For the one open workflow of a definition that has this business key. `match` absent: the key itself.

    None open is NOT_FOUND, several are CONFLICT. The same Idempotency-Key gets the first receipt again, even
    when that workflow has ended since.
    """

    business_key: BusinessKey
    match: str | int | None = None


class Signal(Answer):
    id: Id
    workflow_id: Id
    signal: str
    match: str | int
    state: Literal["PENDING", "CONSUMED", "REJECTED", "EXPIRED"]
    disposition: str | None = None
    revision: Counter
    accepted_at: Instant
    expires_at: Instant | None = None
    step_key: str | None = None
    consumed_wait_id: Id | None = None


class ForecastStep(Answer):
    """How one activation would stand. `before` is absent for one that would be opened."""

    key: str
    activation_no: int
    before: StepStateName | None = None
    state: StepStateName
    reason: str | None = None
    review_class: str | None = None
    round: int | None = None
    due_at: Instant | None = None
    deadline_at: Instant | None = None


class ForecastTask(Answer):
    """One order to a task: CREATE, CANCEL, LET_GO, HOLD, RELEASE, SETTLE_SUCCEEDED, SETTLE_FAILED."""

    order: str
    task_id: Id | None = None
    step_key: str | None = None
    handler: str | None = None
    queue: str | None = None
    effect_key: str | None = None
    attempts_max: int | None = None
    total_deadline_at: Instant | None = None


class ForecastSignal(Answer):
    id: Id
    signal: str
    state: str


class Forecast(Answer):
    """What would follow: the answer to `dry_run`. Nothing was stored, and the operation id is still free."""

    state: WorkflowState
    paused: bool
    cancel_requested: bool
    ends: bool
    steps: list[ForecastStep] = []
    tasks: list[ForecastTask] = []
    signals: list[ForecastSignal] = []
    effects_kept: list[str] = []
    error: WorkflowError | None = None


class Control(Managed):
    """Pause, resume, cancel. The Idempotency-Key is the operation id. A cancel may leave the version out.
    `dry_run` answers what would follow and does nothing.
    """

    expected_control_version: Counter | None = None
    dry_run: bool = False


class ControlResult(Answer):
    workflow: Workflow
    effects_kept: list[str] = []
    forecast: Forecast | None = None


class DecideReview(Managed):
    """A person's decision on a step in review; the Idempotency-Key is the operation id. `dry_run` answers
    what would follow and does nothing.

    `adopt` names stored evidence of the step (a late result, what a probe found) instead of a `result`; for
    FAILED and RERUN it has to say that no effect can happen any more.
    """

    verdict: Literal["SUCCEEDED", "FAILED", "RERUN"]
    expected_revision: Counter
    basis: Basis
    evidence: EvidenceText | None = None
    result: JsonValue = None
    adopt: Id | None = None
    code: ErrorCode | None = None
    message: Message | None = None
    dry_run: bool = False


class RestartResult(Workflow):
    """The new workflow. That of a dry run is never made, and its id names nothing."""

    forecast: Forecast | None = None


class ReviewResult(Workflow):
    """The workflow after a decision on one of its steps."""

    forecast: Forecast | None = None


class ReviewItem(Answer):
    """One thing that waits for a person: a step of a workflow, or a standalone task.

    `error` is what its last attempt reported (the message may be cut, or masked). `needs_proof` lists those
    of `allowed` that are taken with basis PROVEN and evidence only.
    """

    kind: Literal["STEP", "TASK"]
    workflow_id: Id | None = None
    step_key: str | None = None
    task_id: Id | None = None
    review_class: str
    reason: str | None = None
    revision: Counter
    since: Instant
    business_key: str | None = None
    definition_id: str | None = None
    handler: str | None = None
    allowed: list[str] = []
    needs_proof: list[str] = []
    guide: str | None = None
    error: WorkflowError | None = None
    effect_possible: bool = False
    effect_key: str | None = None


class EventSummary(Answer):
    """One timeline event without its payload."""

    id: Id
    workflow_id: Id
    aggregate_kind: Literal["workflow", "workflow_step", "workflow_signal"]
    aggregate_id: Id
    aggregate_revision: Counter
    type: str
    state_scope: Literal["WORKFLOW", "STEP", "SIGNAL"]
    state: str
    step_key: str | None = None
    occurred_at: Instant


class EventDetail(EventSummary):
    payload: dict[str, JsonValue]


class EventPage(Answer):
    workflow_id: Id
    revision: Counter
    items: list[EventSummary]
    next_cursor: str | None = None
