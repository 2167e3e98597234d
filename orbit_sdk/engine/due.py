"""Time: timers, the end of waits, poll rounds and poll deadlines. Due means now has reached the instant."""

from __future__ import annotations

from orbit_sdk.engine import poll
from orbit_sdk.engine.advance import complete_timer
from orbit_sdk.engine.commands import TaskReport
from orbit_sdk.engine.failure import fail
from orbit_sdk.engine.reports import apply_report
from orbit_sdk.engine.shape import FAIL, GOTO, Poll, Timer, Wait
from orbit_sdk.engine.signals import TIMED_OUT, close_wait, complete_wait, find_signal
from orbit_sdk.engine.state import ReviewClass, Step, StepState
from orbit_sdk.engine.tasks import failure_value
from orbit_sdk.engine.turn import Turn


def time_passed(turn: Turn, activation_id: str, report: TaskReport | None) -> bool:
    """Moves a step that is due; false when nothing was due (another scanner was first, or the clock was
    early).

    A stored fact that was on time wins over a deadline, however late it is looked at.
    """
    applied = report is not None and apply_report(turn, report)
    step = turn.find(activation_id)
    if step is None or step.due_at is None or turn.now < step.due_at:
        return applied
    spec = turn.node(step).spec
    if isinstance(spec, Timer):
        complete_timer(turn, step)
    elif isinstance(spec, Wait):
        _wait_over(turn, step)
    elif isinstance(spec, Poll):
        _poll_due(turn, step)
    return True


def _wait_over(turn: Turn, step: Step) -> None:
    signal = find_signal(turn, step, accepted_until=step.deadline_at)
    if signal is not None:
        complete_wait(turn, step, signal)
        return
    close_wait(turn, step)
    node = turn.node(step)
    if node.policy == GOTO:
        turn.close(step, StepState.FAILED, reason=TIMED_OUT, exit_taken=node.failure_exit)
        turn.follow(step.step_key, node.failure_exit)
    elif node.policy == FAIL:
        failure = failure_value(TIMED_OUT, f"no {step.signal} was accepted in time")
        turn.know(step.step_key, "failure", failure)
        turn.close(step, StepState.FAILED, reason=TIMED_OUT, failure_ref=turn.store("failure", failure))
        fail(turn, step.step_key)
    else:
        turn.review(step, ReviewClass.TIMEOUT, TIMED_OUT)


def _poll_due(turn: Turn, step: Step) -> None:
    node = turn.node(step)
    if poll.take_receipts(turn, node, step):
        return
    if poll.deadline_passed(turn, step):
        poll.exhausted(turn, step, poll.TIME_OVER)
    elif step.state is StepState.WAITING_TIME:
        poll.round_due(turn, step)
