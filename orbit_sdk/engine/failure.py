"""Failure, stopping and settling of parallel arms; the end of an instance that will not succeed.

An arm is OPEN, DONE (it arrived at the JOIN), FAILED or STOPPED (told to stop; what it had started may still
be settling). A region is settled when no arm is open and nothing inside is live. Only then its JOIN closes,
and only then a failure goes on to the region around it. A step in review keeps its region from settling: an
arm in review has not failed.
"""

from __future__ import annotations

from collections.abc import Collection

from orbit_sdk.engine.decision import CancelTask, DetachTask, SettleTask
from orbit_sdk.engine.shape import Join, PlanNode, Poll, Task
from orbit_sdk.engine.signals import close_wait
from orbit_sdk.engine.state import ArmState, ReviewClass, Step, StepState
from orbit_sdk.engine.turn import Turn

IN_REVIEW = "TASK_IN_REVIEW"
"""The reason of a step whose *task* is in review; prefixed with the round in a POLL."""

_DEFINITE = frozenset({ReviewClass.DEFINITE, ReviewClass.EXPIRED, ReviewClass.TIMEOUT})


def fail(turn: Turn, step_key: str) -> None:
    """A definite failure that nothing catches and nobody stopped: its arm failed, or the whole workflow."""
    turn.dirty = True
    if turn.stopping is None:
        turn.stopping = step_key
    arms = turn.plan.nodes[step_key].arms
    if not arms:
        return
    inner = arms[-1]
    join = turn.set_arms(turn.steps[inner.join], (inner.name,), ArmState.FAILED)
    spec = turn.node(join).spec
    if isinstance(spec, Join) and spec.stop_others:
        stop_arms(turn, join, "ARM_FAILED")


def stop_arms(turn: Turn, join: Step, reason: str) -> None:
    """Stops every open arm of a region: nothing new starts, waits end, tasks are asked to stop."""
    names = {name for name, state in (join.arms or {}).items() if state is ArmState.OPEN}
    if not names:
        return
    turn.set_arms(join, names, ArmState.STOPPED)
    region = join.step_key
    kept = [entry for entry in turn.queue if not _leads_into(turn, entry, region, names)]
    turn.queue.clear()
    turn.queue.extend(kept)
    for step in tuple(turn.steps.values()):
        if _lies_in(turn.node(step), region, names):
            stop_step(turn, step, reason)


def stop_step(turn: Turn, step: Step, reason: str) -> None:
    """Ends what can be ended at once; a running task is asked and stays until the truth is known."""
    turn.dirty = True
    if step.arms is not None:
        open_arms = [name for name, state in step.arms.items() if state is ArmState.OPEN]
        turn.set_arms(step, open_arms, ArmState.STOPPED)
    elif step.state is StepState.WAITING_TASK:
        _stop_task(turn, step, reason)
    elif step.state is StepState.NEEDS_REVIEW:
        _stop_review(turn, step, reason)
    else:
        close_wait(turn, step)
        turn.close(step, StepState.STOPPED, reason=reason)


def holds_unknown_effect(turn: Turn, step: Step) -> bool:
    """Whether a step in review may have done something that nobody knows of."""
    if step.review_class in _DEFINITE:
        return False
    if step.review_class is ReviewClass.UNKNOWN:
        return True
    return step.effect_possible and isinstance(turn.node(step).spec, Task)


def settle(turn: Turn) -> None:
    """Closes every region that is settled, innermost first, until nothing more follows."""
    while turn.dirty:
        turn.dirty = False
        joins = [step for step in turn.steps.values() if step.arms is not None]
        joins.sort(key=lambda step: -len(turn.node(step).arms))
        for join in joins:
            current = turn.steps.get(join.step_key)
            if current is not None:
                _try_close(turn, current)


def _try_close(turn: Turn, join: Step) -> None:
    arms = (join.arms or {}).values()
    region = join.step_key
    if ArmState.OPEN in arms or any(region in turn.node(step).inside for step in turn.steps.values()):
        return
    stopped = turn.is_stopped(region)
    if ArmState.FAILED in arms and not stopped:
        turn.close(join, StepState.FAILED, reason="ARM_FAILED")
        fail(turn, region)
    else:
        turn.close(join, StepState.STOPPED, reason="STOPPED")
        turn.dirty = True


def _stop_task(turn: Turn, step: Step, reason: str) -> None:
    close_wait(turn, step)
    task_id = step.task_id or ""
    if turn.withdraw(task_id):
        turn.close(step, StepState.STOPPED, reason=reason, task_id=None)
        return
    turn.effects.append(CancelTask(task_id, reason))
    turn.change(step, due_at=None, reason=reason)


def _stop_review(turn: Turn, step: Step, reason: str) -> None:
    if holds_unknown_effect(turn, step):
        if step.task_id is not None and step.review_class is ReviewClass.ENGINE_ERROR:
            # Only its report could not be applied: the task itself may still begin, or run.
            turn.effects.append(CancelTask(step.task_id, reason))
        return
    if step.task_id is not None:
        if (step.reason or "").endswith(IN_REVIEW):
            turn.effects.append(SettleTask(step.task_id, "CANCELLED", reason))
        elif isinstance(turn.node(step).spec, Poll) and step.review_class is not ReviewClass.TIMEOUT:
            turn.effects.append(DetachTask(step.task_id))
    turn.close(step, StepState.STOPPED, reason=reason)


def _lies_in(node: PlanNode, region: str, names: Collection[str]) -> bool:
    return any(arm.join == region and arm.name in names for arm in node.arms)


def _leads_into(turn: Turn, entry: tuple[str, str], region: str, names: Collection[str]) -> bool:
    """Whether an exit that waits to be followed starts in one of these arms, or is about to enter it."""
    source, exit_name = entry
    node = turn.plan.nodes[source]
    if _lies_in(node, region, names):
        return True
    target = node.exits.get(exit_name)
    return target is not None and _lies_in(turn.plan.nodes[target], region, names)
