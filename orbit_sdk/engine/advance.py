"""The advance: follows exits and opens what they lead to, until everything rests or the budget is spent.

A TASK, WAIT, TIMER or POLL comes to rest and is followed later; BRANCH, MERGE, PARALLEL, JOIN and END are
done at once. One exit followed is one transition.
"""

from __future__ import annotations

from collections.abc import Callable

from orbit_sdk.definition.evaluate import Misfit, evaluate, holds
from orbit_sdk.engine import poll
from orbit_sdk.engine.checks import check_value
from orbit_sdk.engine.failure import fail, settle
from orbit_sdk.engine.matching import wait_key
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import activation_id, pending_exit
from orbit_sdk.engine.shape import (
    BranchOn,
    BranchWhen,
    Fail,
    Join,
    Merge,
    Parallel,
    PlanNode,
    Poll,
    Succeed,
    Task,
    Timer,
    Wait,
)
from orbit_sdk.engine.signals import complete_wait, find_signal
from orbit_sdk.engine.state import ArmState, InstanceState, ReviewClass, Step, StepState
from orbit_sdk.engine.tasks import open_task
from orbit_sdk.engine.turn import Turn
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.instants import from_rfc3339
from orbit_sdk.values.json_strict import Json

START = ("", "")
"""The exit before the first node."""

INPUT_DOES_NOT_FIT = "INPUT_DOES_NOT_FIT"

Edge = tuple[str, str]


def run(turn: Turn) -> None:
    """Follows exits until none is left, the instance ended, or the budget is spent. A pause follows none."""
    if turn.dirty:
        settle(turn)
    while turn.queue and turn.ended is None and not turn.paused:
        if turn.transitions >= turn.limits.transitions:
            return
        turn.following = edge = turn.queue.popleft()
        turn.transitions += 1
        _follow(turn, edge)
        if turn.dirty:
            settle(turn)
    turn.following = None


def _follow(turn: Turn, edge: Edge) -> None:
    source, exit_name = edge
    if exit_name == poll.ROUND:
        poll.due_round(turn, source)
        return
    node = target_of(turn, edge)
    if isinstance(node.spec, Join):
        arrive(turn, node.key, source)
    else:
        open_step(turn, node, new_step(turn, node), edge)


def target_of(turn: Turn, edge: Edge) -> PlanNode:
    """Where an exit leads."""
    source, exit_name = edge
    plan = turn.plan
    return plan.nodes[plan.start if edge == START else plan.nodes[source].exits[exit_name]]


def new_step(turn: Turn, node: PlanNode) -> Step:
    """The first activation of a node, not yet recorded."""
    return Step(
        id=activation_id(turn.head.id, node.key, 1),
        instance_id=turn.head.id,
        step_key=node.key,
        activation_no=1,
        state=StepState.PENDING,
        live=True,
        opened_at=turn.now,
    )


def open_step(turn: Turn, node: PlanNode, step: Step, edge: Edge) -> None:
    """Opens an activation; what does not fit at run time goes to a person before anything was ordered."""
    opener = _OPENERS[type(node.spec)]
    try:
        opener(turn, node, step, edge)
    except Misfit as misfit:
        turn.review(step, ReviewClass.UNMAPPED, INPUT_DOES_NOT_FIT, str(misfit))


def arrive(turn: Turn, join_key: str, source: str) -> None:
    """An arm reached its JOIN. The last one opens the successor, once: the JOIN closes with it."""
    arm = turn.plan.nodes[source].arms[-1].name
    join = turn.set_arms(turn.steps[join_key], (arm,), ArmState.DONE)
    states = (join.arms or {}).values()
    if all(state is ArmState.DONE for state in states):
        turn.close(join, StepState.COMPLETED, exit_taken="next")
        turn.follow(join_key, "next")
    elif ArmState.OPEN not in states:
        turn.dirty = True


