"""A damaged answer is refused: what the timeline promises is checked before it is handed on."""

from __future__ import annotations

import json

from orbit_sdk.errors import Unavailable
from orbit_sdk.protocol.workflows import EventDetail, EventPage, EventSummary
from orbit_sdk.values.limits import DEFAULT_LIMITS

_SHAPES = {
    "workflow.started": ("workflow", "WORKFLOW"),
    "workflow.advanced": ("workflow", "WORKFLOW"),
    "workflow.controlled": ("workflow", "WORKFLOW"),
    "workflow.recovered": ("workflow", "WORKFLOW"),
    "workflow.blocked": ("workflow", "WORKFLOW"),
    "workflow.stopped": ("workflow", "WORKFLOW"),
    "workflow.step.changed": ("workflow_step", "STEP"),
    "workflow.signal.accepted": ("workflow", "SIGNAL"),
    "workflow.signal.changed": ("workflow_signal", "SIGNAL"),
}


def check_event_page(page: EventPage, workflow_id: str) -> None:
    """Raises Unavailable when the page is of another workflow, out of order, or holds a senseless summary."""
    if page.workflow_id != workflow_id:
        raise Unavailable(f"the server answered with events of {page.workflow_id}, not of {workflow_id}")
    last = None
    for event in page.items:
        _check_event(event, workflow_id)
        place = (event.occurred_at, event.id)
        if last is not None and place >= last:
            raise Unavailable("the server's page of events is out of order")
        last = place


def check_event_detail(event: EventDetail, workflow_id: str, event_id: str) -> None:
    """Raises Unavailable when it is another event or its payload is beyond the limit."""
    _check_event(event, workflow_id)
    if event.id != event_id:
        raise Unavailable(f"the server answered with event {event.id}, not {event_id}")
    if len(json.dumps(event.payload, ensure_ascii=False).encode()) > 2 * DEFAULT_LIMITS.event_payload_bytes:
        raise Unavailable(f"the payload of event {event_id} is larger than an event may be")


def _check_event(event: EventSummary, workflow_id: str) -> None:
    if event.workflow_id != workflow_id:
        raise Unavailable(f"event {event.id} is of workflow {event.workflow_id}, not of {workflow_id}")
    if _SHAPES.get(event.type) != (event.aggregate_kind, event.state_scope):
        raise Unavailable(f"event {event.id} does not look like a {event.type}")
    if (event.step_key is not None) != (event.state_scope == "STEP"):
        raise Unavailable(f"event {event.id} names a step where it must not, or does not where it must")
