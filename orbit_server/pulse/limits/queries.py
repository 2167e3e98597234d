"""Reads of limits, without a lock."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.limits.records import LimitRow
from orbit_server.pulse.tasks.limits.rows import LIMITS
from orbit_server.storage import tables

_READ_MAX = 10_000
_COLUMNS = [tables.limits.c[name] for name in LIMITS.columns]


def all_limits(conn: Connection) -> list[LimitRow]:
    """Every row, of all namespaces: there are few, one per limited queue."""
    return LIMITS.rows(conn.execute(select(*_COLUMNS).limit(_READ_MAX)).all())


def limit_rows(conn: Connection, ids: Iterable[Id]) -> dict[Id, LimitRow]:
    """Those of the rows that exist."""
    return dict(LIMITS.load(conn, sorted(set(ids))))
