"""Wire models of schedules: plans, what they start, and what came of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from orbit_sdk.protocol.common import (
    Answer,
    BusinessKey,
    Counter,
    HandlerName,
    Id,
    Instant,
    Labels,
    Managed,
    QueueName,
    Request,
)
from orbit_sdk.protocol.tasks import DurationMs, RecoveryName, RetryPolicy
from orbit_sdk.protocol.workflows import Version
from orbit_sdk.values.defaults import DEFAULTS

ScheduleState = Literal["ACTIVE", "PAUSED", "FINISHED"]
FireState = Literal["WAITING", "STARTED", "FINISHED", "SKIPPED", "REFUSED"]
FireCause = Literal["PLAN", "TRIGGER", "BACKFILL"]
ScheduleName = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")
]


class CronTiming(Request):
    """Five fields on the clock of a zone. Where that clock changes, both policies are required."""

    kind: Literal["CRON"] = "CRON"
    cron: Annotated[str, StringConstraints(max_length=1000)]
    zone: Annotated[str, StringConstraints(max_length=64)] = "UTC"
    gap: Literal["SKIP", "NEXT_VALID"] | None = None
    repeat: Literal["FIRST", "BOTH"] | None = None


class RateTiming(Request):
    """Every so many whole seconds, counted from the anchor (by default when the version takes effect)."""

    kind: Literal["RATE"] = "RATE"
    every_s: Annotated[int, Field(ge=1, le=316_224_000)]
    anchor: Instant | None = None
    zone: Annotated[str, StringConstraints(max_length=64)] = "UTC"


Timing = Annotated[CronTiming | RateTiming, Field(discriminator="kind")]


class CatchUp(Request):
    """Bounds of running missed instants one by one: the newest `count` of the last `window_s` seconds."""

    window_s: Annotated[int, Field(ge=1, le=31_622_400)]
    count: Annotated[int, Field(ge=1, le=1_000)]
    per_minute: Annotated[int, Field(ge=1, le=600)]


class MisfireRule(Request):
    """What becomes of instants that were handled more than `after_ms` too late."""

    policy: Literal["SKIP", "COALESCE", "CATCH_UP"]
    after_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = DEFAULTS.misfire_after_ms
    catch_up: CatchUp | None = None


class OverlapRule(Request):
    """What becomes of an occurrence while an earlier one is not finished."""

    policy: Literal["ALLOW", "QUEUE", "SKIP"]
    backlog: Annotated[int, Field(ge=1, le=1_000)] | None = None


class TaskTarget(Request):
    """Each occurrence is a task. `parameters` may hold `{"$fire": ...}` (see the documentation)."""

    kind: Literal["TASK"] = "TASK"
    queue: QueueName
    handler: HandlerName
    handler_version: Version
    parameters: dict[str, JsonValue] = {}
    parameters_version: Version = 1
    recovery: RecoveryName = "CONSERVATIVE"
    can_verify: bool = False
    start_within_ms: DurationMs | None = None
    attempt_timeout_ms: DurationMs = DEFAULTS.attempt_timeout_ms
    total_timeout_ms: DurationMs = DEFAULTS.total_timeout_ms
    retry: RetryPolicy = RetryPolicy()
    priority: Annotated[int, Field(ge=0, le=9)] = DEFAULTS.priority
    business_key: BusinessKey | None = None
    concurrency_key: BusinessKey | None = None
    fairness_key: BusinessKey | None = None
    labels: Labels = {}


class WorkflowTarget(Request):
    """Each occurrence is a workflow. `version` "CURRENT" is resolved at the fire and recorded with it."""

    kind: Literal["WORKFLOW"] = "WORKFLOW"
    definition_id: HandlerName
    version: Version | Literal["CURRENT"] = "CURRENT"
    input: JsonValue
    parameters_version: Version = 1
    business_key: BusinessKey | None = None
    labels: Labels = {}


Target = Annotated[TaskTarget | WorkflowTarget, Field(discriminator="kind")]


class ScheduleSpec(Request):
    """Everything a version of a schedule says. The two rules must be chosen; nothing is guessed later."""

    timing: Timing
    start_at: Instant | None = None
    end_at: Instant | None = None
    misfire: MisfireRule
    overlap: OverlapRule
    target: Target


class CreateSchedule(ScheduleSpec):
    name: ScheduleName
    paused: bool = False


class EditSchedule(ScheduleSpec, Managed):
    """A new version, in force from `effective_at` on (now by default)."""

    expected_version: Version
    effective_at: Instant | None = None


class ControlSchedule(Managed):
    """Why, and for whom."""


class TriggerSchedule(Managed):
    """Why, and for whom."""


class BackfillSchedule(Managed):
    """Run what was planned from `start_at` (included) to `end_at` (excluded) and has not run."""

    start_at: Instant
    end_at: Instant
    per_minute: Annotated[int, Field(ge=1, le=600)] = 60
    dry_run: bool = False


class Schedule(Answer):
    id: Id
    name: str
    state: ScheduleState
    version: int
    revision: Counter
    accounted_to: Instant
    next_at: Instant | None = None
    unfinished: int
    waiting: int
    created_at: Instant


class ScheduleVersion(Answer):
    version: int
    effective_at: Instant
    made_by: str
    made_at: Instant
    spec: ScheduleSpec


class ScheduleDetail(Schedule):
    versions: list[ScheduleVersion]
    """Those in force now or later, oldest first."""


class ScheduleAnswer(Answer):
    """What changing a schedule answers."""

    id: Id
    state: ScheduleState
    version: int
    revision: Counter


class Fire(Answer):
    """One occurrence. `first_at` and `merged` are set where it stands for several planned instants."""

    id: Id
    cause: FireCause
    state: FireState
    planned_at: Instant
    version: int
    start_at: Instant | None = None
    first_at: Instant | None = None
    merged: int = 1
    target_kind: Literal["TASK", "WORKFLOW"]
    target_id: Id | None = None
    target_version: int | None = None
    reason: str | None = None
    note: str | None = None
    outcome: str | None = None
    decided_at: Instant | None = None
    finished_at: Instant | None = None


class FireRecord(Answer):
    """Planned instants that did not run one by one, and why. Both ends are planned instants."""

    id: Id
    at: Instant
    version: int
    reason: str
    first_at: Instant
    last_at: Instant
    count: int


class TriggerAnswer(Answer):
    schedule_id: Id
    fire_id: Id
    state: FireState
    target_id: Id | None = None


class BackfillAnswer(Answer):
    """`planned` instants are in the range; `known` of them ran or wait already; `runs` are made now."""

    planned: int
    known: int
    runs: int
    first_at: Instant | None = None
    last_at: Instant | None = None
    dry_run: bool = False


class PlannedInstant(Answer):
    utc: Instant
    local: str
    note: str | None = None


class SchedulePreview(Answer):
    fires: list[PlannedInstant]
    warnings: list[str]
