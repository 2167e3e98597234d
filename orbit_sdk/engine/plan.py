"""Makes a `Plan` of a definition: every look-up done once, for all instances of its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from orbit_sdk.definition.expressions import Condition, Expression, FactKey, refs_of
from orbit_sdk.definition.models import Definition, HandlerDecl
from orbit_sdk.definition.nodes import (
    BranchOnNode,
    BranchWhenNode,
    DelayNode,
    FailNode,
    Goto,
    JoinNode,
    MergeNode,
    Node,
    ParallelNode,
    PollNode,
    SucceedNode,
    TaskNode,
    UntilNode,
    WaitNode,
    exits,
    expressions_of,
)
from orbit_sdk.definition.validate_value import Validator, compile_validator
from orbit_sdk.definition.value_types import ObjectType, TypeSchema
from orbit_sdk.engine.decision import Retry
from orbit_sdk.engine.shape import (
    FAIL,
    GOTO,
    OWN_CODES,
    WAITING_SPECS,
    Arm,
    BranchOn,
    BranchWhen,
    Call,
    Fail,
    Join,
    Merge,
    Parallel,
    Plan,
    PlanNode,
    Poll,
    Spec,
    Succeed,
    Task,
    Timer,
    Wait,
)
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.names import split_handler_key

__all__ = ["Plan", "compile_plan"]


def compile_plan(definition: Definition) -> Plan:
    """The plan of a definition that passed the checks of `orbit_sdk.check`."""
    arms = _arms(definition)
    nodes = {key: _node(definition, key, node, arms[key]) for key, node in definition.nodes.items()}
    reads = _Reads(definition, nodes)
    queues = {node.queue for node in definition.nodes.values() if isinstance(node, TaskNode | PollNode)}
    return Plan(
        definition_id=definition.id,
        definition_version=definition.version,
        start=definition.start,
        nodes=MappingProxyType(nodes),
        reads=MappingProxyType(
            {
                (key, name): reads.of(key, name, node.exits[name])
                for key, node in nodes.items()
                for name in node.exits
            }
        ),
        start_reads=reads.of("", "", definition.start),
        queues=tuple(sorted(queues)),
        input_problems=compile_validator(definition.input, definition.types),
        signal_problems=MappingProxyType(
            {
                name: compile_validator(decl.body, definition.types)
                for name, decl in definition.signals.items()
            }
        ),
        waits=MappingProxyType(
            {
                name: tuple(sorted(key for key, node in nodes.items() if node.signal == name))
                for name in definition.signals
            }
        ),
    )


def _arms(definition: Definition) -> Mapping[str, tuple[Arm, ...]]:
    """The arms around every node: found from the start, into arms at a PARALLEL, out at its JOIN."""
    found: dict[str, tuple[Arm, ...]] = {}
    stack: list[tuple[str, tuple[Arm, ...]]] = [(definition.start, ())]
    while stack:
        key, around = stack.pop()
        if key in found:
            continue
        found[key] = around
        node = definition.nodes[key]
        if isinstance(node, ParallelNode):
            stack.append((node.join, around))
            stack.extend((entry, (*around, Arm(key, name, node.join))) for name, entry in node.arms.items())
            continue
        home = around[-1].join if around else None
        stack.extend((target, around) for _, target in exits(node) if target != home)
    return found


class _Reads:
    """Facts read after an edge, remembered per target: the graph has no cycle."""

    def __init__(self, definition: Definition, nodes: Mapping[str, PlanNode]) -> None:
        self._nodes = nodes
        self._merges = {key: node for key, node in definition.nodes.items() if isinstance(node, MergeNode)}
        self._beyond: dict[str, frozenset[FactKey]] = {}

    def of(self, source: str, exit_name: str, target: str) -> frozenset[FactKey]:
        merge = self._merges.get(target)
        if merge is None:
            return self._nodes[target].own | self._after(target)
        values = [item.value for item in merge.inputs if (item.from_, item.exit) == (source, exit_name)]
        return _facts_of(values) | self._after(target)

    def _after(self, key: str) -> frozenset[FactKey]:
        known = self._beyond.get(key)
        if known is not None:
            return known
        node = self._nodes[key]
        found: frozenset[FactKey] = frozenset()
        if not isinstance(node.spec, WAITING_SPECS):
            for name, target in node.exits.items():
                found = found | self.of(key, name, target)
        self._beyond[key] = found
        return found


def _facts_of(items: Iterable[Expression | Condition]) -> frozenset[FactKey]:
    return frozenset(ref.fact for item in items for _, ref in refs_of(item))


def _node(definition: Definition, key: str, node: Node, arms: tuple[Arm, ...]) -> PlanNode:
    policy, failure_exit = _policy(node)
    signal, match = _wait_of(node)
    return PlanNode(
        key=key,
        kind=node.kind,
        spec=_spec(definition, key, node),
        exits=MappingProxyType(dict(exits(node))),
        arms=arms,
        inside=frozenset(arm.join for arm in arms),
        policy=policy,
        failure_exit=failure_exit,
        signal=signal,
        match=match,
        keep_early=isinstance(node, WaitNode) and node.early == "KEEP",
        own=_facts_of(part.item for part in expressions_of(node)),
        result_problems=_result_problems(definition, node),
    )


def _policy(node: Node) -> tuple[str, str]:
    match node:
        case TaskNode():
            target, name = node.on_failure, "on_failure"
        case WaitNode():
            target, name = node.on_timeout, "on_timeout"
        case PollNode():
            target, name = node.on_failed or "FAIL", "on_failed"
        case _:
            return FAIL, ""
    return (GOTO if isinstance(target, Goto) else target), name


def _wait_of(node: Node) -> tuple[str | None, Expression | None]:
    match node:
        case WaitNode():
            return node.signal, node.match
        case PollNode(final_signal=final) if final is not None:
            return final.signal, final.match
        case _:
            return None, None


def _result_problems(definition: Definition, node: Node) -> Validator | None:
    declared: TypeSchema
    match node:
        case TaskNode() | PollNode():
            declared = definition.handlers[node.handler].result
        case WaitNode():
            declared = definition.signals[node.signal].body
        case MergeNode():
            declared = node.result
        case SucceedNode():
            declared = definition.output
        case _:
            return None
    return compile_validator(declared, definition.types)


def _spec(definition: Definition, key: str, node: Node) -> Spec:
    match node:
        case TaskNode():
            return Task(_call(definition, node, node.total_timeout_ms))
        case WaitNode():
            return Wait(node.timeout_ms)
        case DelayNode():
            return Timer(node.delay_ms, None)
        case UntilNode():
            return Timer(None, node.until)
        case PollNode():
            return _poll(definition, node)
        case SucceedNode():
            return Succeed(node.output)
        case FailNode():
            return Fail(node.error.code, node.error.message)
        case _:
            return _passing_spec(definition, key, node)


def _passing_spec(
    definition: Definition,
    key: str,
    node: BranchOnNode | BranchWhenNode | MergeNode | ParallelNode | JoinNode,
) -> Spec:
    match node:
        case BranchOnNode():
            return _branch_on(node)
        case BranchWhenNode():
            return BranchWhen(tuple(case.when for case in node.cases))
        case MergeNode():
            return Merge(MappingProxyType({(item.from_, item.exit): item.value for item in node.inputs}))
        case ParallelNode():
            return Parallel(tuple(sorted(node.arms)), node.join)
        case JoinNode():
            return Join(_stops_others(definition, key))


def _branch_on(node: BranchOnNode) -> BranchOn:
    cases: dict[str, str] = {}
    for index, case in enumerate(node.cases):
        for value in case.equals:
            cases.setdefault(canonical_json(value), f"cases.{index}")
    return BranchOn(node.on, MappingProxyType(cases), node.otherwise is not None)


def _stops_others(definition: Definition, join: str) -> bool:
    return any(
        isinstance(node, ParallelNode) and node.join == join and node.on_arm_failure == "STOP_OTHERS"
        for node in definition.nodes.values()
    )


def _poll(definition: Definition, node: PollNode) -> Poll:
    state = node.state
    sorts = (("pending", state.pending), ("succeeded", state.succeeded), ("failed", state.failed))
    return Poll(
        call=_call(definition, node, node.within_ms),
        every_ms=node.every_ms,
        max_rounds=node.max_rounds,
        path=state.path,
        states=MappingProxyType({canonical_json(value): sort for sort, values in sorts for value in values}),
    )


def _call(definition: Definition, node: TaskNode | PollNode, total_ms: int) -> Call:
    decl: HandlerDecl = definition.handlers[node.handler]
    name, version = split_handler_key(node.handler)
    shape: dict[str, Any] = {"type": "object", "additional": False}
    if decl.parameters:
        shape["properties"] = decl.parameters
    if decl.required:
        shape["required"] = decl.required
    retry = node.retry
    return Call(
        handler=name,
        handler_version=version,
        queue=node.queue,
        input=tuple(sorted(node.input.items())),
        recovery=decl.recovery,
        can_verify=decl.verify,
        retry=Retry(
            retry.max_attempts,
            retry.backoff_ms,
            retry.factor_percent,
            retry.max_backoff_ms,
            retry.jitter_percent,
        ),
        attempt_timeout_ms=node.attempt_timeout_ms,
        total_ms=total_ms,
        start_within_ms=node.start_within_ms,
        priority=node.priority,
        concurrency_key=node.concurrency_key,
        fairness_key=node.fairness_key,
        errors=None if decl.errors is None else frozenset(decl.errors) | OWN_CODES,
        parameters_problems=compile_validator(ObjectType(**shape), definition.types),
    )
