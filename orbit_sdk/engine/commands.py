"""Everything that can happen to an instance, as small frozen orders.

Each command carries all it needs, ids and random bits included, so that `decide` stays a pure function.
"""

from __future__ import annotations

from enum import StrEnum

from orbit_sdk.engine.state import ReviewClass, Signal, SignalBody
from orbit_sdk.values.ids import IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.record import record


class TaskPhase(StrEnum):
    """How a task stands when its report is written (the settled ones, review, and the rest as OPEN)."""

    OPEN = "OPEN"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"
    NEEDS_REVIEW = "NEEDS_REVIEW"


@record(frozen=True, slots=True)
class TaskReport:
    """One stored change of a task, as a workflow sees it. `stored_at` decides whether it was on time."""

    task_id: str
    activation_id: str
    source_revision: int
    phase: TaskPhase
    stored_at: int
    result: Json = None
    error_code: str | None = None
    error_message: str | None = None
    review_class: ReviewClass | None = None
    attempts_used: int = 0
    effect_possible: bool = False
    started: bool = False


@record(frozen=True, slots=True)
class StartInstance:
    """The first command of an instance (the state handed to `decide` is None)."""

    instance_id: str
    namespace_id: str
    input: Json
    seed: IdSeed
    effect_root: str
    business_key: str | None = None


@record(frozen=True, slots=True)
class ApplyReport:
    """Consume one inbox row. What is stale (old activation or revision) is answered `applied=False`."""

    report: TaskReport
    seed: IdSeed


@record(frozen=True, slots=True)
class AcceptSignal:
    """A signal whose type and body the caller has already checked; `signal.state` is PENDING.

    `signal.accepted_at` is set by the decision to its `now`. `reports`: the newest stored fact of the live
    task of each POLL, so that a query result that was stored before the receipt wins over it.
    """

    signal: Signal
    body: SignalBody
    seed: IdSeed
    reports: tuple[TaskReport, ...] = ()


@record(frozen=True, slots=True)
class TimePassed:
    """`due_at` of this activation was reached. `report` is the newest stored fact about its live task, if it
    has one: a fact stored on time wins over the deadline.
    """

    activation_id: str
    seed: IdSeed
    report: TaskReport | None = None


@record(frozen=True, slots=True)
class ExpireSignals:
    """Marks pending signals whose own time is over. For show: matching compares the time itself."""

    seed: IdSeed


@record(frozen=True, slots=True)
class Advance:
    """Continue a stored checkpoint."""

    seed: IdSeed


@record(frozen=True, slots=True)
class Pause:
    expected_control_version: int
    seed: IdSeed


@record(frozen=True, slots=True)
class Resume:
    """`reports`: the newest stored fact of every live task, so that stored facts are re-examined in order."""

    expected_control_version: int
    seed: IdSeed
    reports: tuple[TaskReport, ...] = ()


@record(frozen=True, slots=True)
class Cancel:
    """`reports` as in `Resume`: what each live task is known to be."""

    expected_control_version: int | None
    seed: IdSeed
    reports: tuple[TaskReport, ...] = ()


class Verdict(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RERUN = "RERUN"


@record(frozen=True, slots=True)
class DecideReview:
    """A person's decision on a step in review.

    SUCCEEDED needs `result` (checked by the caller against the step's result type); FAILED needs `code`;
    RERUN is allowed where repeating is safe, or with `no_effect_proven`. `report` is the task's newest stored
    fact.
    """

    step_key: str
    expected_revision: int
    verdict: Verdict
    seed: IdSeed
    result: Json = None
    code: str | None = None
    message: str | None = None
    no_effect_proven: bool = False
    report: TaskReport | None = None


@record(frozen=True, slots=True)
class GrantBudget:
    """A person adds to the budgets of a step in review; capped by `EngineLimits.granted_*`, in all."""

    step_key: str
    expected_revision: int
    seed: IdSeed
    attempts: int = 0
    rounds: int = 0
    time_ms: int = 0


@record(frozen=True, slots=True)
class ReportEngineError:
    """A stored fact could not be applied: the step (or the instance) goes to review instead of looping."""

    activation_id: str
    message: str
    seed: IdSeed


Command = (
    StartInstance
    | ApplyReport
    | AcceptSignal
    | TimePassed
    | ExpireSignals
    | Advance
    | Pause
    | Resume
    | Cancel
    | DecideReview
    | GrantBudget
    | ReportEngineError
)


@record(frozen=True, slots=True)
class EngineLimits:
    """Budgets of one `decide` call. `transitions`: the engine stops there and stores a checkpoint."""

    transitions: int = 64
    pending_signals: int = 1024
    payload_bytes: int = 256 * 1024
    input_bytes: int = 256 * 1024
    output_bytes: int = 256 * 1024
    granted_attempts: int = 20
    granted_rounds: int = 1_000
    granted_ms: int = 30 * 24 * 3_600_000


DEFAULT_ENGINE_LIMITS = EngineLimits()