def _open_task(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    open_task(turn, node, step)


def _open_poll(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    poll.open_poll(turn, node, step)


def _open_wait(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Wait)
    assert node.match is not None
    deadline = step.deadline_at if step.deadline_at is not None else turn.now + spec.timeout_ms * 1000
    step = altered(
        step,
        state=StepState.WAITING_SIGNAL,
        signal=node.signal,
        match_key=wait_key(evaluate(node.match, turn)),
        deadline_at=deadline,
        due_at=deadline + 1,
    )
    signal = find_signal(turn, step)
    if signal is None:
        turn.put(step)
    else:
        complete_wait(turn, step, signal)


def _open_timer(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Timer)
    due = turn.now + spec.delay_ms * 1000 if spec.delay_ms is not None else _until(turn, spec)
    if due > turn.now:
        turn.put(altered(step, state=StepState.WAITING_TIME, due_at=due))
    else:
        complete_timer(turn, step)


def _until(turn: Turn, spec: Timer) -> int:
    assert spec.until is not None
    text = evaluate(spec.until, turn)
    if not isinstance(text, str):
        raise Misfit("the instant of a timer is a text of format date-time")
    try:
        return from_rfc3339(text)
    except ValueError as error:
        raise Misfit(f"the instant of a timer {error}") from None


def complete_timer(turn: Turn, step: Step) -> None:
    """The instant of a TIMER is here."""
    turn.close(step, StepState.COMPLETED, exit_taken="next")
    turn.follow(step.step_key, "next")


def _open_branch_on(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, BranchOn)
    taken = spec.cases.get(canonical_json(evaluate(spec.on, turn)))
    if taken is None and not spec.otherwise:
        raise Misfit("no case takes this value")
    _branch(turn, step, taken or "otherwise")


def _open_branch_when(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, BranchWhen)
    for index, condition in enumerate(spec.conditions):
        if holds(condition, turn):
            _branch(turn, step, f"cases.{index}")
            return
    _branch(turn, step, "otherwise")


def _branch(turn: Turn, step: Step, taken: str) -> None:
    turn.close(step, StepState.COMPLETED, exit_taken=taken)
    turn.follow(step.step_key, taken)


def _open_merge(turn: Turn, node: PlanNode, step: Step, edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Merge)
    value = evaluate(spec.inputs[edge], turn)
    check_value(node.result_problems, value, turn.limits.payload_bytes, "the merged value")
    complete_with(turn, step, value)


def complete_with(turn: Turn, step: Step, value: Json) -> None:
    """A step whose result is a value that the engine stores: merged, or concluded by a person."""
    ref = turn.store("result", value)
    turn.know(step.step_key, "result", value)
    turn.close(step, StepState.COMPLETED, result_ref=ref, exit_taken="next", reason=None, review_class=None)
    turn.follow(step.step_key, "next")


def _open_parallel(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Parallel)
    join = new_step(turn, turn.plan.nodes[spec.join])
    turn.close(step, StepState.COMPLETED)
    turn.put(altered(join, arms=dict.fromkeys(spec.arms, ArmState.OPEN)))
    for arm in spec.arms:
        turn.follow(step.step_key, f"arms.{arm}")


def _open_succeed(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Succeed)
    value = evaluate(spec.output, turn)
    check_value(node.result_problems, value, turn.limits.output_bytes, "the output")
    succeed(turn, step, value)


def succeed(turn: Turn, step: Step, value: Json) -> None:
    """The END that succeeds: nothing else is live, because it stands outside every arm."""
    turn.close(step, StepState.COMPLETED, reason=None, review_class=None)
    turn.output = value
    turn.ended = InstanceState.SUCCEEDED


def _open_fail(turn: Turn, node: PlanNode, step: Step, _edge: Edge) -> None:
    spec = node.spec
    assert isinstance(spec, Fail)
    turn.close(step, StepState.FAILED, reason=spec.code)
    fail(turn, step.step_key)


def block(turn: Turn, edge: Edge, message: str) -> None:
    """An exit that cannot be followed: its target is put into review instead, for a person to re-run or
    conclude.
    """
    source, exit_name = edge
    if exit_name == poll.ROUND:
        waiting = turn.steps.get(source)
        if waiting is None or waiting.state is not StepState.WAITING_TIME:
            return
        step = waiting
    else:
        node = target_of(turn, edge)
        if isinstance(node.spec, Join):
            arrive(turn, node.key, source)
            return
        step = new_step(turn, node)
    turn.review(step, ReviewClass.ENGINE_ERROR, "ENGINE_ERROR", f"{pending_exit(*edge)}: {message}")


_OPENERS: dict[type, Callable[[Turn, PlanNode, Step, Edge], None]] = {
    Task: _open_task,
    Wait: _open_wait,
    Timer: _open_timer,
    Poll: _open_poll,
    BranchOn: _open_branch_on,
    BranchWhen: _open_branch_when,
    Merge: _open_merge,
    Parallel: _open_parallel,
    Succeed: _open_succeed,
    Fail: _open_fail,
}
