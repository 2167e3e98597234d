"""A definition made ready to run: everything an advance looks up, looked up once.

A `Plan` is immutable and depends on the definition alone, so it may be cached by digest and shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from orbit_sdk.definition.expressions import Condition, Expression, FactKey
from orbit_sdk.definition.validate_value import Validator
from orbit_sdk.engine.decision import Retry

OWN_CODES: Final = frozenset({"ATTEMPTS_EXHAUSTED", "EXPIRED"})
"""Error codes of Orbit itself: every handler may end with them, whatever codes it declares."""

REVIEW: Final = "REVIEW"
FAIL: Final = "FAIL"
GOTO: Final = "GOTO"


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of one parallel region."""

    parallel: str
    name: str
    join: str


@dataclass(frozen=True, slots=True)
class Call:
    """How a node calls its handler. `total_ms` is the time-out of a TASK, the whole time of a POLL."""

    handler: str
    handler_version: int
    queue: str
    input: tuple[tuple[str, Expression], ...]
    recovery: str
    can_verify: bool
    retry: Retry
    attempt_timeout_ms: int
    total_ms: int
    start_within_ms: int | None
    priority: int
    concurrency_key: Expression | None
    fairness_key: Expression | None
    errors: frozenset[str] | None
    parameters_problems: Validator

    @property
    def repeatable(self) -> bool:
        """Safe to run again whatever happened before."""
        return self.recovery in ("READ_ONLY", "IDEMPOTENT")

    @property
    def may_have_effect(self) -> bool:
        """Whether the outside may be another after it ran."""
        return self.recovery != "READ_ONLY"


@dataclass(frozen=True, slots=True)
class Task:
    call: Call


@dataclass(frozen=True, slots=True)
class Wait:
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Timer:
    delay_ms: int | None
    until: Expression | None


@dataclass(frozen=True, slots=True)
class Poll:
    """`states` maps the canonical JSON of a state value to "pending", "succeeded" or "failed"."""

    call: Call
    every_ms: int
    max_rounds: int
    path: tuple[str, ...]
    states: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BranchOn:
    """`cases` maps the canonical JSON of a value to its exit."""

    on: Expression
    cases: Mapping[str, str]
    otherwise: bool


@dataclass(frozen=True, slots=True)
class BranchWhen:
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """`inputs` maps (node, exit) of the edge that was taken to the value it brings."""

    inputs: Mapping[tuple[str, str], Expression]


@dataclass(frozen=True, slots=True)
class Parallel:
    arms: tuple[str, ...]
    join: str


@dataclass(frozen=True, slots=True)
class Join:
    stop_others: bool


@dataclass(frozen=True, slots=True)
class Succeed:
    output: Expression


@dataclass(frozen=True, slots=True)
class Fail:
    code: str
    message: str


Spec: TypeAlias = (
    Task | Wait | Timer | Poll | BranchOn | BranchWhen | Merge | Parallel | Join | Succeed | Fail
)

WAITING_SPECS: Final = (Task, Wait, Timer, Poll)


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One node. `arms` are outermost first; `inside` are the JOINs of all regions around it.

    `policy` is what its failure exit (`failure_exit`) does: REVIEW, FAIL or GOTO. `signal` and `match` belong
    to a WAIT, or to the receipt of a POLL. `own` are the facts that opening the node reads (of a MERGE: over
    any edge). `result_problems` judges the value of its `next` exit (of an END: the output), where it has a
    declared type.
    """

    key: str
    kind: str
    spec: Spec
    exits: Mapping[str, str]
    arms: tuple[Arm, ...]
    inside: frozenset[str]
    policy: str
    failure_exit: str
    signal: str | None
    match: Expression | None
    keep_early: bool
    own: frozenset[FactKey]
    result_problems: Validator | None


@dataclass(frozen=True, slots=True)
class Plan:
    """`reads[(step, exit)]`: the facts that following this exit may read, up to and including the inputs of
    the nodes where it comes to rest. A fact of a branch that was not taken does not exist; load those that
    do. `start_reads` is the same for the start. `queues` are all queues, of branches never taken too.
    """

    definition_id: str
    definition_version: int
    start: str
    nodes: Mapping[str, PlanNode]
    reads: Mapping[tuple[str, str], frozenset[FactKey]]
    start_reads: frozenset[FactKey]
    queues: tuple[str, ...]
    input_problems: Validator
    signal_problems: Mapping[str, Validator]
    waits: Mapping[str, tuple[str, ...]]

    def reads_of(self, step_key: str) -> frozenset[FactKey]:
        """What any advance from this step, or opening its next round, may read."""
        node = self.nodes[step_key]
        found = node.own
        for name in node.exits:
            found = found | self.reads[(step_key, name)]
        return found
