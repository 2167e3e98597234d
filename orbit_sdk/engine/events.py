"""The timeline events of one decision: types, payloads and revisions, made from what a turn changed."""

from __future__ import annotations

from orbit_sdk.engine.decision import Event, SignalChange, StepChange
from orbit_sdk.engine.refs import step_id
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, Instance, InstanceState, SignalState
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.values.json_strict import Json

STARTED = "workflow.started"
ADVANCED = "workflow.advanced"
CONTROLLED = "workflow.controlled"
RECOVERED = "workflow.recovered"
BLOCKED = "workflow.blocked"
STOPPED = "workflow.stopped"
STEP_CHANGED = "workflow.step.changed"
SIGNAL_ACCEPTED = "workflow.signal.accepted"
SIGNAL_CHANGED = "workflow.signal.changed"


def outcomes(turn: Turn, state: InstanceState) -> list[Lead]:
    """The workflow events of this turn in order: what the command was, then what became of the instance."""
    before = turn.head.state
    found = list(turn.leads)
    told = any(lead.scope == "WORKFLOW" for lead in found)
    came_from: dict[str, Json] = {"from": before.value}
    if turn.ended is InstanceState.SUCCEEDED:
        found.append(Lead(ADVANCED, came_from, state.value))
    elif turn.ended is not None:
        code = {} if turn.error is None else {"code": turn.error[0]}
        found.append(Lead(STOPPED, {**came_from, **code}, state.value))
    elif state is InstanceState.NEEDS_REVIEW and before is not state:
        found.append(Lead(BLOCKED, came_from, state.value))
    elif state is not before and not told:
        found.append(Lead(ADVANCED, came_from, state.value))
    return found


def workflow_events(turn: Turn, leads: list[Lead], state: InstanceState) -> list[Event]:
    """Each has a revision of its own; only those of an instance that ended before share its last one."""
    head = turn.head
    frozen = head.state in TERMINAL_INSTANCE_STATES
    interim = state
    if turn.ended is not None:
        interim = InstanceState.CANCELLING if turn.cancel_requested else InstanceState.RUNNING
    return [
        Event(
            id=turn.new_id(),
            aggregate_kind="workflow",
            aggregate_id=head.id,
            aggregate_revision=head.revision + (0 if frozen else offset),
            type=lead.type,
            state_scope=lead.scope,
            state=lead.state or interim.value,
            payload={"workflow_id": head.id, **lead.payload},
            signal_id=lead.signal_id,
        )
        for offset, lead in enumerate(leads, start=1)
    ]


def step_event(turn: Turn, head: Instance, change: StepChange) -> Event | None:
    """A change of state; other changes of a step are not events."""
    before, after = change.before, change.after
    if before is not None and before.state is after.state:
        return None
    payload: dict[str, Json] = {
        "workflow_id": head.id,
        "step_key": after.step_key,
        "activation_id": after.id,
        "activation_no": after.activation_no,
        "from": None if before is None else before.state.value,
        "state": after.state.value,
    }
    if after.reason is not None:
        payload["reason"] = after.reason
    if after.review_class is not None:
        payload["review_class"] = after.review_class.value
    if after.exit_taken is not None:
        payload["exit"] = after.exit_taken
    if after.task_id is not None:
        payload["task_id"] = after.task_id
    if after.round:
        payload["round"] = after.round
    return Event(
        id=turn.new_id(),
        aggregate_kind="workflow_step",
        aggregate_id=step_id(head.id, after.step_key),
        aggregate_revision=after.revision,
        type=STEP_CHANGED,
        state_scope="STEP",
        state=after.state.value,
        payload=payload,
        step_key=after.step_key,
    )


def signal_event(turn: Turn, head: Instance, change: SignalChange) -> Event | None:
    """A signal that was PENDING and is no more; a signal refused at acceptance never was PENDING."""
    after = change.after
    started = SignalState.PENDING if change.before is None and after.revision > 1 else None
    came_from = started if change.before is None else change.before.state
    if came_from is None or came_from is after.state:
        return None
    payload: dict[str, Json] = {
        "workflow_id": head.id,
        "signal_id": after.id,
        "from": came_from.value,
        "state": after.state.value,
        "disposition": after.disposition,
    }
    if after.consumed_wait_id is not None:
        payload["consumed_wait_id"] = after.consumed_wait_id
    return Event(
        id=turn.new_id(),
        aggregate_kind="workflow_signal",
        aggregate_id=after.id,
        aggregate_revision=after.revision,
        type=SIGNAL_CHANGED,
        state_scope="SIGNAL",
        state=after.state.value,
        payload=payload,
        step_key=None,
        signal_id=after.id,
    )
