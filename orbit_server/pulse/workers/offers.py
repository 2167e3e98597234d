"""What workers offer: handlers with their types, on which queues, now or a moment ago."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.workers.queries import blocked_builds
from orbit_server.storage import tables

RECENT_US: Final = 15 * 60_000_000
"""A worker that left so short a time ago counts as one that comes back (it is being deployed)."""

_S = tables.sessions.c
_MOST = 5_000


@dataclass(frozen=True, slots=True)
class Offering:
    """One session. `digests`: what it offers, `name@version` to the digest of the types.

    `connected` False: it left a moment ago. `blocked`: its build gets no work.
    """

    worker: str
    build: str | None
    queues: frozenset[str]
    digests: Mapping[str, str]
    connected: bool
    blocked: bool


def offerings(conn: Connection, namespace_id: Id, *, left_since: int | None = None) -> list[Offering]:
    """Open sessions, and with `left_since` (database time) also those that ended after it."""
    blocked = blocked_builds(conn, namespace_id)
    rows = _sessions(conn, namespace_id, _S.closed_at.is_(None))
    if left_since is not None:
        rows += _sessions(conn, namespace_id, _S.closed_at > left_since)
    return [
        Offering(
            row.worker,
            row.build,
            frozenset(orjson.loads(row.queues)),
            {key: one["digest"] for key, one in orjson.loads(row.handlers).items()},
            row.closed_at is None,
            row.build in blocked,
        )
        for row in rows
    ]


def _sessions(conn: Connection, namespace_id: Id, which: ColumnElement[bool]) -> list[Any]:
    columns = (_S.worker, _S.build, _S.queues, _S.handlers, _S.closed_at)
    query = select(*columns).where(which, _S.namespace_id == namespace_id).limit(_MOST)
    return [*conn.execute(query)]
