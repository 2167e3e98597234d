"""POLL: asks in rounds, one task each, raced by an optional receipt, within rounds and one absolute deadline.

| what happens | what follows |
| --- | --- |
| opened | a receipt that is there decides; else round 1 |
| result, pending | round n + 1 at the stored time of result n + `every`; after the last round: review |
| result, succeeded or failed | the exit `next`, or `on_failed` |
| result or receipt, any other state | review, UNMAPPED |
| the query fails, expires, is cancelled, is in review | review that names the round; never a free new round |
| the deadline passed | review, TIMEOUT; no new round, a running query settles on its own |
| receipt, pending | moves nothing |
| receipt, anything else | decides like a result, and the query is let go |
"""

from __future__ import annotations

from orbit_sdk.definition.evaluate import Misfit, evaluate, read_path
from orbit_sdk.engine.checks import value_problem
from orbit_sdk.engine.commands import TaskPhase, TaskReport
from orbit_sdk.engine.decision import DetachTask
from orbit_sdk.engine.failure import fail
from orbit_sdk.engine.matching import wait_key
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import task_ref
from orbit_sdk.engine.shape import FAIL, GOTO, PlanNode, Poll
from orbit_sdk.engine.signals import MOVED_NOTHING, close_wait, consume, drop, find_signal
from orbit_sdk.engine.state import ReviewClass, Signal, SignalState, Step, StepState
from orbit_sdk.engine.tasks import (
    DOES_NOT_FIT,
    back_to_work,
    cancelled,
    failure_value,
    order_task,
    task_in_review,
)
from orbit_sdk.engine.turn import Turn
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

ROUND = "round"
UNKNOWN_STATE = "UNKNOWN_STATE"
ROUNDS_OVER = "ROUNDS_EXHAUSTED"
TIME_OVER = "DEADLINE_PASSED"
REPORTED_FAILED = "POLL_FAILED"

PENDING = "pending"
SUCCEEDED = "succeeded"
FAILED = "failed"


def spec_of(node: PlanNode) -> Poll:
    """The POLL's own part of a node."""
    spec = node.spec
    assert isinstance(spec, Poll)
    return spec


def open_poll(turn: Turn, node: PlanNode, step: Step) -> None:
    """Opens a POLL, or re-runs its round: a receipt that is already there decides before any query."""
    spec = spec_of(node)
    deadline = step.deadline_at if step.deadline_at is not None else turn.now + spec.call.total_ms * 1000
    key = None if node.match is None else wait_key(evaluate(node.match, turn))
    step = altered(
        step, deadline_at=deadline, signal=node.signal, match_key=key, state=StepState.WAITING_TIME
    )
    if take_receipts(turn, node, step):
        return
    _order_round(turn, spec, altered(step, round=max(step.round, 1)))


def rounds_allowed(spec: Poll, step: Step) -> int:
    """How many rounds there may be in all: those of the definition, and those that a person granted."""
    return spec.max_rounds + (0 if step.granted is None else step.granted.rounds)


def following_round(step: Step) -> Step:
    """The step at its next round, with the attempts of that."""
    granted = step.granted
    if granted is not None and granted.attempts:
        granted = altered(granted, attempts=0)
    return altered(step, round=step.round + 1, attempts_spent=0, result_ref=None, granted=granted)


def _order_round(turn: Turn, spec: Poll, step: Step) -> None:
    within = spec.call.start_within_ms
    latest = None if within is None else turn.now + within * 1000
    ordered = order_task(turn, spec.call, step, latest)
    turn.change(ordered, due_at=_after(step))


def _after(step: Step) -> int | None:
    """The first instant at which the deadline has passed."""
    return None if step.deadline_at is None else step.deadline_at + 1


