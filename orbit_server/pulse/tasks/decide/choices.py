"""What a person may decide about a task, and why not the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.decide.stop import may_have_effect
from orbit_server.pulse.tasks.lifecycle import TERMINAL, TaskState
from orbit_server.pulse.tasks.records import Task

RETRY: Final = "RETRY"
_CONCLUSIONS: Final = ("SUCCEEDED", "FAILED", "CANCELLED")


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision. `needs_evidence`: an effect may have happened, so evidence must say what is known of it.
    `reason` says why it is not allowed, or what to heed.
    """

    verdict: str
    allowed: bool
    needs_evidence: bool = False
    reason: str | None = None


def choices(task: Task, retry: Id | None) -> list[Choice]:
    """Every decision there is; `retry`: the task that retries this one, if there is one."""
    return [*(_conclusion(task, verdict) for verdict in _CONCLUSIONS), _retry(task, retry)]


def _conclusion(task: Task, verdict: str) -> Choice:
    refused = _not_its_own(task)
    if refused is None and task.state in TERMINAL:
        refused = f"the task has ended: it is {task.state.value}, and that is final"
    if refused is None and task.state is not TaskState.NEEDS_REVIEW:
        refused = f"the task is {task.state.value}: only a task in review is decided on"
    if refused is not None:
        return Choice(verdict, allowed=False, reason=refused)
    unknown = may_have_effect(task)
    heed = None
    if verdict != "SUCCEEDED" and task.late_success:
        heed = "an attempt that was given up reported success later: adopt that evidence unless it is wrong"
    elif verdict != "SUCCEEDED" and unknown:
        heed = "its effect may have happened, and stays if it did"
    return Choice(verdict, allowed=True, needs_evidence=unknown, reason=heed)


def _retry(task: Task, retry: Id | None) -> Choice:
    refused = _not_its_own(task)
    if refused is None and retry is not None:
        refused = f"the task was retried as {retry}: retry that one"
    if refused is None and task.state is TaskState.SUCCEEDED:
        refused = "the task has succeeded: submit a new one"
    if refused is None and task.state is not TaskState.NEEDS_REVIEW and task.state not in TERMINAL:
        refused = f"the task is {task.state.value}: it goes on by itself; cancel it first to run it anew"
    if refused is not None:
        return Choice(RETRY, allowed=False, reason=refused)
    unknown = may_have_effect(task)
    heed = (
        "its effect may have happened, and would happen again under the same effect key" if unknown else None
    )
    return Choice(RETRY, allowed=True, needs_evidence=unknown, reason=heed)


def _not_its_own(task: Task) -> str | None:
    if task.instance_id is None:
        return None
    return f"the task belongs to step {task.step_key} of workflow {task.instance_id}: decide on the step"
