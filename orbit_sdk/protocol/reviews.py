"""Wire models of one review: what was tried, what is known, and what may be decided."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from orbit_sdk.protocol.common import Answer, Counter, Id, Managed, QueueName
from orbit_sdk.protocol.tasks import Attempt, Evidence
from orbit_sdk.protocol.workflows import StepDetail
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_sdk.values.names import HANDLER_KEY_PATTERN


class Choice(Answer):
    """One decision. `needs_proof`: only with basis PROVEN; `reason` says why, or why it is not allowed."""

    verdict: Literal["SUCCEEDED", "FAILED", "RERUN"]
    allowed: bool
    needs_proof: bool = False
    reason: str | None = None


class ProbeReview(Managed):
    """Find out about a task in doubt, once and outside all budgets. Without `handler` its verify handler is
    asked (or it is run again where it is READ_ONLY itself); `handler` (`name@version`) names a READ_ONLY one.

    `queue` and `parameters` absent: those of the task. `start_within_ms`: how long to wait for a worker. What
    is found is evidence of the task, and decides nothing. The Idempotency-Key is the operation id.
    """

    handler: Annotated[str, StringConstraints(max_length=140, pattern=HANDLER_KEY_PATTERN)] | None = None
    queue: QueueName | None = None
    parameters: dict[str, JsonValue] | None = None
    attempt_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 60_000
    start_within_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 600_000


class GrantBudget(Managed):
    """More for a step in review: it is added to what the definition gives, never reset, and capped in all.
    The step stays in review; running it again is a decision of its own.

    `attempts` are for the present round of a POLL; `time_ms` moves the step's deadline. The Idempotency-Key
    is the operation id. `dry_run` answers what would follow and does nothing.
    """

    expected_revision: Counter
    attempts: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_attempts)] = 0
    rounds: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_rounds)] = 0
    time_ms: Annotated[int, Field(ge=0, le=DEFAULT_LIMITS.granted_ms)] = 0
    dry_run: bool = False


class Granted(Answer):
    """What was granted so far. `attempts` belong to the present round of a POLL."""

    attempts: int
    rounds: int
    time_ms: int


class ReviewDetail(StepDetail):
    """A step in review. `attempts` are those of its latest tasks, newest first; `evidence` is what came late
    or contradicts; `effect_key` is what the outside knows the effect by.
    """

    workflow_id: Id
    business_key: str | None = None
    paused: bool = False
    cancel_requested: bool = False
    effect_possible: bool = False
    effect_key: str | None = None
    guide: str | None = None
    attempts: list[Attempt] = []
    evidence: list[Evidence] = []
    decisions: list[Choice] = []
    attempts_left: int | None = None
    rounds_left: int | None = None
    granted: Granted | None = None