def next_round(turn: Turn, step: Step) -> None:
    """Opens round n + 1: its own task, its own attempts, the same deadline."""
    spec = spec_of(turn.node(step))
    step = following_round(step)
    try:
        _order_round(turn, spec, step)
    except Misfit as misfit:
        turn.review(step, ReviewClass.UNMAPPED, f"ROUND_{step.round}:INPUT_DOES_NOT_FIT", str(misfit))


def due_round(turn: Turn, step_key: str) -> None:
    """A round that fell due during a pause is opened after it, unless something else decided."""
    step = turn.steps.get(step_key)
    if step is None or step.state is not StepState.WAITING_TIME:
        return
    if deadline_passed(turn, step):
        exhausted(turn, step, TIME_OVER)
    else:
        next_round(turn, step)


def deadline_passed(turn: Turn, step: Step) -> bool:
    """Passed means now is later than the deadline."""
    return step.deadline_at is not None and turn.now > step.deadline_at


def apply_to_poll(turn: Turn, step: Step, report: TaskReport) -> None:
    """What a booked report means for a POLL step."""
    prefix = f"ROUND_{step.round}:"
    match report.phase:
        case TaskPhase.OPEN:
            back_to_work(turn, step)
        case TaskPhase.SUCCEEDED:
            _answered(turn, step, report)
        case TaskPhase.FAILED | TaskPhase.EXPIRED:
            _round_failed(turn, step, report, prefix)
        case TaskPhase.CANCELLED:
            cancelled(turn, step, prefix)
        case TaskPhase.NEEDS_REVIEW:
            close_wait(turn, step)
            task_in_review(turn, step, report, prefix)


def _round_failed(turn: Turn, step: Step, report: TaskReport, prefix: str) -> None:
    code = report.error_code or report.phase.value
    step = turn.change(step, failure_ref=task_ref(report.task_id))
    if turn.is_stopped(step.step_key):
        turn.close(step, StepState.STOPPED, reason=f"{prefix}{code}"[:64])
        turn.dirty = True
        return
    close_wait(turn, step)
    late = (
        report.phase is TaskPhase.EXPIRED
        and step.deadline_at is not None
        and report.stored_at > step.deadline_at
    )
    if late:
        turn.review(step, ReviewClass.TIMEOUT, f"{prefix}{TIME_OVER}")
    else:
        kind = ReviewClass.EXPIRED if report.phase is TaskPhase.EXPIRED else ReviewClass.DEFINITE
        turn.review(step, kind, f"{prefix}{code}")


def _answered(turn: Turn, step: Step, report: TaskReport) -> None:
    """A query came back. On time is judged by when it was stored; later than the deadline it is evidence
    only.
    """
    ref = task_ref(report.task_id)
    if (
        step.deadline_at is not None
        and report.stored_at > step.deadline_at
        and not turn.is_stopped(step.step_key)
    ):
        exhausted(turn, turn.change(step, result_ref=ref, state=StepState.WAITING_TIME), TIME_OVER)
        return
    sort = classify(turn.node(step), report.result, turn.limits.payload_bytes)
    if sort == PENDING and not turn.is_stopped(step.step_key):
        _still_pending(turn, turn.change(step, result_ref=ref), report.stored_at)
    else:
        decided(turn, step, sort, ref, report.result)


def _still_pending(turn: Turn, step: Step, stored_at: int) -> None:
    spec = spec_of(turn.node(step))
    if step.round >= rounds_allowed(spec, step):
        exhausted(turn, step, ROUNDS_OVER)
        return
    if deadline_passed(turn, step):
        exhausted(turn, step, TIME_OVER)
        return
    due = stored_at + spec.every_ms * 1000
    over = _after(step)
    if over is not None and due >= over:
        due = over
    waiting = turn.change(step, state=StepState.WAITING_TIME, due_at=due)
    if due <= turn.now:
        round_due(turn, waiting)


def round_due(turn: Turn, step: Step) -> None:
    """The next round may begin; during a pause it is only noted, and the deadline stays watched."""
    if turn.paused:
        turn.change(step, due_at=_after(step))
        turn.follow(step.step_key, ROUND)
    else:
        next_round(turn, step)


