"""The nodes of a definition, one model per form, and the one place that knows their edges.

A model holds the shape alone. What needs more than one field or the rest of the graph (references,
structure, data flow, types, limits) is checked by `orbit_sdk.check`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from orbit_sdk.definition.base import (
    DurationMs,
    ErrorCode,
    FieldName,
    HandlerKey,
    JsonValue,
    Maybe,
    Model,
    Name,
    Percent,
    PositiveInt,
    QueueName,
    Some,
    SortedSet,
    SortedSome,
    StepKey,
    Text,
)
from orbit_sdk.definition.expressions import Condition, Expression, Located
from orbit_sdk.definition.value_types import TypeSchema

__all__ = [
    "BranchNode",
    "BranchOnNode",
    "BranchWhenNode",
    "DelayNode",
    "EndError",
    "EndNode",
    "EqualsCase",
    "Exit",
    "FailNode",
    "FailureTarget",
    "FinalSignal",
    "Goto",
    "JoinNode",
    "MergeInput",
    "MergeNode",
    "Node",
    "ParallelNode",
    "PollNode",
    "PollStates",
    "Priority",
    "Retry",
    "ReviewGuide",
    "SucceedNode",
    "TaskNode",
    "TimerNode",
    "Title",
    "UntilNode",
    "WaitNode",
    "WhenCase",
    "WorkNode",
    "exits",
    "expressions_of",
]

Title: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Priority: TypeAlias = Annotated[int, Field(ge=0, le=9)]


class Goto(Model):
    """An exit that leads to another node."""

    next: StepKey


def _target_tag(value: Any) -> str:
    return "<word>" if isinstance(value, str) else "<next>"


FailureTarget: TypeAlias = Annotated[
    Annotated[Literal["REVIEW", "FAIL"], Tag("<word>")] | Annotated[Goto, Tag("<next>")],
    Discriminator(_target_tag),
]
"""What a failure exit does: a person decides, the workflow fails, or it goes on at another node."""


class Retry(Model):
    """How often and how slowly a task is tried; `factor_percent` 200 doubles each pause."""

    max_attempts: PositiveInt
    backoff_ms: DurationMs
    factor_percent: Annotated[int, Field(ge=100, le=10_000)]
    max_backoff_ms: DurationMs
    jitter_percent: Percent


class ReviewGuide(Model):
    """What the person who decides is told."""

    guide: Text
    url: Maybe[Annotated[str, Field(min_length=1, max_length=2000)]] = None


class _Node(Model):
    title: Maybe[Title] = None


class _Work(_Node):
    """What nodes that run handlers share."""

    handler: HandlerKey
    queue: QueueName
    input: dict[FieldName, Expression]
    attempt_timeout_ms: DurationMs
    start_within_ms: Maybe[DurationMs] = None
    priority: Priority
    concurrency_key: Maybe[Expression] = None
    fairness_key: Maybe[Expression] = None
    retry: Retry
    review: Maybe[ReviewGuide] = None


class TaskNode(_Work):
    """One piece of work. `on_failure` takes definite failures; unknown effects always go to review."""

    kind: Literal["TASK"]
    total_timeout_ms: DurationMs
    on_failure: FailureTarget
    next: StepKey


class WaitNode(_Node):
    """Waits for one signal whose business key is `match`, never for ever."""

    kind: Literal["WAIT"]
    signal: Name
    match: Expression
    timeout_ms: DurationMs
    early: Literal["DROP", "KEEP"]
    on_timeout: FailureTarget
    review: Maybe[ReviewGuide] = None
    next: StepKey


class DelayNode(_Node):
    """A TIMER that fires a fixed time after it opened."""

    kind: Literal["TIMER"]
    delay_ms: DurationMs
    next: StepKey


class UntilNode(_Node):
    """A TIMER that fires at an instant (a text of format date-time)."""

    kind: Literal["TIMER"]
    until: Expression
    next: StepKey


class PollStates(Model):
    """How a query's result is sorted: the value at `path` lies in one of the three lists, or is unknown."""

    path: Some[FieldName]
    pending: SortedSet[JsonValue]
    succeeded: SortedSome[JsonValue]
    failed: SortedSet[JsonValue]


