"""Tasks of a workflow: how they are ordered, and what their stored reports mean for a TASK step."""

from __future__ import annotations

from orbit_sdk.definition.evaluate import Misfit, evaluate
from orbit_sdk.definition.expressions import Expression
from orbit_sdk.engine.checks import check_value, value_problem
from orbit_sdk.engine.commands import TaskPhase, TaskReport
from orbit_sdk.engine.decision import CreateTask, SettleTask
from orbit_sdk.engine.failure import IN_REVIEW, fail, holds_unknown_effect
from orbit_sdk.engine.matching import MAX_KEY_CHARS
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import effect_key, task_ref
from orbit_sdk.engine.shape import FAIL, GOTO, OWN_CODES, Call, PlanNode, Task
from orbit_sdk.engine.state import ReviewClass, Step, StepState
from orbit_sdk.engine.turn import Turn
from orbit_sdk.values.json_strict import Json

DOES_NOT_FIT = "RESULT_DOES_NOT_FIT"
UNDECLARED = "UNDECLARED_CODE"


def open_task(turn: Turn, node: PlanNode, step: Step) -> None:
    """Opens a TASK; a re-activation brings its deadline and what it spent."""
    spec = node.spec
    assert isinstance(spec, Task)
    deadline = step.deadline_at if step.deadline_at is not None else turn.now + spec.call.total_ms * 1000
    order_task(turn, spec.call, altered(step, deadline_at=deadline), latest_start(spec.call, deadline))


def latest_start(call: Call, deadline: int) -> int | None:
    """The last instant a TASK may start: counted from its first opening, like its deadline."""
    if call.start_within_ms is None:
        return None
    return deadline - (call.total_ms - call.start_within_ms) * 1000


def attempts_left(call: Call, step: Step) -> int:
    """What this activation (of a POLL: this round) may still spend."""
    granted = 0 if step.granted is None else step.granted.attempts
    return call.retry.max_attempts + granted - step.attempts_spent


def order_task(turn: Turn, call: Call, step: Step, latest_start_at: int | None) -> Step:
    """Orders the task of an activation or of a round; raises Misfit before anything is recorded."""
    parameters: Json = {name: evaluate(value, turn) for name, value in call.input}
    check_value(call.parameters_problems, parameters, turn.limits.payload_bytes, "the handler's parameters")
    order = CreateTask(
        task_id=turn.new_id(),
        activation_id=step.id,
        step_key=step.step_key,
        round=step.round,
        handler=call.handler,
        handler_version=call.handler_version,
        queue=call.queue,
        parameters=parameters,
        recovery=call.recovery,
        can_verify=call.can_verify,
        retry=call.retry,
        attempts_max=attempts_left(call, step),
        attempt_timeout_ms=call.attempt_timeout_ms,
        total_deadline_at=step.deadline_at or turn.now,
        latest_start_at=latest_start_at,
        priority=call.priority,
        effect_key=effect_key(turn.head.effect_root, step.step_key, step.round),
        concurrency_key=_key(turn, call.concurrency_key),
        fairness_key=_key(turn, call.fairness_key),
    )
    turn.effects.append(order)
    turn.created.add(order.task_id)
    return turn.change(
        step,
        state=StepState.WAITING_TASK,
        task_id=order.task_id,
        task_revision=0,
        reason=None,
        review_class=None,
    )


def _key(turn: Turn, expression: Expression | None) -> str | None:
    if expression is None:
        return None
    value = evaluate(expression, turn)
    if value is None or (isinstance(value, str) and 0 < len(value) <= MAX_KEY_CHARS):
        return value
    raise Misfit(f"a concurrency or fairness key is a text of at most {MAX_KEY_CHARS} characters")


def take_report(turn: Turn, step: Step, report: TaskReport) -> Step | None:
    """Books a report on its step; None when it is stale: another task, an older revision, a step that went
    on.

    A step in review takes reports only while its *task* is what is in review: late evidence never clears a
    review.
    """
    if report.task_id != step.task_id or report.source_revision <= step.task_revision:
        return None
    asked = step.state is StepState.NEEDS_REVIEW
    if asked and not (step.reason or "").endswith(IN_REVIEW):
        return None
    if not asked and step.state is not StepState.WAITING_TASK:
        return None
    spent = step.attempts_spent
    if report.phase is TaskPhase.OPEN:
        spent -= report.attempts_used if asked else 0
    elif not asked:
        spent += report.attempts_used
    return turn.change(
        step,
        task_revision=report.source_revision,
        attempts_spent=max(spent, 0),
        effect_possible=step.effect_possible or report.effect_possible,
    )


