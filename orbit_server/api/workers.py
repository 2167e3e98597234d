"""The connections of workers, as an operator sees them."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import select

from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.platform import BlockBuild, BuildState, WorkerSession
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, flag
from orbit_server.api.routes import Handler, Route
from orbit_server.pulse.workers.commands import BlockBuild as Block
from orbit_server.pulse.workers.queries import blocked_builds
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
    rows, blocked = await call.server.database.read(
        lambda conn: (conn.execute(query).all(), blocked_builds(conn, call.namespace_id))
    )
    return paging.page(rows, lambda row: _view(row, row.build in blocked), lambda row: (row.id,))


def _say(action: str) -> Handler:
    async def change(call: Call) -> Any:
        body: BlockBuild = call.body
        meaning: Json = body.model_dump(mode="json")
        answer = await call.server.database.committer.submit(
            Block(
                key=call.command_key(f"build.{action}", meaning),
                namespace_id=call.namespace_id,
                build=body.build,
                blocked=action == "block",
                by=call.by(),
            )
        )
        return {"build": answer["build"], "blocked": answer["blocked"]}

    return change


def _view(row: Any, blocked: bool) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "worker": row.worker,
        "node_id": row.node_id,
        "credential_id": row.credential_id,
        "queues": orjson.Fragment(row.queues),
        "handlers": orjson.Fragment(row.handlers),
        "connected_at": to_rfc3339(row.connected_at),
        "seen_at": to_rfc3339(row.seen_at),
        "blocked": blocked,
        "stuck": row.stuck,
        "refused": orjson.Fragment(row.refused or "{}"),
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
    Route(
        "POST",
        "/v1/workers/block",
        "workers:manage",
        BuildState,
        _say("block"),
        "Give the workers of a build no work any more",
        body=BlockBuild,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/workers/unblock",
        "workers:manage",
        BuildState,
        _say("unblock"),
        "Give the workers of a build work again",
        body=BlockBuild,
        idempotency="required",
    ),
)
