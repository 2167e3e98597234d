"""Which finished tasks and workflows may go, and the first bite of each.

The lists are walked by id, and ids begin with the time of what they name: a look passes only what is old.
What may go is decided again on the rows themselves, inside the transaction that takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, insert, or_, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import retry_id_of
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.retention.horizon import ids_until
from orbit_server.retention.rows import end_keys, in_parts, remove, remove_tasks
from orbit_server.storage.tables import (
    inbox,
    instance_inputs,
    instance_outputs,
    instances,
    purges,
    schedule_fires,
    task_specs,
    tasks,
)
from orbit_server.weave.state.rows import INSTANCES

LOOK: Final = 500
"""Rows of one look."""
_OPEN_FIRES: Final = ("WAITING", "STARTED")
_T = tasks.c
_I = instances.c


@dataclass(frozen=True, slots=True)
class Cuts:
    """By namespace: what ended before may go (microseconds). Of others nothing does."""

    by_namespace: Mapping[Id, int]

    @property
    def newest(self) -> int:
        return max(self.by_namespace.values(), default=0)

    def over(self, namespace_id: Id, *instants: int | None) -> bool:
        """Whether all of this was before the cut."""
        cut = self.by_namespace.get(namespace_id, 0)
        return all(at is not None and at < cut for at in instants)


@dataclass(frozen=True, slots=True)
class Found:
    """A look: what may go, and where the next one goes on (None: it has seen the end)."""

    ids: list[Id]
    last: Id | None


# --- tasks -------------------------------------------------------------------------------------------------


def task_page(newest: int, after: Id) -> Select[*tuple[Any, ...]]:
    """The next tasks that belong to no workflow, oldest first."""
    return (
        select(_T.id, _T.namespace_id, _T.settled_at, _T.last)
        .where(_T.instance_id.is_(None), _T.id > after, _T.id < ids_until(newest))
        .order_by(_T.id)
        .limit(LOOK)
    )


def old_tasks(conn: Connection, cuts: Cuts, after: Id) -> Found:
    """Tasks of no workflow that ended before the cut."""
    rows = conn.execute(task_page(cuts.newest, after)).all()
    ids = [row.id for row in rows if cuts.over(row.namespace_id, row.settled_at, row.last)]
    return Found(ids, rows[-1].id if len(rows) == LOOK else None)


def take_tasks(conn: Connection, ids: Sequence[Id], cuts: Cuts, now: int) -> int:
    """Delete those of the tasks that may go, in one transaction; gives how many went."""
    TASKS.touch(conn, ids)
    query = select(_T.id, _T.namespace_id, _T.settled_at, _T.last)
    rows = [
        row
        for part in in_parts(ids)
        for row in conn.execute(query.where(_T.id.in_(part), _T.instance_id.is_(None)))
    ]
    going = {row.id for row in rows if cuts.over(row.namespace_id, row.settled_at, row.last)}
    going -= _awaited(conn, sorted(going))
    going -= _needed_by_retries(conn, sorted(going))
    remove_tasks(conn, sorted(going), now)
    return len(going)


def _awaited(conn: Connection, ids: Sequence[Id]) -> set[Id]:
    """Those whose schedule has still to hear of their end."""
    c = schedule_fires.c
    query = select(c.target_id).where(c.state.in_(_OPEN_FIRES))
    return {
        row.target_id for part in in_parts(ids) for row in conn.execute(query.where(c.target_id.in_(part)))
    }


def _needed_by_retries(conn: Connection, ids: Sequence[Id]) -> set[Id]:
    """A task stays while its retry is open (it is the retry's evidence), and a retry while its origin stays
    (it is what keeps the origin from being retried twice).
    """
    retries = {retry_id_of(task_id): task_id for task_id in ids}
    query = select(_T.id).where(_T.settled_at.is_(None))
    open_ones = {
        row.id for part in in_parts(sorted(retries)) for row in conn.execute(query.where(_T.id.in_(part)))
    }
    staying = {retries[each] for each in open_ones}
    c = task_specs.c
    origins = {
        row.task_id: row.retry_of
        for part in in_parts(ids)
        for row in conn.execute(
            select(c.task_id, c.retry_of).where(c.task_id.in_(part), c.retry_of.is_not(None))
        )
    }
    stored = {
        row.id
        for part in in_parts(sorted(set(origins.values())))
        for row in conn.execute(select(_T.id).where(_T.id.in_(part)))
    }
    kept = stored - (set(ids) - staying)
    for task_id in _oldest_first(origins):
        if origins[task_id] in kept:
            staying.add(task_id)
            kept.add(task_id)
    return staying


def _oldest_first(origins: Mapping[Id, Id]) -> list[Id]:
    """Retries, each after the one it retries."""

    def depth(task_id: Id) -> int:
        steps = 0
        while task_id in origins:
            task_id, steps = origins[task_id], steps + 1
        return steps

    return sorted(origins, key=lambda task_id: (depth(task_id), task_id))


# --- workflows ---------------------------------------------------------------------------------------------


def instance_page(newest: int, after: Id) -> Select[*tuple[Any, ...]]:
    """The next workflows, oldest first."""
    return (
        select(_I.id, _I.namespace_id, _I.ended_at, _I.last)
        .where(_I.id > after, _I.id < ids_until(newest))
        .order_by(_I.id)
        .limit(LOOK)
    )


def old_instances(conn: Connection, cuts: Cuts, after: Id) -> Found:
    """Workflows that ended before the cut."""
    rows = conn.execute(instance_page(cuts.newest, after)).all()
    ids = [row.id for row in rows if cuts.over(row.namespace_id, row.ended_at, row.last)]
    return Found(ids, rows[-1].id if len(rows) == LOOK else None)


def take_instances(conn: Connection, ids: Sequence[Id], cuts: Cuts, now: int) -> int:
    """The first bite of workflows: their own rows go, and with them every way to them. Gives how many went.

    What belongs to them goes afterwards (`members`), from the mark that stands in `purges` until then.
    """
    INSTANCES.touch(conn, ids)
    query = select(_I.id, _I.namespace_id, _I.ended_at, _I.last, _I.heir)
    rows = [row for part in in_parts(ids) for row in conn.execute(query.where(_I.id.in_(part)))]
    old = {row.id: row for row in rows if cuts.over(row.namespace_id, row.ended_at, row.last)}
    going = set(old) - _awaited(conn, sorted(old)) - _unsettled(conn, sorted(old), cuts, old)
    heirs = {row.heir: row.id for row in old.values() if row.heir is not None}
    for part in in_parts(sorted(heirs)):
        # Whoever means the effects of this one still asks it whether they may begin.
        going -= {heirs[row.id] for row in conn.execute(select(_I.id).where(_I.id.in_(part)))}
    if not going:
        return 0
    gone = sorted(going)
    end_keys(conn, gone, now)
    for column in (instance_inputs.c.instance_id, instance_outputs.c.instance_id, _I.id):
        remove(conn, column, gone)
    marks = [{"id": each, "namespace_id": old[each].namespace_id, "began_at": now} for each in gone]
    conn.execute(insert(purges), marks)
    return len(gone)


def _unsettled(conn: Connection, ids: Sequence[Id], cuts: Cuts, rows: Mapping[Id, Any]) -> set[Id]:
    """Workflows with a task that goes on by itself or ended only lately, or with an unread report."""
    found: set[Id] = set()
    for part in in_parts(ids):
        query = select(_T.instance_id).where(
            _T.instance_id.in_(part), or_(_T.settled_at.is_(None), _T.last >= _least(part, cuts, rows))
        )
        found |= {row.instance_id for row in conn.execute(query)}
        waiting = select(inbox.c.instance_id).where(inbox.c.instance_id.in_(part), inbox.c.state == "PENDING")
        found |= {row.instance_id for row in conn.execute(waiting)}
    return found


def _least(ids: Sequence[Id], cuts: Cuts, rows: Mapping[Id, Any]) -> int:
    return min(cuts.by_namespace[rows[each].namespace_id] for each in ids)
