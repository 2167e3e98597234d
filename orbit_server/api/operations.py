"""What runs around a server: is it alive, is it ready, how is it doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from orbit_sdk.errors import OrbitError, Unavailable
from orbit_sdk.protocol.platform import Healthy, Ready
from orbit_server.api.call import Call
from orbit_server.api.metrics import exposition
from orbit_server.api.routes import Route


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is sent as it is, without an envelope."""

    body: bytes
    content_type: str


async def _healthz(_call: Call) -> Any:
    """The process answers; nothing else is asked."""
    return {"status": "ok"}


async def _readyz(call: Call) -> Any:
    """Whether to send requests here: started, not stopping, and the database answers.

    The schema is checked at start-up and cannot change under a running server.
    """
    server = call.server
    if server.health.draining:
        raise Unavailable("the server is stopping")
    if not server.health.ready:
        raise Unavailable("the server is starting")
    try:
        await server.database.read(_answers)
    except OrbitError as error:
        raise Unavailable("the database does not answer", retry_after_ms=1_000) from error
    return {"status": "ready", "node_id": server.node_id}


def _answers(conn: Connection) -> None:
    conn.execute(text("SELECT 1"))


async def _metrics(call: Call) -> Any:
    return Raw(exposition(call.server).encode(), "text/plain; version=0.0.4; charset=utf-8")


ROUTES = (
    Route("GET", "/healthz", None, Healthy, _healthz, "Whether the process is alive"),
    Route("GET", "/readyz", None, Ready, _readyz, "Whether the server takes requests"),
    Route("GET", "/metrics", None, None, _metrics, "Figures for Prometheus"),
)