class FinalSignal(Model):
    """A receipt that races the query; its body is sorted like a result."""

    signal: Name
    match: Expression


class PollNode(_Work):
    """Asks again and again, each round one task; `on_failed` is there exactly when `failed` is not empty."""

    kind: Literal["POLL"]
    every_ms: DurationMs
    max_rounds: PositiveInt
    within_ms: DurationMs
    state: PollStates
    final_signal: Maybe[FinalSignal] = None
    on_failed: Maybe[FailureTarget] = None
    on_exhausted: Literal["REVIEW"]
    next: StepKey


class EqualsCase(Model):
    """A case that is taken when the value is one of these."""

    equals: SortedSome[JsonValue]
    next: StepKey


class WhenCase(Model):
    """A case that is taken when its condition holds and none before it did."""

    when: Condition
    next: StepKey


class BranchOnNode(_Node):
    """A BRANCH on a value; without `otherwise` its cases are exhaustive."""

    kind: Literal["BRANCH"]
    on: Expression
    cases: Some[EqualsCase]
    otherwise: Maybe[StepKey] = None


class BranchWhenNode(_Node):
    """A BRANCH on conditions, judged in order."""

    kind: Literal["BRANCH"]
    cases: Some[WhenCase]
    otherwise: StepKey


class MergeInput(Model):
    """What the MERGE is worth when it is reached over this edge."""

    from_: StepKey = Field(alias="from")
    exit: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,127}$")]
    value: Expression


class MergeNode(_Node):
    """Where exclusive paths meet and leave one value; exactly one input per incoming edge."""

    kind: Literal["MERGE"]
    result: TypeSchema
    inputs: Some[MergeInput]
    next: StepKey


class ParallelNode(_Node):
    """Starts all arms; each ends at the JOIN."""

    kind: Literal["PARALLEL"]
    arms: Annotated[dict[StepKey, StepKey], Field(min_length=2)]
    join: StepKey
    on_arm_failure: Literal["STOP_OTHERS", "LET_OTHERS_FINISH"]


class JoinNode(_Node):
    """Goes on when every arm has arrived."""

    kind: Literal["JOIN"]
    next: StepKey


class SucceedNode(_Node):
    """An END of a workflow that succeeded."""

    kind: Literal["END"]
    outcome: Literal["SUCCEEDED"]
    output: Expression


class EndError(Model):
    """Why a workflow failed, for callers and for people."""

    code: ErrorCode
    message: Annotated[str, Field(min_length=1, max_length=1000)]


class FailNode(_Node):
    """An END of a workflow that failed; inside an arm, of that arm."""

    kind: Literal["END"]
    outcome: Literal["FAILED"]
    error: EndError


def _node_tag(value: Any) -> str | None:
    if isinstance(value, _Node):
        return _TAGS[type(value)]
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "TIMER":
        return "<TIMER until>" if "until" in value else "<TIMER delay>"
    if kind == "BRANCH":
        return "<BRANCH on>" if "on" in value else "<BRANCH when>"
    if kind == "END":
        return "<END failed>" if value.get("outcome") == "FAILED" else "<END succeeded>"
    return f"<{kind}>" if isinstance(kind, str) and f"<{kind}>" in _PLAIN_TAGS else None


_PLAIN_TAGS: Final = frozenset({"<TASK>", "<WAIT>", "<POLL>", "<MERGE>", "<PARALLEL>", "<JOIN>"})
_TAGS: Final[dict[type[_Node], str]] = {
    TaskNode: "<TASK>",
    WaitNode: "<WAIT>",
    DelayNode: "<TIMER delay>",
    UntilNode: "<TIMER until>",
    PollNode: "<POLL>",
    BranchOnNode: "<BRANCH on>",
    BranchWhenNode: "<BRANCH when>",
    MergeNode: "<MERGE>",
    ParallelNode: "<PARALLEL>",
    JoinNode: "<JOIN>",
    SucceedNode: "<END succeeded>",
    FailNode: "<END failed>",
}

