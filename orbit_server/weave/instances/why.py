"""Why an instance stands where it stands: told from its stored rows, without asking anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import Goto, PollNode, WaitNode
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, StepState
from orbit_sdk.values.ids import Id
from orbit_server.weave.instances.queries import StepFacts
from orbit_server.weave.state.rows import InstanceRow, StepRow

_WORKED_ON: Final = {
    "SCHEDULED": "is not due yet",
    "READY": "waits for a free worker",
    "OFFERED": "is being offered to a worker",
    "RUNNING": "is running",
    "RETRY_WAIT": "failed for now and will be tried again",
    "VERIFYING": "is asking whether its effect happened",
    "CANCELLING": "was asked to stop and has not answered yet",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """See `protocol.explain.WorkflowReason`; instants in microseconds. `moves`: it goes on by itself now."""

    code: str
    message: str
    moves: bool = False
    step_key: str | None = None
    task_id: Id | None = None
    wait_id: Id | None = None
    since: int | None = None
    until: int | None = None
    then: str | None = None
    command: str | None = None


def reasons_of(row: InstanceRow, steps: Sequence[StepFacts], definition: Definition) -> list[Reason]:
    """Everything that this instance waits for; the gravest first. `steps`: their latest activations."""
    if row.state in TERMINAL_INSTANCE_STATES:
        return [Reason("ENDED", f"it ended as {row.state.value}", since=row.ended_at)]
    found: list[Reason] = []
    if row.paused:
        found.append(
            Reason(
                "PAUSED",
                "it is paused: nothing new starts, clocks run on",
                command=f"orbit resume {row.id} --reason …",
            )
        )
    if row.cancel_requested:
        found.append(Reason("CANCEL_ASKED", "a cancel was accepted; what runs is being settled", moves=True))
    if row.stopping is not None:
        found.append(
            Reason(
                "FAILING", f"{row.stopping} failed; it ends as FAILED when everything is settled", moves=True
            )
        )
    if row.checkpoint and not row.paused:
        found.append(Reason("ADVANCING", "exits are still to be followed; a scan goes on", moves=True))
    live = [_step_reason(facts, definition) for facts in steps if facts.row.live]
    order = ("IN_REVIEW", "WAITS_FOR_SIGNAL", "WAITS_FOR_TIME", "WAITS_FOR_TASK", "WAITS_FOR_ARMS")
    return found + sorted(live, key=lambda reason: (order.index(reason.code), reason.step_key or ""))


def _step_reason(facts: StepFacts, definition: Definition) -> Reason:
    row = facts.row
    node = definition.nodes[row.step_key]
    if row.state is StepState.NEEDS_REVIEW:
        kind = None if row.review_class is None else row.review_class.value
        return Reason(
            "IN_REVIEW",
            f"{row.step_key} needs a person ({kind}: {row.reason})",
            step_key=row.step_key,
            task_id=row.task_id,
            since=row.last,
            command=f"orbit review show {row.instance_id} {row.step_key}",
        )
    if row.state is StepState.WAITING_SIGNAL and isinstance(node, WaitNode):
        return _signal_reason(row, node)
    if row.state is StepState.WAITING_TIME:
        what = f"asks round {row.round + 1}" if isinstance(node, PollNode) else "goes on"
        return Reason(
            "WAITS_FOR_TIME",
            f"{row.step_key} waits for its time",
            step_key=row.step_key,
            since=row.opened_at,
            until=row.due_at,
            then=f"{row.step_key} {what}",
        )
    if row.state is StepState.WAITING_TASK:
        said = _WORKED_ON.get(facts.task_state or "", f"is {facts.task_state}")
        return Reason(
            "WAITS_FOR_TASK",
            f"the task of {row.step_key} {said}",
            moves=True,
            step_key=row.step_key,
            task_id=row.task_id,
            since=row.opened_at,
            until=row.deadline_at,
            command=None if row.task_id is None else f"orbit task show {row.task_id}",
        )
    return Reason(
        "WAITS_FOR_ARMS",
        f"{row.step_key} waits for its arms",
        moves=True,
        step_key=row.step_key,
        since=row.opened_at,
    )


def _signal_reason(row: StepRow, node: WaitNode) -> Reason:
    after = node.on_timeout
    then = (
        f"goes to {after.next}" if isinstance(after, Goto) else {"FAIL": "fails"}.get(after, "needs a person")
    )
    return Reason(
        "WAITS_FOR_SIGNAL",
        f"{row.step_key} waits for {row.signal} with match {row.match_key}",
        step_key=row.step_key,
        wait_id=row.id,
        since=row.opened_at,
        until=row.deadline_at,
        then=f"{row.step_key} {then}",
        command=f"orbit wait answer {row.instance_id} {row.step_key} BODY",
    )
