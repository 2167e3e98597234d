"""Which handler versions tasks still wait for, run or are in review with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.queues.queries import queues_with_tasks
from orbit_server.pulse.tasks.lifecycle import TERMINAL, TaskState
from orbit_server.storage import tables

_T = tables.tasks.c
_OPEN: Final = tuple(state.value for state in TaskState if state not in TERMINAL)
_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class OpenTasks:
    """One handler version: how many tasks are not settled, and when the oldest was created."""

    handler: str
    version: int
    count: int
    since: int


def open_tasks(conn: Connection, namespace_id: Id) -> list[OpenTasks]:
    """By handler version. Read from the ready index alone: settled tasks are passed over."""
    ids = [queue_id_of(owner, queue) for owner, queue in queues_with_tasks(conn) if owner == namespace_id]
    found: dict[tuple[str, int], tuple[int, Id]] = {}
    for first in range(0, len(ids), _AT_ONCE):
        for handler, version, count, oldest in by_handler(conn, ids[first : first + _AT_ONCE]):
            known = found.get((handler, version), (0, oldest))
            found[handler, version] = (known[0] + count, min(known[1], oldest))
    # Ids grow with time, so the smallest is the oldest; when that was is asked of the row.
    created = _created(conn, [oldest for _, oldest in found.values()])
    return [
        OpenTasks(handler, version, count, created.get(oldest, 0))
        for (handler, version), (count, oldest) in sorted(found.items())
    ]


def by_handler(conn: Connection, queue_ids: list[Id]) -> list[tuple[str, int, int, Id]]:
    """Handler, version, number of open tasks, the smallest id."""
    query = (
        select(_T.handler, _T.handler_version, func.count(), func.min(_T.id))
        .where(_T.queue_id.in_(queue_ids), _T.state.in_(_OPEN))
        .group_by(_T.handler, _T.handler_version)
    )
    return [(row[0], row[1], row[2], row[3]) for row in conn.execute(query)]


def _created(conn: Connection, ids: list[Id]) -> dict[Id, int]:
    found: dict[Id, int] = {}
    for first in range(0, len(ids), _AT_ONCE):
        rows = conn.execute(select(_T.id, _T.created_at).where(_T.id.in_(ids[first : first + _AT_ONCE])))
        found.update({row.id: row.created_at for row in rows})
    return found
