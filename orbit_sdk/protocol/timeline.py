"""What the events of a workflow look like, by type: one table for who stores them and for who reads them."""

from __future__ import annotations

from typing import Final, NamedTuple, get_args

from orbit_sdk.protocol.workflows import StepStateName, WorkflowState

__all__ = ["EVENT_SHAPES", "EventShape"]


class EventShape(NamedTuple):
    """Whose event it is, what its state is of, and which states there are."""

    aggregate_kind: str
    state_scope: str
    states: frozenset[str]


_WORKFLOW: Final = EventShape("workflow", "WORKFLOW", frozenset(get_args(WorkflowState)))

EVENT_SHAPES: Final[dict[str, EventShape]] = {
    "workflow.started": _WORKFLOW,
    "workflow.advanced": _WORKFLOW,
    "workflow.controlled": _WORKFLOW,
    "workflow.recovered": _WORKFLOW,
    "workflow.blocked": _WORKFLOW,
    "workflow.stopped": _WORKFLOW,
    "workflow.step.changed": EventShape("workflow_step", "STEP", frozenset(get_args(StepStateName))),
    "workflow.signal.accepted": EventShape(
        "workflow", "SIGNAL", frozenset({"PENDING", "REJECTED", "EXPIRED"})
    ),
    "workflow.signal.changed": EventShape(
        "workflow_signal", "SIGNAL", frozenset({"CONSUMED", "REJECTED", "EXPIRED"})
    ),
}
