"""Subscriptions: make, list, read, pull, acknowledge, end."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, cast

import orjson

from orbit_sdk.errors import NotFound, PermissionDenied
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.subscriptions import (
    Acknowledge,
    Acknowledged,
    CreateSubscription,
    Ended,
    EndSubscription,
    Pull,
    Pulled,
    Subscription,
    SubscriptionDetail,
)
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING
from orbit_server.api.routes import Route
from orbit_server.api.waiting import wait_for
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.subscriptions import managing, reading
from orbit_server.pulse.subscriptions.filters import KINDS, stored_filter
from orbit_server.pulse.subscriptions.managing import EndOrder, NewSubscription
from orbit_server.pulse.subscriptions.reading import Taken

log = logging.getLogger(__name__)


def _require_queues(principal: Principal, queues: frozenset[str]) -> None:
    """Events of a queue are for those who have a right on it. Raises PermissionDenied."""
    if queues:
        missing = sorted(queue for queue in queues if not principal.sees_all_queues((queue,)))
        if missing:
            raise PermissionDenied(f"this credential has no right on the queue {missing[0]!r}")
    elif not principal.sees_all_queues(("*",)):
        raise PermissionDenied("this credential does not see every queue: name queues in the filter")


async def _create(call: Call) -> Any:
    body: CreateSubscription = call.body
    _require_queues(call.principal, frozenset(body.filter.queues))
    said: dict[str, Any] = {
        name: sorted(set(values)) for name, values in body.filter.model_dump().items() if values
    }
    now = await call.server.database.now()
    new = NewSubscription(
        namespace_id=call.namespace_id,
        name=body.name,
        filter=canonical_json(cast("Json", said)),
        when_full=body.when_full,
        backlog_max=body.backlog_max,
        visibility_ms=body.visibility_ms,
        retention_ms=body.retention_ms,
        made_by=call.principal.actor,
        audit_id=call.seed().nth(0),
    )
    await call.server.database.write(partial(managing.create, new=new, now=now), lane=call.namespace_id)
    return await _view(call, body.name)


async def _list(call: Call) -> Any:
    paging = call.paging("subscriptions", (str,))
    before: Any = paging.after[0] if paging.after else None
    rows = await call.server.database.read(
        lambda conn: managing.page(conn, call.namespace_id, before, paging.take)
    )
    return paging.page(rows, _summary, lambda row: (row.id,))


async def _get(call: Call) -> Any:
    return await _view(call, call.path["subscription"])


async def _view(call: Call, name: str) -> dict[str, Any]:
    now = await call.server.database.now()
    found = await _found(call, name)
    oldest, flying = await call.server.database.read(lambda conn: reading.figures(conn, found.id, now))
    view = {**_summary(found), "in_flight": flying}
    if oldest is not None:
        view["oldest_at"] = to_rfc3339(oldest)
    return view


async def _found(call: Call, name: str) -> Any:
    row = await call.server.database.read(lambda conn: managing.figures_of(conn, call.namespace_id, name))
    if row is None:
        raise NotFound("no such subscription")
    return row


async def _mine(call: Call) -> Any:
    """The subscription of the path, for those who may read what it holds. Raises PermissionDenied."""
    found = await _found(call, call.path["subscription"])
    try:
        queues = stored_filter(found.filter).queues
    except (ValueError, AttributeError, TypeError):
        queues = frozenset()  # nobody knows whose a damaged one is: for those who see every queue
    _require_queues(call.principal, queues)
    return found


def _summary(row: Any) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "name": row.name,
        "filter": orjson.loads(row.filter),
        "when_full": row.when_full,
        "backlog_max": row.backlog_max,
        "visibility_ms": row.visibility_ms,
        "retention_ms": row.retention_ms,
        "backlog": str(_backlog(row)),
        "added": str(row.added),
        "acknowledged": str(row.acknowledged),
        "redelivered": str(row.redelivered),
        "dropped": str(row.dropped),
        "expired": str(row.expired),
        "created_at": to_rfc3339(row.created_at),
    }
    for name in ("dropped_first_at", "dropped_last_at", "pulled_at"):
        at = getattr(row, name)
        if at is not None:
            view[name] = to_rfc3339(at)
    return view


def _backlog(row: Any) -> int:
    return max(0, int(row.added - row.acknowledged - row.expired - row.dropped_old))


async def _pull(call: Call) -> Any:
    body: Pull = call.body
    found = await _mine(call)
    taken = await _wait(call, found, body)
    row = await _found(call, call.path["subscription"])
    values = call.principal.allows("payloads:read")
    return {
        "items": [_delivery(each, values=values) for each in taken],
        "backlog": str(_backlog(row)),
        "dropped": str(row.dropped),
    }


async def _wait(call: Call, found: Any, body: Pull) -> list[Taken]:
    server = call.server
    until_us = server.clock.monotonic_us() + body.wait_ms * 1_000
    visibility = body.visibility_ms or found.visibility_ms
    gone = asyncio.ensure_future(call.gone()) if body.wait_ms else None
    event = server.arrivals.watch(found.id)
    try:
        while True:
            event.clear()
            now = await server.database.now()
            take = partial(
                reading.pull,
                subscription_id=found.id,
                now=now,
                limit=body.limit,
                visibility_ms=visibility,
            )
            taken: list[Taken] = await server.database.write(take, lane=found.id)
            left_us = until_us - server.clock.monotonic_us()
            if taken or gone is None or gone.done() or left_us <= 0 or server.health.draining:
                return taken
            await wait_for(event, gone, left_us / 1_000_000)
    finally:
        server.arrivals.leave(found.id, event)
        if gone is not None:
            gone.cancel()


def _delivery(taken: Taken, *, values: bool) -> dict[str, Any]:
    row = taken.event
    event: dict[str, Any] = {
        "id": row.id_1,
        "kind": KINDS.get(row.aggregate_kind, row.aggregate_kind),
        "type": row.type,
        "aggregate_id": row.aggregate_id,
        "revision": str(row.aggregate_revision),
        "occurred_at": to_rfc3339(row.occurred_at),
        "payload": _sound(row.payload),
    }
    for name in ("state_scope", "state", "workflow_id", "task_id", "step_key", "signal_id"):
        value = getattr(row, name)
        if value is not None:
            event[name] = value
    if values and taken.result is not None:
        event["result"] = _sound(taken.result)
    if values and taken.error is not None:
        event["error"] = _sound(taken.error)
    return {
        "id": taken.id,
        "deliveries": taken.deliveries,
        "visible_at": to_rfc3339(taken.visible_at),
        "event": event,
    }


def _sound(text: str) -> Any:
    """The stored text itself, so that its numbers stay exact; a damaged one holds up nobody."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        log.exception("a stored value is damaged and is delivered as an empty object")
        return {}
    return orjson.Fragment(text)