def classify(node: PlanNode, value: Json, limit: int) -> str:
    """One of "pending", "succeeded", "failed", or what is wrong with the value (for a review, UNMAPPED)."""
    if value_problem(node.result_problems, value, limit) is not None:
        return DOES_NOT_FIT
    spec = spec_of(node)
    try:
        state = read_path(value, spec.path)
    except Misfit:
        return UNKNOWN_STATE
    return spec.states.get(canonical_json(state), UNKNOWN_STATE)


def decided(turn: Turn, step: Step, sort: str, ref: str, value: Json) -> None:
    """A final answer, of the query or of the receipt."""
    key = step.step_key
    close_wait(turn, step)
    turn.know(key, "result", value)
    if turn.is_stopped(key):
        state = {SUCCEEDED: StepState.COMPLETED, FAILED: StepState.FAILED}.get(sort, StepState.STOPPED)
        turn.close(step, state, result_ref=ref, review_class=None)
        turn.dirty = True
    elif sort == SUCCEEDED:
        turn.close(
            step, StepState.COMPLETED, result_ref=ref, exit_taken="next", reason=None, review_class=None
        )
        turn.follow(key, "next")
    elif sort == FAILED:
        _reported_failed(turn, step, ref)
    else:
        turn.review(step, ReviewClass.UNMAPPED, f"ROUND_{step.round}:{sort}", result_ref=ref)


def _reported_failed(turn: Turn, step: Step, ref: str) -> None:
    node = turn.node(step)
    if node.policy == GOTO:
        turn.close(step, StepState.FAILED, result_ref=ref, exit_taken=node.failure_exit, review_class=None)
        turn.follow(step.step_key, node.failure_exit)
    elif node.policy == FAIL:
        failure = failure_value(REPORTED_FAILED, f"round {step.round} reported a failed state")
        turn.know(step.step_key, "failure", failure)
        stored = turn.store("failure", failure)
        turn.close(
            step,
            StepState.FAILED,
            result_ref=ref,
            failure_ref=stored,
            reason=REPORTED_FAILED,
            review_class=None,
        )
        fail(turn, step.step_key)
    else:
        turn.review(step, ReviewClass.DEFINITE, f"ROUND_{step.round}:{REPORTED_FAILED}", result_ref=ref)


def exhausted(turn: Turn, step: Step, reason: str) -> None:
    """No round or no time is left: a person decides, with the last known value at hand."""
    close_wait(turn, step)
    if step.state is StepState.WAITING_TASK and step.task_id is not None and reason == TIME_OVER:
        turn.effects.append(DetachTask(step.task_id))
    turn.review(step, ReviewClass.TIMEOUT, f"ROUND_{step.round}:{reason}")


def take_receipts(turn: Turn, node: PlanNode, step: Step) -> bool:
    """Lets stored receipts decide, oldest first; true when one did."""
    if step.signal is None:
        return False
    while (signal := find_signal(turn, step, accepted_until=step.deadline_at)) is not None:
        if take_receipt(turn, node, step, signal):
            return True
    return False


def take_receipt(turn: Turn, node: PlanNode, step: Step, signal: Signal) -> bool:
    """One receipt: a pending one is put aside, any other decides and lets the query go."""
    body = turn.body_of(signal)
    sort = classify(node, body.body, turn.limits.payload_bytes)
    if sort == PENDING:
        drop(turn, signal, SignalState.REJECTED, MOVED_NOTHING)
        return False
    ref = consume(turn, signal, step)
    task_id = step.task_id
    if step.state is StepState.WAITING_TASK and task_id is not None:
        if turn.withdraw(task_id):
            step = altered(step, task_id=None)
        else:
            turn.effects.append(DetachTask(task_id))
    decided(turn, step, sort, ref, body.body)
    return True
