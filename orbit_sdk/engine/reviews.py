"""A person's decision on a step in review: conclude it as succeeded or failed, or run it again as a new
activation.
"""

from __future__ import annotations

from orbit_sdk.engine.advance import complete_with, open_step, run, succeed
from orbit_sdk.engine.commands import DecideReview, TaskPhase, Verdict
from orbit_sdk.engine.decision import DetachTask, Refusal, SettleTask
from orbit_sdk.engine.events import RECOVERED
from orbit_sdk.engine.failure import IN_REVIEW, fail
from orbit_sdk.engine.find import find_review, refusal
from orbit_sdk.engine.poll import FAILED, SUCCEEDED, classify, following_round, rounds_allowed
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import activation_id
from orbit_sdk.engine.shape import (
    GOTO,
    Call,
    Join,
    Merge,
    PlanNode,
    Poll,
    Spec,
    Succeed,
    Task,
    Wait,
)
from orbit_sdk.engine.signals import close_wait
from orbit_sdk.engine.state import ReviewClass, Step, StepState
from orbit_sdk.engine.tasks import attempts_left, failure_value, latest_start
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.errors import Code, Detail
from orbit_sdk.values.canonical import canonical_bytes

BY_RECOVERY = "RESOLVED_BY_RECOVERY"
CONCLUDED = "CONCLUDED"


def decide_review(turn: Turn, command: DecideReview) -> Refusal | None:
    """Checks that the decision is about what is there now, then carries it out."""
    found = _find(turn, command)
    if isinstance(found, Refusal):
        return found
    decide = {Verdict.SUCCEEDED: _succeeded, Verdict.FAILED: _failed, Verdict.RERUN: _rerun}[command.verdict]
    refused = decide(turn, command, found)
    if refused is not None:
        return refused
    turn.leads.append(
        Lead(
            RECOVERED,
            {"step_key": command.step_key, "activation_id": found.id, "verdict": command.verdict.value},
        )
    )
    run(turn)
    return None


def _find(turn: Turn, command: DecideReview) -> Step | Refusal:
    step = find_review(turn, command.step_key, command.expected_revision)
    if isinstance(step, Refusal):
        return step
    if _phase(step, command) is TaskPhase.OPEN and isinstance(turn.node(step).spec, Task):
        return refusal("the task of this step is not settled yet")
    return step


def _phase(step: Step, command: DecideReview) -> TaskPhase | None:
    """How the step's task stands: as reported, else as the step remembers it."""
    if step.task_id is None:
        return None
    if command.report is not None and command.report.task_id == step.task_id:
        return command.report.phase
    return TaskPhase.NEEDS_REVIEW if (step.reason or "").endswith(IN_REVIEW) else None


def _settle_task(turn: Turn, command: DecideReview, step: Step, order: SettleTask) -> None:
    """The old task is settled with the decision; a query that still runs is let go."""
    phase = _phase(step, command)
    if phase is TaskPhase.NEEDS_REVIEW:
        turn.effects.append(order)
    elif phase is TaskPhase.OPEN:
        turn.effects.append(DetachTask(order.task_id))


def _succeeded(turn: Turn, command: DecideReview, step: Step) -> Refusal | None:
    node = turn.node(step)
    if "next" not in node.exits and not isinstance(node.spec, Succeed):
        return refusal(f"a {node.kind} has no result that could be concluded; run it again or let it fail")
    refused = _check_result(turn, command, node, SUCCEEDED)
    if refused is not None:
        return refused
    order = SettleTask(step.task_id or "", "SUCCEEDED", CONCLUDED, result=command.result)
    _settle_task(turn, command, step, order)
    close_wait(turn, step)
    if isinstance(node.spec, Wait):
        turn.know(step.step_key, "meta", None)
    if turn.is_stopped(step.step_key):
        ref = turn.store("result", command.result)
        turn.close(step, StepState.COMPLETED, result_ref=ref, reason=CONCLUDED, review_class=None)
        turn.dirty = True
    elif isinstance(node.spec, Succeed):
        succeed(turn, step, command.result)
    else:
        complete_with(turn, step, command.result)
    return None


def _check_result(turn: Turn, command: DecideReview, node: PlanNode, sort: str) -> Refusal | None:
    problems = node.result_problems(command.result) if node.result_problems is not None else []
    if problems:
        details = tuple(problem.detail("result") for problem in problems)
        reason = f"the result is not valid: {details[0].field} {details[0].reason}"
        return Refusal(Code.INVALID_ARGUMENT, reason, details)
    limits = turn.limits
    limit = limits.output_bytes if isinstance(node.spec, Succeed) else limits.payload_bytes
    if len(canonical_bytes(command.result)) > limit:
        detail = Detail("result", f"has more than {limit} bytes")
        return Refusal(Code.PAYLOAD_TOO_LARGE, f"the result has more than {limit} bytes", (detail,))
    if isinstance(node.spec, Poll) and classify(node, command.result, limit) != sort:
        detail = Detail("result", f"its state is not one of those that mean {sort}")
        return Refusal(Code.INVALID_ARGUMENT, f"result {detail.reason}", (detail,))
    return None