async def _acknowledge(call: Call) -> Any:
    body: Acknowledge = call.body
    found = await _mine(call)
    gone = await call.server.database.write(
        partial(reading.acknowledge, subscription_id=found.id, ids=body.ids), lane=found.id
    )
    return {"acknowledged": gone}


async def _end(call: Call) -> Any:
    name = call.path["subscription"]
    await _mine(call)
    now = await call.server.database.now()
    by = call.by()
    order = EndOrder(call.namespace_id, name, by.actor, by.reason, by.seed.nth(0), by.on_behalf_of)
    await call.server.database.write(partial(managing.end, order=order, now=now), lane=call.namespace_id)
    return {"name": name, "ended": True}


_ONE = "/v1/subscriptions/{subscription}"

ROUTES = (
    Route(
        "POST",
        "/v1/subscriptions",
        "subscriptions:manage",
        SubscriptionDetail,
        _create,
        "Make a subscription; the same again is the same one",
        body=CreateSubscription,
        idempotency="natural",
    ),
    Route(
        "GET",
        "/v1/subscriptions",
        "subscriptions:consume",
        Page[Subscription],
        _list,
        "List the subscriptions",
        query=PAGING,
    ),
    Route(
        "GET",
        _ONE,
        "subscriptions:consume",
        SubscriptionDetail,
        _get,
        "Read one subscription with its figures",
    ),
    Route(
        "POST",
        f"{_ONE}/pull",
        "subscriptions:consume",
        Pulled,
        _pull,
        "Take events; what is not acknowledged in time comes again",
        body=Pull,
        idempotency="natural",
    ),
    Route(
        "POST",
        f"{_ONE}/acknowledge",
        "subscriptions:consume",
        Acknowledged,
        _acknowledge,
        "Acknowledge events, one or many",
        body=Acknowledge,
        idempotency="natural",
    ),
    Route(
        "POST",
        f"{_ONE}/end",
        "subscriptions:manage",
        Ended,
        _end,
        "End a subscription and forget its backlog",
        body=EndSubscription,
        idempotency="natural",
    ),
)
