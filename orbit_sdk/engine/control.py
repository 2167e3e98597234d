"""Pause, resume and cancel. Clocks run on through a pause; a resume is no absolution; a cancel waits for the
truth.
"""

from __future__ import annotations

from collections.abc import Sequence

from orbit_sdk.engine.advance import run
from orbit_sdk.engine.commands import Cancel, Pause, Resume, TaskReport
from orbit_sdk.engine.decision import GateTasks, Refusal
from orbit_sdk.engine.due import time_passed
from orbit_sdk.engine.events import CONTROLLED
from orbit_sdk.engine.failure import stop_step
from orbit_sdk.engine.reports import apply_report
from orbit_sdk.engine.shape import Task
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, StepState
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.errors import Code, Detail
from orbit_sdk.values.json_strict import Json


def pause(turn: Turn, command: Pause) -> Refusal | None:
    """Closes the gate on every live task; what was stored goes on being stored, nothing new begins."""
    refused = _refuse(turn, command.expected_control_version)
    if refused is not None:
        return refused
    if turn.paused:
        return Refusal(Code.FAILED_PRECONDITION, "the workflow is paused already")
    turn.paused = True
    _controlled(turn, "pause")
    _gate(turn, closed=True)
    return None


def resume(turn: Turn, command: Resume) -> Refusal | None:
    """Lifts the pause alone, then looks again at everything that was stored or fell due, in order."""
    refused = _refuse(turn, command.expected_control_version)
    if refused is not None:
        return refused
    if not turn.paused:
        return Refusal(Code.FAILED_PRECONDITION, "the workflow is not paused")
    turn.paused = False
    _controlled(turn, "resume")
    _gate(turn, closed=False)
    _reexamine(turn, command.reports)
    run(turn)
    return None


def cancel(turn: Turn, command: Cancel) -> Refusal | None:
    """No new step from here on: stored facts are taken, the rest is stopped or asked to stop."""
    refused = _refuse(turn, command.expected_control_version)
    if refused is not None:
        return refused
    if turn.cancel_requested:
        return Refusal(Code.FAILED_PRECONDITION, "the workflow is being cancelled already")
    turn.cancel_requested = True
    turn.queue.clear()
    _controlled(turn, "cancel")
    for report in sorted(command.reports, key=lambda report: report.stored_at):
        apply_report(turn, report)
    for step in tuple(turn.steps.values()):
        stop_step(turn, step, "CANCELLED")
    run(turn)
    return None


def effects_kept(turn: Turn) -> tuple[str, ...]:
    """The TASKs whose work succeeded: of this turn, and of the closed steps that the caller loaded.

    Those that only read are left out: nothing is different outside because of them.
    """
    found = {key for key, step in turn.closed.items() if step.state is StepState.COMPLETED}
    return tuple(sorted(key for key in found.union(turn.effects_kept) if _had_effect(turn, key)))


def _had_effect(turn: Turn, step_key: str) -> bool:
    spec = turn.plan.nodes[step_key].spec
    return isinstance(spec, Task) and spec.call.may_have_effect


def _refuse(turn: Turn, expected: int | None) -> Refusal | None:
    if turn.head.state in TERMINAL_INSTANCE_STATES:
        return Refusal(Code.FAILED_PRECONDITION, f"the workflow is {turn.head.state.value}")
    if expected is not None and expected != turn.control_version:
        reason = f"expected {expected}, the current control version is {turn.control_version}"
        return Refusal(Code.FAILED_PRECONDITION, reason, (Detail("expected_control_version", reason),))
    return None


def _controlled(turn: Turn, operation: str) -> None:
    turn.control_version += 1
    payload: dict[str, Json] = {
        "operation": operation,
        "control_version": str(turn.control_version),
        "paused": turn.paused,
        "cancel_requested": turn.cancel_requested,
    }
    turn.leads.append(Lead(CONTROLLED, payload))


def _gate(turn: Turn, *, closed: bool) -> None:
    # Of steps in review too: such a task may still begin, if only its report could not be applied.
    tasks = tuple(step.task_id for step in turn.steps.values() if step.task_id is not None)
    if tasks:
        turn.effects.append(GateTasks(tasks, closed))


def _reexamine(turn: Turn, reports: Sequence[TaskReport]) -> None:
    """Stored reports by when they were stored, deadlines by when they passed; at one instant the report
    first.
    """
    found: list[tuple[int, int, str, TaskReport | None]] = [
        (report.stored_at, 0, report.activation_id, report) for report in reports
    ]
    found += [
        (step.due_at, 1, step.id, None)
        for step in turn.steps.values()
        if step.due_at is not None and step.due_at <= turn.now
    ]
    for _, _, activation_id, report in sorted(found, key=lambda item: item[:3]):
        if report is not None:
            apply_report(turn, report)
        else:
            time_passed(turn, activation_id, None)