def _failed(turn: Turn, command: DecideReview, step: Step) -> Refusal | None:
    node, code = turn.node(step), command.code
    if code is None:
        return Refusal(Code.INVALID_ARGUMENT, "code is missing", (Detail("code", "is missing"),))
    caught = node.policy == GOTO
    refused = _check_caught(turn, command, node, code) if caught else None
    if refused is not None:
        return refused
    _settle_task(
        turn,
        command,
        step,
        SettleTask(step.task_id or "", "FAILED", CONCLUDED, error_code=code, error_message=command.message),
    )
    close_wait(turn, step)
    failure = failure_value(code, command.message)
    turn.know(step.step_key, "failure", failure)
    changes = {"failure_ref": turn.store("failure", failure), "reason": code, "review_class": None}
    if turn.is_stopped(step.step_key):
        turn.close(step, StepState.FAILED, **changes)
        turn.dirty = True
    elif caught:
        if isinstance(node.spec, Poll):
            changes["result_ref"] = turn.store("result", command.result)
            turn.know(step.step_key, "result", command.result)
        turn.close(step, StepState.FAILED, exit_taken=node.failure_exit, **changes)
        turn.follow(step.step_key, node.failure_exit)
    else:
        turn.close(step, StepState.FAILED, **changes)
        fail(turn, step.step_key)
    return None


def _check_caught(turn: Turn, command: DecideReview, node: PlanNode, code: str) -> Refusal | None:
    """A catch arm was written for certain facts: a declared code, or a result in a failed state."""
    spec = node.spec
    if isinstance(spec, Poll):
        return _check_result(turn, command, node, FAILED)
    if isinstance(spec, Task) and spec.call.errors is not None and code not in spec.call.errors:
        detail = Detail("code", f"is not declared by the handler: {', '.join(sorted(spec.call.errors))}")
        return Refusal(Code.INVALID_ARGUMENT, f"code {detail.reason}", (detail,))
    return None


def _rerun(turn: Turn, command: DecideReview, step: Step) -> Refusal | None:
    node = turn.node(step)
    step = _informed(step, command)
    if isinstance(node.spec, Poll) and step.review_class is ReviewClass.TIMEOUT:
        return _rerun_next_round(turn, command, step, node.spec)
    return _rerun_as(turn, command, step, step)


def _rerun_next_round(turn: Turn, command: DecideReview, step: Step, spec: Poll) -> Refusal | None:
    """Its round was asked and its time or its rounds were over: what was granted is for further rounds."""
    if step.round >= rounds_allowed(spec, step):
        return refusal("no round is left; conclude it, or have more granted")
    return _rerun_as(turn, command, step, following_round(step))


def _rerun_as(turn: Turn, command: DecideReview, step: Step, again: Step) -> Refusal | None:
    """Runs the step again as a new activation; `again` says with which round and budgets."""
    node = turn.node(step)
    refused = _refuse_rerun(turn, command, again, node)
    if refused is not None:
        return refused
    order = SettleTask(
        step.task_id or "",
        "FAILED",
        BY_RECOVERY,
        error_code=BY_RECOVERY,
        error_message="run again as a new activation",
    )
    _settle_task(turn, command, step, order)
    old = turn.close(step, StepState.STOPPED, reason=BY_RECOVERY)
    fresh = altered(
        again,
        revision=old.revision + 1,
        id=activation_id(turn.head.id, step.step_key, step.activation_no + 1),
        activation_no=step.activation_no + 1,
        state=StepState.PENDING,
        opened_at=turn.now,
        reason=None,
        review_class=None,
        task_id=None,
        task_revision=0,
        result_ref=None,
        failure_ref=None,
    )
    open_step(turn, node, fresh, ("", ""))
    return None


def _informed(step: Step, command: DecideReview) -> Step:
    """The step with what its task may have done, and with what it spent where its report could not be
    applied.
    """
    report = command.report
    if report is None or report.task_id != step.task_id:
        return step
    unbooked = report.attempts_used if step.review_class is ReviewClass.ENGINE_ERROR else 0
    return altered(
        step,
        attempts_spent=step.attempts_spent + unbooked,
        effect_possible=step.effect_possible or report.effect_possible,
    )


def _refuse_rerun(turn: Turn, command: DecideReview, step: Step, node: PlanNode) -> Refusal | None:
    if turn.paused:
        return refusal("the workflow is paused: nothing is started until it is resumed")
    if turn.is_stopped(step.step_key):
        return refusal("what is being stopped is not run again; conclude it")
    spec = node.spec
    if isinstance(spec, Merge | Join):
        return refusal(f"a {node.kind} is not run again; conclude it")
    if step.deadline_at is not None and turn.now > step.deadline_at:
        return refusal("no time is left; conclude it, or have more granted")
    if isinstance(spec, Task | Poll):
        return _refuse_repeat(turn, command, step, spec.call)
    return None


def rerun_needs_proof(spec: Spec, *, effect_possible: bool) -> bool:
    """Whether a step of this kind runs again only where it is proven that no attempt had an effect."""
    return isinstance(spec, Task | Poll) and effect_possible and not spec.call.repeatable


def _refuse_repeat(turn: Turn, command: DecideReview, step: Step, call: Call) -> Refusal | None:
    if attempts_left(call, step) <= 0:
        return refusal("no attempt is left; conclude it, or have more granted")
    if isinstance(turn.node(step).spec, Task) and step.deadline_at is not None:
        latest = latest_start(call, step.deadline_at)
        if latest is not None and turn.now > latest:
            return refusal("its latest start has passed; conclude it, or have more granted")
    if call.repeatable:
        return None
    if _phase(step, command) is TaskPhase.SUCCEEDED:
        return refusal("its task succeeded; conclude it with the right result")
    if rerun_needs_proof(turn.node(step).spec, effect_possible=step.effect_possible) and not (
        command.no_effect_proven
    ):
        return refusal("an attempt may have had an effect; prove that it had none, or conclude it")
    return None
