"""Wire models of bulks: one decision for many, planned, looked at, then applied."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from orbit_sdk.protocol.common import (
    Answer,
    BusinessKey,
    Counter,
    HandlerName,
    Id,
    Instant,
    JsonValue,
    Managed,
    OnBehalfOf,
    QueueName,
    Reason,
    Request,
)
from orbit_sdk.protocol.tasks import TaskState
from orbit_sdk.protocol.workflows import Basis, WorkflowState
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_sdk.values.names import HANDLER_KEY_PATTERN

__all__ = [
    "BULK_ITEMS_MAX",
    "ApplyBulk",
    "Bulk",
    "BulkAction",
    "BulkAnswer",
    "BulkDetail",
    "BulkFilter",
    "BulkItem",
    "BulkResult",
    "BulkState",
    "CancelTasks",
    "ControlWorkflows",
    "GrantBudgets",
    "PlanBulk",
    "Probes",
    "RestartWorkflows",
    "RetryTasks",
    "ReviewSteps",
    "ReviewTasks",
    "StopBulk",
]

BULK_ITEMS_MAX = 10_000
"""So many items a bulk has at most."""

BulkState = Literal["PLANNING", "PLANNED", "APPLYING", "DONE", "STOPPED", "EXPIRED"]
BulkResult = Literal["APPLIED", "SKIPPED_CHANGED", "REFUSED", "NOT_REACHED"]
Evidence = Annotated[str, Field(max_length=4000)]


class ReviewSteps(Request):
    """Decide on steps in review; the fields are those of one decision.

    `adopt`: each takes its own newest stored evidence, a result for SUCCEEDED, else a word that no effect can
    happen any more. A step without such evidence is refused by the plan.
    """

    kind: Literal["workflow.review"]
    verdict: Literal["SUCCEEDED", "FAILED", "RERUN"]
    basis: Basis
    evidence: Evidence | None = None
    result: JsonValue = None
    adopt: bool = False
    code: str | None = None
    message: str | None = None


class GrantBudgets(Request):
    """Add to the budgets of steps in review; running them again is a decision of its own."""

    kind: Literal["workflow.grant"]
    attempts: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_attempts)] = 0
    rounds: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_rounds)] = 0
    time_ms: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_ms)] = 0


class Probes(Request):
    """Find out about steps or standalone tasks in review, each once and outside all budgets; what is found is
    evidence, which decisions may adopt. The fields are those of one probe.
    """

    kind: Literal["workflow.probe", "task.probe"]
    handler: Annotated[str, StringConstraints(max_length=140, pattern=HANDLER_KEY_PATTERN)] | None = None
    attempt_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 60_000
    start_within_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 600_000


class ControlWorkflows(Request):
    """Pause, resume or cancel workflows."""

    kind: Literal["workflow.pause", "workflow.resume", "workflow.cancel"]


class RestartWorkflows(Request):
    """Start new workflows from earlier ones, each with the input and (by default) the version of its origin.

    A workflow that a bulk has restarted before is refused: its successor is the one to restart.
    """

    kind: Literal["workflow.restart"]
    effects: Literal["SAME", "NEW"]
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


class CancelTasks(Request):
    """Cancel standalone tasks."""

    kind: Literal["task.cancel"]


class ReviewTasks(Request):
    """Decide on standalone tasks in review; the fields are those of one decision. `adopt` as for steps."""

    kind: Literal["task.review"]
    verdict: Literal["SUCCEEDED", "FAILED", "CANCELLED"]
    basis: Basis
    evidence: Evidence | None = None
    result: JsonValue = None
    adopt: bool = False
    code: str | None = None
    message: str | None = None


class RetryTasks(Request):
    """Run standalone tasks again, each as a new one: those in review, or that ended without success."""

    kind: Literal["task.retry"]
    basis: Basis
    evidence: Evidence | None = None


BulkAction = Annotated[
    ReviewSteps
    | GrantBudgets
    | Probes
    | ControlWorkflows
    | RestartWorkflows
    | CancelTasks
    | ReviewTasks
    | RetryTasks,
    Field(discriminator="kind"),
]


class BulkFilter(Request):
    """What a bulk is about; everything that is given must hold. Which fields fit depends on the action.

    `workflow.review`, `workflow.grant` and `workflow.probe`: definition_id, version, step_key, review_class,
    reason; the other actions on workflows: definition_id, version, state, paused; actions on tasks: state,
    queue, handler, error_code, review_class.
    `business_keys` (any of them) fits all.
    """

    business_keys: Annotated[list[BusinessKey], Field(min_length=1, max_length=1000)] | None = None
    definition_id: HandlerName | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    state: WorkflowState | TaskState | None = None
    paused: bool | None = None
    step_key: Annotated[str, Field(max_length=64)] | None = None
    review_class: Literal["UNKNOWN", "DEFINITE", "EXPIRED", "TIMEOUT", "UNMAPPED", "ENGINE_ERROR"] | None = (
        None
    )
    reason: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    queue: QueueName | None = None
    handler: Annotated[str, Field(max_length=140)] | None = None
    error_code: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class PlanBulk(Managed):
    """Ask for a plan: what the filter finds, at which revisions, and what the action would do to each.

    `most`: no more items than this; `reason` is kept with every item that is done.
    """

    action: BulkAction
    filter: BulkFilter = BulkFilter()
    most: Annotated[int, Field(ge=1, le=BULK_ITEMS_MAX)] = 1000


class ApplyBulk(Request):
    """Start a plan. It stops by itself after `max_failures` items that were refused (None: never), or, from
    ten tried items on, at this share of failures.
    """

    per_second: Annotated[float, Field(ge=0.01, le=1000)] = 10.0
    max_failures: Annotated[int, Field(ge=1, le=BULK_ITEMS_MAX)] | None = 3
    max_failure_percent: Annotated[int, Field(ge=1, le=100)] | None = None
    reason: Reason | None = None
    on_behalf_of: OnBehalfOf | None = None


class StopBulk(Managed):
    """Stop a bulk, or give its plan up."""


class BulkAnswer(Answer):
    """How a bulk stands after an order on it."""

    id: Id
    state: BulkState
    revision: Counter


class Bulk(BulkAnswer):
    """One bulk and how far it is.

    `items` were planned: `allowed` of them may be done, `refused` not. Of the allowed ones `applied`,
    `skipped` (they had changed) and `failed` (refused when they came up) are settled, `left` are not.
    `truncated`: more fits the filter than the plan holds. `stopped_by`: PERSON, FAILURES or FAILURE_SHARE.
    """

    action: str
    items: Counter
    allowed: Counter
    refused: Counter
    truncated: bool
    applied: Counter
    skipped: Counter
    failed: Counter
    left: Counter
    stopped_by: str | None = None
    planned_by: str
    applied_by: str | None = None
    applied_for: str | None = None
    per_second: float | None = None
    max_failures: int | None = None
    max_failure_percent: int | None = None
    created_at: Instant
    planned_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None
    expires_at: Instant


class BulkDetail(Bulk):
    """`orders` is the action as it was asked for; its result is hidden without `payloads:read`."""

    reason: str
    filter: dict[str, JsonValue]
    orders: dict[str, JsonValue]


class BulkItem(Answer):
    """One item. `allowed` and `then` (the state that would follow) are what the plan says. `result` is absent
    while its turn has not come; `code` and `why` say why not; `made_id` is the workflow or task it made,
    `evidence_id` what the decision adopts.
    """

    number: int
    workflow_id: Id | None = None
    step_key: str | None = None
    task_id: Id | None = None
    business_key: str | None = None
    expected: Counter
    allowed: bool
    then: str | None = None
    result: BulkResult | None = None
    code: str | None = None
    why: str | None = None
    evidence_id: Id | None = None
    made_id: Id | None = None
    settled_at: Instant | None = None
