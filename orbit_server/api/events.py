"""The event timeline of a workflow: what was stored when its state changed.

It shows more than the workflow itself, so it has a permission of its own and is only open to credentials that
have a right on every queue of the instance's pinned definition, branches that were never taken included.
"""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection

from orbit_sdk.errors import NotFound, Unavailable
from orbit_sdk.protocol.workflows import EventDetail, EventPage
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING
from orbit_server.api.routes import Route
from orbit_server.api.workflows import compiled_of
from orbit_server.weave.instances import queries as instances
from orbit_server.weave.state.rows import InstanceRow
from orbit_server.weave.timeline import queries
from orbit_server.weave.timeline.queries import EventView


async def authorised(call: Call) -> InstanceRow:
    """The instance, if the caller may read its timeline; checked anew for every read."""
    row = await call.server.database.read(
        lambda conn: instances.head(conn, call.namespace_id, call.path["workflow_id"])
    )
    if row is None:
        raise NotFound("no such workflow")
    compiled = await compiled_of(call, row)
    call.principal.require_all_queues(compiled.queues, "workflow")
    return row


async def _list_events(call: Call) -> Any:
    instance_id = call.path["workflow_id"]
    paging = call.paging("events", (int, str), instance_id)
    await authorised(call)
    after: Any = paging.after

    def read(conn: Connection) -> tuple[InstanceRow | None, list[EventView]]:
        row = instances.head(conn, call.namespace_id, instance_id)
        return row, queries.page(conn, call.namespace_id, instance_id, after, paging.take)

    row, events = await call.server.database.read(read)
    if row is None:
        raise NotFound("no such workflow")
    page = paging.page(events, _summary, lambda event: (event.occurred_at, event.id))
    return {"workflow_id": instance_id, "revision": str(row.revision), **page}


async def _get_event(call: Call) -> Any:
    row = await authorised(call)
    event = await call.server.database.read(
        lambda conn: queries.get(conn, call.namespace_id, row.id, call.path["event_id"])
    )
    if event is None:
        raise NotFound("no such event")
    return {**_summary(event), "payload": _payload(event)}


def _payload(event: EventView) -> Any:
    """The stored text itself, so that its numbers stay exact."""
    text = event.payload or ""
    try:
        sound = isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        sound = False
    if not sound:
        raise Unavailable(f"the stored event {event.id} is damaged: its payload is no object")
    return orjson.Fragment(text)


def _summary(event: EventView) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": event.id,
        "workflow_id": event.workflow_id,
        "aggregate_kind": event.aggregate_kind,
        "aggregate_id": event.aggregate_id,
        "aggregate_revision": str(event.aggregate_revision),
        "type": event.type,
        "state_scope": event.state_scope,
        "state": event.state,
        "occurred_at": to_rfc3339(event.occurred_at),
    }
    if event.state_scope == "STEP":
        view["step_key"] = event.step_key
    return view


ROUTES = (
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/events",
        "workflows:audit:read",
        EventPage,
        _list_events,
        "List the events of a workflow, newest first",
        query=PAGING,
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/events/{event_id}",
        "workflows:audit:read",
        EventDetail,
        _get_event,
        "Read one event with its payload",
    ),
)
