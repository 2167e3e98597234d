"""Reads of blocked builds."""

from __future__ import annotations

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.workers.rows import BUILDS, BuildRow
from orbit_server.storage import tables

_B = tables.blocked_builds.c
_MOST = 10_000


def blocked_builds(conn: Connection, namespace_id: Id) -> dict[str, BuildRow]:
    """The builds of a namespace that get no work, by name."""
    columns = [_B[name] for name in BUILDS.columns]
    rows = conn.execute(
        select(*columns).where(_B.namespace_id == namespace_id, _B.blocked == 1).limit(_MOST)
    ).all()
    return {row.build: row for row in BUILDS.rows(rows)}


def all_blocked(conn: Connection) -> frozenset[tuple[Id, str]]:
    """(namespace, build) of all builds that get no work."""
    rows = conn.execute(select(_B.namespace_id, _B.build).where(_B.blocked == 1).limit(_MOST))
    return frozenset((row.namespace_id, row.build) for row in rows)
