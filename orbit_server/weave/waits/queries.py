"""Open waits across instances: WAITs, and POLLs that a receipt may end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.tables import instances, steps
from orbit_server.weave.state.rows import STEPS, StepRow

_OPEN: Final = ("WAITING_SIGNAL", "WAITING_TASK", "WAITING_TIME")
_ROW = [steps.c[name] for name in STEPS.columns]
_ABOUT = [instances.c[name] for name in ("definition_id", "definition_key", "business_key", "paused")]


@dataclass(frozen=True, slots=True)
class WaitFilter:
    """What a list of waits is narrowed to; None means anything."""

    workflow_id: Id | None = None
    definition_id: str | None = None
    business_key: str | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class OpenWait:
    """One activation that waits for a signal, and the instance it belongs to."""

    row: StepRow
    definition_id: str
    definition_key: Id
    business_key: str | None
    paused: bool


def page(
    conn: Connection, namespace_id: Id, wanted: WaitFilter, before: Id | None, limit: int
) -> list[OpenWait]:
    """Newest activation first; `before` is the id of the last one seen.

    Each state is a range of one index in this order, so a page costs the same however many wait.
    """
    found: list[OpenWait] = []
    for state in _OPEN:
        s, i = steps.c, instances.c
        query = select(*_ROW, *_ABOUT).join(instances, i.id == s.instance_id)
        query = query.where(s.namespace_id == namespace_id, s.state == state, s.signal.is_not(None))
        for column, value in (
            (s.instance_id, wanted.workflow_id),
            (i.definition_id, wanted.definition_id),
            (i.business_key, wanted.business_key),
            (s.signal, wanted.signal),
        ):
            if value is not None:
                query = query.where(column == value)
        if before is not None:
            query = query.where(s.id < before)
        found += _read(conn, query.order_by(s.id.desc()).limit(limit))
    found.sort(key=lambda wait: wait.row.id, reverse=True)
    return found[:limit]


def get(conn: Connection, namespace_id: Id, activation_id: Id) -> OpenWait | None:
    """The activation of this id if it waits, or ever waited, for a signal."""
    s, i = steps.c, instances.c
    query = select(*_ROW, *_ABOUT).join(instances, i.id == s.instance_id)
    query = query.where(s.id == activation_id, s.namespace_id == namespace_id, s.signal.is_not(None))
    found = _read(conn, query)
    return found[0] if found else None


def _read(conn: Connection, query: Select[Any]) -> list[OpenWait]:
    width = len(_ROW)
    found = [tuple(row) for row in conn.execute(query)]
    rows = STEPS.rows([row[:width] for row in found])
    return [
        OpenWait(row, values[width], values[width + 1], values[width + 2], bool(values[width + 3]))
        for row, values in zip(rows, found, strict=True)
    ]
