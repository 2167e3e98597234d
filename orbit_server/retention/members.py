"""What belongs to a workflow whose own row is gone: taken away table by table, so many rows at a time.

The order matters to whoever looks meanwhile: a step goes before the task it names, a later activation before
an earlier one, and a task goes whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.retention.rows import end_keys, remove, remove_tasks
from orbit_server.storage.tables import (
    attempts,
    events,
    evidence,
    inbox,
    payloads,
    purges,
    signal_bodies,
    signals,
    steps,
    tasks,
)

WORKFLOWS: Final = 50
"""Workflows of one bite."""
ROWS: Final = 500
"""Rows of one bite, about."""
_TASKS: Final = 100
_PER_TASK: Final = 4

Take = Callable[[Connection, Sequence[Id], int], int]


@dataclass(frozen=True, slots=True)
class Bite:
    """What one bite took, and how many workflows are finished with."""

    rows: int
    workflows: int


def marked(conn: Connection) -> list[tuple[Id, Id]]:
    """The next workflows that are going: (namespace, id), longest first."""
    c = purges.c
    query = select(c.namespace_id, c.id).order_by(c.id).limit(WORKFLOWS)
    return [(row.namespace_id, row.id) for row in conn.execute(query)]


def bite(conn: Connection, going: Sequence[tuple[Id, Id]], now: int) -> Bite:
    """Take about `ROWS` rows of these workflows, and the marks of those that have none left."""
    ids = [row_id for _, row_id in going]
    taken = 0
    stages: list[Callable[[int], int]] = [
        lambda left: _steps(conn, ids, left, now),
        lambda left: _signals(conn, ids, left, now),
        lambda left: _events(conn, going, left),
        lambda left: _plain(conn, inbox, ids, left),
        lambda left: _tasks(conn, ids, left, now),
        lambda left: _plain(conn, payloads, ids, left),
    ]
    for stage in stages:
        while True:
            left = ROWS - taken
            if left <= 0:
                return Bite(taken, 0)
            gone = stage(left)
            taken += gone
            if gone == 0:
                break
    return Bite(taken, remove(conn, purges.c.id, ids))


def step_page(ids: Sequence[Id], limit: int) -> Select[*tuple[Any, ...]]:
    """Steps of these workflows, later activations first."""
    c = steps.c
    return select(c.id).where(c.instance_id.in_(ids)).order_by(c.activation_no.desc(), c.id).limit(limit)


def member_page(table: Any, ids: Sequence[Id], limit: int) -> Select[*tuple[Any, ...]]:
    """Rows of a table that name these workflows."""
    return select(table.c.id).where(table.c.instance_id.in_(ids)).limit(limit)


def event_page(namespace_id: Id, ids: Sequence[Id], limit: int) -> Select[*tuple[Any, ...]]:
    """Events of these workflows."""
    c = events.c
    return select(c.id).where(c.namespace_id == namespace_id, c.workflow_id.in_(ids)).limit(limit)


def _ids(conn: Connection, query: Select[*tuple[Any, ...]]) -> list[Id]:
    return list(conn.execute(query).scalars())


def _steps(conn: Connection, ids: Sequence[Id], limit: int, now: int) -> int:
    found = _ids(conn, step_page(ids, limit))
    end_keys(conn, found, now)
    return remove(conn, steps.c.id, found)


def _signals(conn: Connection, ids: Sequence[Id], limit: int, now: int) -> int:
    found = _ids(conn, member_page(signals, ids, limit))
    end_keys(conn, found, now)
    remove(conn, signal_bodies.c.id, found)
    return remove(conn, signals.c.id, found)


def _events(conn: Connection, going: Sequence[tuple[Id, Id]], limit: int) -> int:
    for namespace_id in sorted({each for each, _ in going}):
        ids = [row_id for each, row_id in going if each == namespace_id]
        found = _ids(conn, event_page(namespace_id, ids, limit))
        if found:
            return remove(conn, events.c.id, found)
    return 0


def _plain(conn: Connection, table: Any, ids: Sequence[Id], limit: int) -> int:
    return remove(conn, table.c.id, _ids(conn, member_page(table, ids, limit)))


def _tasks(conn: Connection, ids: Sequence[Id], limit: int, now: int) -> int:
    """Whole tasks: as many as fit, at least one, however much evidence it has."""
    found = _ids(conn, member_page(tasks, ids, max(1, min(_TASKS, limit // _PER_TASK))))
    if not found:
        return 0
    TASKS.touch(conn, found)
    sizes = dict.fromkeys(found, _PER_TASK)
    for column in (attempts.c.task_id, evidence.c.task_id):
        for task_id, count in conn.execute(
            select(column, func.count()).where(column.in_(found)).group_by(column)
        ):
            sizes[task_id] += count
    chosen: list[Id] = []
    room = limit
    for task_id in found:
        if chosen and sizes[task_id] > room:
            break
        chosen.append(task_id)
        room -= sizes[task_id]
    return remove_tasks(conn, chosen, now)
