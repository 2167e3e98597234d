"""A damaged answer is refused: what an answer promises is checked before it is handed on."""

from __future__ import annotations

import json
from typing import Final

from orbit_sdk.errors import Unavailable
from orbit_sdk.protocol.timeline import EVENT_SHAPES
from orbit_sdk.protocol.workflows import EventDetail, EventPage, EventSummary
from orbit_sdk.values.limits import DEFAULT_LIMITS

__all__ = ["check_event_detail", "check_event_page", "check_next_cursor", "check_same"]

CURSOR_BYTES: Final = 1_024


def check_same(found: str, asked: str, what: str) -> None:
    """Raises Unavailable when the answer is about another thing than the one that was asked for."""
    if found != asked:
        raise Unavailable(f"the server answered about {what} {found}, not {asked}")


def check_next_cursor(following: str | None, cursor: str | None) -> None:
    """Raises Unavailable when reading on would never end, or the cursor is larger than one may be."""
    if following is None:
        return
    if following == cursor:
        raise Unavailable("the server's list does not move on: its next page is the same one")
    if not following or len(following.encode()) > CURSOR_BYTES:
        raise Unavailable("the server's cursor is empty or too long")


def check_event_page(page: EventPage, workflow_id: str, *, limit: int | None, cursor: str | None) -> None:
    """Raises Unavailable when the page is of another workflow, out of order, too long, or makes no sense."""
    check_same(page.workflow_id, workflow_id, "events of workflow")
    if limit is not None and len(page.items) > limit:
        raise Unavailable(f"the server answered with {len(page.items)} events; {limit} were asked for")
    check_next_cursor(page.next_cursor, cursor)
    last = None
    for event in page.items:
        _check_event(event, workflow_id)
        place = (event.occurred_at, event.id)
        if last is not None and place >= last:
            raise Unavailable("the server's page of events is out of order")
        last = place


def check_event_detail(event: EventDetail, workflow_id: str, event_id: str) -> None:
    """Raises Unavailable when it is another event, or its payload is of another workflow or too large."""
    _check_event(event, workflow_id)
    check_same(event.id, event_id, "event")
    named = event.payload.get("workflow_id")
    if named is not None:
        check_same(str(named), workflow_id, "a payload of workflow")
    size = len(json.dumps(event.payload, ensure_ascii=False, separators=(",", ":")).encode())
    if size > DEFAULT_LIMITS.event_payload_bytes:
        raise Unavailable(f"the payload of event {event_id} is larger than an event may be")


def _check_event(event: EventSummary, workflow_id: str) -> None:
    check_same(event.workflow_id, workflow_id, "an event of workflow")
    shape = EVENT_SHAPES.get(event.type)
    if (
        shape is None
        or (shape.aggregate_kind, shape.state_scope) != (event.aggregate_kind, event.state_scope)
        or event.state not in shape.states
    ):
        raise Unavailable(f"event {event.id} does not look like a {event.type}")
    if event.aggregate_kind == "workflow" and event.aggregate_id != workflow_id:
        raise Unavailable(f"event {event.id} is of another workflow than it says")
    if (event.step_key is not None) != (event.state_scope == "STEP"):
        raise Unavailable(f"event {event.id} names a step where it must not, or does not where it must")