def apply_to_task(turn: Turn, step: Step, report: TaskReport) -> None:
    """What a booked report means for a TASK step."""
    match report.phase:
        case TaskPhase.OPEN:
            back_to_work(turn, step)
        case TaskPhase.SUCCEEDED:
            _succeeded(turn, step, report)
        case TaskPhase.FAILED | TaskPhase.EXPIRED:
            code = report.error_code or report.phase.value
            kind = ReviewClass.EXPIRED if report.phase is TaskPhase.EXPIRED else ReviewClass.DEFINITE
            turn.know(step.step_key, "failure", failure_value(code, report.error_message))
            failed = turn.change(step, failure_ref=task_ref(report.task_id))
            definite_failure(turn, failed, code, kind, declared=_is_declared(turn.node(step), code))
        case TaskPhase.CANCELLED:
            cancelled(turn, step, "")
        case TaskPhase.NEEDS_REVIEW:
            task_in_review(turn, step, report, "")


def failure_value(code: str, message: str | None) -> Json:
    """The fact that a failure exit carries."""
    return {"code": code, "message": message or ""}


def back_to_work(turn: Turn, step: Step) -> None:
    """The task is open: the step waits for it, also after a review of the task was taken back."""
    if step.state is StepState.NEEDS_REVIEW:
        turn.change(step, state=StepState.WAITING_TASK, reason=None, review_class=None)


def _succeeded(turn: Turn, step: Step, report: TaskReport) -> None:
    node, ref = turn.node(step), task_ref(report.task_id)
    if turn.is_stopped(step.step_key):
        turn.close(step, StepState.COMPLETED, result_ref=ref, review_class=None)
        turn.effects_kept.append(step.step_key)
        turn.dirty = True
        return
    problem = value_problem(node.result_problems, report.result, turn.limits.payload_bytes)
    if problem is not None:
        spec = node.spec
        happened = not (isinstance(spec, Task) and not spec.call.may_have_effect)
        turn.review(step, ReviewClass.UNMAPPED, DOES_NOT_FIT, problem, effect_possible=happened)
        return
    turn.know(step.step_key, "result", report.result)
    turn.close(step, StepState.COMPLETED, result_ref=ref, exit_taken="next", reason=None, review_class=None)
    turn.follow(step.step_key, "next")


def definite_failure(turn: Turn, step: Step, code: str, kind: ReviewClass, *, declared: bool) -> None:
    """A failure known to be one: closed by its policy. Its value is already a fact and its reference
    recorded.
    """
    node = turn.node(step)
    if turn.is_stopped(step.step_key):
        turn.close(step, StepState.FAILED, reason=code, review_class=None)
        turn.dirty = True
    elif not declared:
        turn.review(step, ReviewClass.UNMAPPED, UNDECLARED)
    elif node.policy == GOTO:
        turn.close(step, StepState.FAILED, reason=code, review_class=None, exit_taken=node.failure_exit)
        turn.follow(step.step_key, node.failure_exit)
    elif node.policy == FAIL:
        turn.close(step, StepState.FAILED, reason=code, review_class=None)
        fail(turn, step.step_key)
    else:
        turn.review(step, kind, code)


def cancelled(turn: Turn, step: Step, prefix: str) -> None:
    """The task ended cancelled: as asked, or by nobody of this workflow, which a person has to look at."""
    if turn.is_stopped(step.step_key):
        turn.close(step, StepState.STOPPED, review_class=None)
        turn.dirty = True
    else:
        turn.review(step, ReviewClass.DEFINITE, f"{prefix}TASK_CANCELLED")


def task_in_review(turn: Turn, step: Step, report: TaskReport, prefix: str) -> None:
    """A person decides what became of the task. What holds no unknown effect yields to a stop."""
    asked = turn.review(step, report.review_class or ReviewClass.UNKNOWN, f"{prefix}{IN_REVIEW}")
    if turn.is_stopped(step.step_key) and not holds_unknown_effect(turn, asked):
        turn.effects.append(SettleTask(report.task_id, "CANCELLED", "STOPPED"))
        turn.close(asked, StepState.STOPPED)
        turn.dirty = True


def _is_declared(node: PlanNode, code: str) -> bool:
    spec = node.spec
    if not isinstance(spec, Task) or spec.call.errors is None:
        return True
    return code in spec.call.errors or code in OWN_CODES
