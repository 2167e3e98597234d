"""Queues: figures, pause and resume, limits, classes of concurrency keys, weights; the namespace's limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import Connection, func, select

from orbit_sdk.protocol import queues as wire
from orbit_sdk.protocol.common import Page
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING
from orbit_server.api.routes import Route
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.keys.queries import classes
from orbit_server.pulse.limits.commands import SetKeyClass, SetLimits
from orbit_server.pulse.limits.queries import limit_rows
from orbit_server.pulse.limits.weights import SetWeight
from orbit_server.pulse.queues.commands import PauseQueue
from orbit_server.pulse.queues.queries import QueueFigures, figures, paused_by, queue_names
from orbit_server.pulse.tasks.limits.decide import Settings, refilled
from orbit_server.pulse.tasks.limits.records import LimitRow, limit_id_of
from orbit_server.storage import tables

Command = Callable[[Call], Awaitable[Any]]


# --- reads -------------------------------------------------------------------------------------------------


async def _list(call: Call) -> Any:
    paging = call.paging("queues", (str,))
    now = await call.server.database.now()

    def read(conn: Connection) -> list[QueueFigures]:
        names = queue_names(conn, call.namespace_id)
        if paging.after is not None:
            last = str(paging.after[0])
            names = [name for name in names if name > last]
        return figures(conn, call.namespace_id, names[: paging.take])

    rows = await call.server.database.read(read)
    return paging.page(rows, lambda row: _view(row, now), lambda row: (row.name,))


async def _get(call: Call) -> Any:
    queue = call.path["queue"]
    namespace_id = call.namespace_id
    now = await call.server.database.now()

    def read(conn: Connection) -> dict[str, Any]:
        (found,) = figures(conn, namespace_id, [queue])
        view = _view(found, now)
        pause = paused_by(conn, queue_id_of(namespace_id, queue), "queue.pause") if found.paused else None
        if pause is not None:
            view["pause"] = {"at": to_rfc3339(pause.at), "actor": pause.actor}
            if pause.reason is not None:
                view["pause"]["reason"] = pause.reason
        view["key_classes"] = [
            {"name": row.name, "running_max": row.running_max, "revision": str(row.revision)}
            for row in classes(conn, namespace_id, queue)
        ]
        view["workers"] = _workers(conn, namespace_id, queue)
        return view

    return await call.server.database.read(read)


async def _namespace_limits(call: Call) -> Any:
    limit_id = limit_id_of(call.namespace_id)
    now = await call.server.database.now()
    rows = await call.server.database.read(lambda conn: limit_rows(conn, [limit_id]))
    found = rows.get(limit_id)
    return {"revision": "0"} if found is None else limits_view(found, now)


def _workers(conn: Connection, namespace_id: str, queue: str) -> int:
    sessions = tables.sessions.c
    return int(
        conn.execute(
            select(func.count()).where(
                sessions.namespace_id == namespace_id,
                sessions.closed_at.is_(None),
                sessions.queues.like(f'%"{queue}"%'),
            )
        ).scalar_one()
    )


def _view(row: QueueFigures, now: int) -> dict[str, Any]:
    view: dict[str, Any] = {
        "name": row.name,
        "paused": row.paused,
        "revision": str(row.revision),
        "states": dict(row.states),
        "waiting_for_key": row.waiting_for_key,
    }
    if row.oldest_ready_at is not None:
        view["oldest_ready_at"] = to_rfc3339(row.oldest_ready_at)
    if row.limit is not None:
        view["limits"] = limits_view(row.limit, now)
    return view


def limits_view(row: LimitRow, now: int) -> dict[str, Any]:
    """Limits as `protocol.queues.Limits`."""
    view: dict[str, Any] = {
        "running": row.running,
        "backlog": row.backlog,
        "revision": str(row.revision),
    }
    if row.running_max is not None:
        view["running_max"] = row.running_max
    if row.backlog_max is not None:
        view["backlog_max"] = row.backlog_max
    if row.rate is not None:
        there = refilled(row, now)
        view["rate"] = {
            "count": row.rate,
            "per_ms": row.rate_per_ms,
            "burst": row.burst,
            "tokens": round(there.level / (row.rate_per_ms * 1_000), 3),
        }
    return view


# --- changes -----------------------------------------------------------------------------------------------


def _meaning(call: Call) -> dict[str, Any]:
    return {**call.path, **call.body.model_dump(mode="json")}


def _pause(*, paused: bool) -> Command:
    async def change(call: Call) -> Any:
        body: wire.ControlQueue = call.body
        answer = await call.server.database.committer.submit(
            PauseQueue(
                key=call.command_key("queue.pause" if paused else "queue.resume", _meaning(call)),
                namespace_id=call.namespace_id,
                queue=call.path["queue"],
                paused=paused,
                by=call.by(),
                expected_revision=body.expected_revision,
            )
        )
        return {"name": answer["queue"], "paused": answer["paused"], "revision": answer["revision"]}

    return change


async def _set_limits(call: Call) -> Any:
    body: wire.SetLimits = call.body
    queue = call.path.get("queue")
    rate = body.rate
    settings = Settings(
        running_max=body.running_max,
        backlog_max=body.backlog_max,
        rate=None if rate is None else rate.count,
        rate_per_ms=1_000 if rate is None else rate.per_ms,
        burst=None if rate is None else rate.burst,
    )
    answer = await call.server.database.committer.submit(
        SetLimits(
            key=call.command_key("limits.set", {"queue": queue, **_meaning(call)}),
            namespace_id=call.namespace_id,
            queue=queue,
            settings=settings,
            by=call.by(),
            expected_revision=body.expected_revision,
        )
    )
    await call.server.limits.refresh(call.server.database)
    return {"revision": answer["revision"]}


async def _set_class(call: Call) -> Any:
    body: wire.SetKeyClass = call.body
    answer = await call.server.database.committer.submit(
        SetKeyClass(
            key=call.command_key("key_class.set", _meaning(call)),
            namespace_id=call.namespace_id,
            queue=call.path["queue"],
            name=body.name,
            running_max=body.running_max,
            by=call.by(),
            expected_revision=body.expected_revision,
        )
    )
    return {"revision": answer["revision"]}


async def _set_weight(call: Call) -> Any:
    body: wire.SetWeight = call.body
    await call.server.database.committer.submit(
        SetWeight(
            key=call.command_key("weight.set", _meaning(call)),
            namespace_id=call.namespace_id,
            queue=call.path["queue"],
            fairness_key=body.fairness_key,
            weight=body.weight,
            by=call.by(),
        )
    )
    return {"revision": "0"}


def _change(path: str, body: Any, handler: Command, summary: str, answer: Any = wire.Revision) -> Route:
    permission = "queues:manage" if path.startswith("/v1/queues") else "namespaces:manage"
    return Route("POST", path, permission, answer, handler, summary, body=body, idempotency="required")


ROUTES = (
    Route("GET", "/v1/queues", "queues:read", Page[wire.Queue], _list, "List queues by name", query=PAGING),
    Route("GET", "/v1/queues/{queue}", "queues:read", wire.QueueDetail, _get, "Read one queue"),
    _change(
        "/v1/queues/{queue}/pause",
        wire.ControlQueue,
        _pause(paused=True),
        "Stop handing out tasks of a queue; what runs goes on",
        wire.QueueState,
    ),
    _change(
        "/v1/queues/{queue}/resume",
        wire.ControlQueue,
        _pause(paused=False),
        "Hand out tasks of a queue again",
        wire.QueueState,
    ),
    _change(
        "/v1/queues/{queue}/limits",
        wire.SetLimits,
        _set_limits,
        "Set the limits of a queue; what is left out does not limit",
    ),
    _change(
        "/v1/queues/{queue}/key-classes",
        wire.SetKeyClass,
        _set_class,
        "Set how many tasks of each concurrency key of a class may be under way",
    ),
    _change("/v1/queues/{queue}/weights", wire.SetWeight, _set_weight, "Set the weight of a fairness key"),
    Route(
        "GET", "/v1/limits", "queues:read", wire.Limits, _namespace_limits, "Read the limits of the namespace"
    ),
    _change("/v1/limits", wire.SetLimits, _set_limits, "Set the limits of the namespace"),
)