Node: TypeAlias = Annotated[
    Annotated[TaskNode, Tag("<TASK>")]
    | Annotated[WaitNode, Tag("<WAIT>")]
    | Annotated[DelayNode, Tag("<TIMER delay>")]
    | Annotated[UntilNode, Tag("<TIMER until>")]
    | Annotated[PollNode, Tag("<POLL>")]
    | Annotated[BranchOnNode, Tag("<BRANCH on>")]
    | Annotated[BranchWhenNode, Tag("<BRANCH when>")]
    | Annotated[MergeNode, Tag("<MERGE>")]
    | Annotated[ParallelNode, Tag("<PARALLEL>")]
    | Annotated[JoinNode, Tag("<JOIN>")]
    | Annotated[SucceedNode, Tag("<END succeeded>")]
    | Annotated[FailNode, Tag("<END failed>")],
    Discriminator(
        _node_tag,
        custom_error_type="node_kind",
        custom_error_message="must be a node whose kind is one of "
        "TASK, WAIT, TIMER, POLL, BRANCH, MERGE, PARALLEL, JOIN, END",
    ),
]

TimerNode: TypeAlias = DelayNode | UntilNode
BranchNode: TypeAlias = BranchOnNode | BranchWhenNode
EndNode: TypeAlias = SucceedNode | FailNode
WorkNode: TypeAlias = TaskNode | PollNode
Exit: TypeAlias = tuple[str, str]


def exits(node: Node) -> tuple[Exit, ...]:
    """The edges of a node as (name of the exit, key of the target), in the order of the document.

    Names: `next`, `on_failure`, `on_timeout`, `on_failed`, `cases.0` ..., `otherwise`, `arms.<name>`.
    """
    match node:
        case TaskNode():
            return (("next", node.next), *_failure_exit("on_failure", node.on_failure))
        case WaitNode():
            return (("next", node.next), *_failure_exit("on_timeout", node.on_timeout))
        case PollNode():
            return (("next", node.next), *_failure_exit("on_failed", node.on_failed))
        case BranchOnNode() | BranchWhenNode():
            listed: tuple[EqualsCase | WhenCase, ...] = node.cases
            cases = tuple((f"cases.{index}", case.next) for index, case in enumerate(listed))
            return cases if node.otherwise is None else (*cases, ("otherwise", node.otherwise))
        case ParallelNode():
            return tuple((f"arms.{name}", node.arms[name]) for name in sorted(node.arms))
        case DelayNode() | UntilNode() | MergeNode() | JoinNode():
            return (("next", node.next),)
        case SucceedNode() | FailNode():
            return ()


def _failure_exit(name: str, target: str | Goto | None) -> tuple[Exit, ...]:
    return ((name, target.next),) if isinstance(target, Goto) else ()


def expressions_of(node: Node) -> tuple[Located, ...]:
    """Every expression and condition that stands in a node, with its path in the node's JSON."""
    match node:
        case TaskNode():
            return _work_expressions(node)
        case PollNode():
            final = node.final_signal
            receipt = () if final is None else (Located(("final_signal", "match"), final.match),)
            return (*_work_expressions(node), *receipt)
        case WaitNode():
            return (Located(("match",), node.match),)
        case UntilNode():
            return (Located(("until",), node.until),)
        case BranchOnNode():
            return (Located(("on",), node.on),)
        case BranchWhenNode():
            return tuple(Located(("cases", n, "when"), case.when) for n, case in enumerate(node.cases))
        case MergeNode():
            return tuple(Located(("inputs", n, "value"), item.value) for n, item in enumerate(node.inputs))
        case SucceedNode():
            return (Located(("output",), node.output),)
        case DelayNode() | ParallelNode() | JoinNode() | FailNode():
            return ()


def _work_expressions(node: TaskNode | PollNode) -> tuple[Located, ...]:
    found = [Located(("input", name), value) for name, value in node.input.items()]
    for name, key in (("concurrency_key", node.concurrency_key), ("fairness_key", node.fairness_key)):
        if key is not None:
            found.append(Located((name,), key))
    return tuple(found)
