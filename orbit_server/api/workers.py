"""The connections of workers, as an operator sees them."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import select

from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.platform import WorkerSession
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, flag
from orbit_server.api.routes import Route
from orbit_server.storage.tables import sessions


async def _list_workers(call: Call) -> Any:
    paging = call.paging("workers", (str,))
    query = select(sessions).where(sessions.c.namespace_id == call.namespace_id)
    connected = call.query.get("connected")
    if connected is not None:
        query = query.where(
            sessions.c.closed_at.is_(None) if connected else sessions.c.closed_at.is_not(None)
        )
    if paging.after is not None:
        query = query.where(sessions.c.id < paging.after[0])
    query = query.order_by(sessions.c.id.desc()).limit(paging.take)
    rows = await call.server.database.read(lambda conn: conn.execute(query).all())
    return paging.page(rows, _view, lambda row: (row.id,))


def _view(row: Any) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "worker": row.worker,
        "node_id": row.node_id,
        "credential_id": row.credential_id,
        "queues": orjson.Fragment(row.queues),
        "handlers": orjson.Fragment(row.handlers),
        "connected_at": to_rfc3339(row.connected_at),
        "seen_at": to_rfc3339(row.seen_at),
    }
    if row.build is not None:
        view["build"] = row.build
    if row.closed_at is not None:
        view["closed_at"] = to_rfc3339(row.closed_at)
    return view


ROUTES = (
    Route(
        "GET",
        "/v1/workers",
        "workers:manage",
        Page[WorkerSession],
        _list_workers,
        "List the sessions of workers, newest first",
        query=(*PAGING, flag("connected", "Only sessions that are open, or only those that ended.")),
    ),
)
