"""Reads of queues: their rows, their figures, and the wake-up sequences that nodes poll."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.limits.queries import limit_rows
from orbit_server.pulse.queues.rows import QUEUES, QueueRow
from orbit_server.pulse.tasks.lifecycle import Block
from orbit_server.pulse.tasks.limits.records import LimitRow, limit_id_of
from orbit_server.storage import tables

_T = tables.tasks.c
_QUEUES_MAX = 10_000
_CLOCK_LIKE = 10**15
"""Virtual starts above this are instants (tasks without a fairness key)."""


@dataclass(frozen=True, slots=True)
class Signpost:
    """What a dispatcher keeps of a queue's row between two looks."""

    paused: bool
    wake_seq: int


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as operators see it: tasks by state, and since when the oldest ready one has waited."""

    name: str
    paused: bool
    revision: int
    states: Mapping[str, int]
    waiting_for_key: int
    oldest_ready_at: int | None
    limit: LimitRow | None


@dataclass(frozen=True, slots=True)
class Paused:
    """Who paused a queue, when and why."""

    at: int
    actor: str
    reason: str | None


def signposts(conn: Connection, queue_ids: Iterable[Id]) -> dict[Id, Signpost]:
    """Pause and wake-up sequence of the queues that have a row."""
    rows = QUEUES.load(conn, sorted(set(queue_ids)))
    return {queue_id: Signpost(row.paused, row.wake_seq) for queue_id, row in rows.items()}


def queue_row(conn: Connection, namespace_id: Id, queue: str) -> QueueRow | None:
    """The row of one queue, or None when nothing was ever said about it."""
    queue_id = queue_id_of(namespace_id, queue)
    return QUEUES.load(conn, [queue_id]).get(queue_id)


def figures(conn: Connection, namespace_id: Id, queues: Sequence[str]) -> list[QueueFigures]:
    """Counts of unsettled tasks per queue, in the order asked."""
    ids = {queue: queue_id_of(namespace_id, queue) for queue in queues}
    rows = QUEUES.load(conn, sorted(ids.values())) if ids else {}
    limits = limit_rows(conn, [limit_id_of(namespace_id, queue) for queue in queues]) if ids else {}
    return [
        _figures(conn, queue, queue_id, rows.get(queue_id), limits.get(limit_id_of(namespace_id, queue)))
        for queue, queue_id in ids.items()
    ]


def _figures(
    conn: Connection, name: str, queue_id: Id, row: QueueRow | None, limit: LimitRow | None
) -> QueueFigures:
    counts = conn.execute(
        select(
            _T.state,
            _T.blocked,
            func.count(),
            func.min(case((_T.virtual_start > _CLOCK_LIKE, _T.virtual_start))),
        )
        .where(_T.queue_id == queue_id, _T.state.in_(_UNSETTLED))
        .group_by(_T.state, _T.blocked)
    ).all()
    states: dict[str, int] = {}
    for state, _, count, _ in counts:
        states[state] = states.get(state, 0) + count
    ready = [oldest for state, blocked, _, oldest in counts if state == "READY" and not blocked]
    return QueueFigures(
        name=name,
        paused=row is not None and row.paused,
        revision=0 if row is None else row.revision,
        states=states,
        waiting_for_key=sum(
            count for state, blocked, count, _ in counts if state == "READY" and blocked == Block.KEY
        ),
        oldest_ready_at=min((oldest for oldest in ready if oldest is not None), default=None),
        limit=limit,
    )


def queue_names(conn: Connection, namespace_id: Id) -> list[str]:
    """Every queue of the namespace that has tasks, limits, or had something said about it; by name."""
    queues, limits = tables.queues.c, tables.limits.c
    names = set(
        conn.execute(
            select(queues.name).where(queues.namespace_id == namespace_id).limit(_QUEUES_MAX)
        ).scalars()
    )
    names |= set(
        conn.execute(
            select(limits.queue)
            .where(limits.namespace_id == namespace_id, limits.queue.is_not(None))
            .limit(_QUEUES_MAX)
        ).scalars()
    )
    names |= {name for owner, name in queues_with_tasks(conn) if owner == namespace_id}
    return sorted(names)


def queues_with_tasks(conn: Connection) -> list[tuple[Id, str]]:
    """(namespace, queue) of every queue that has a task: one seek in the ready index for each."""
    found: list[tuple[Id, str]] = []
    last = ""
    while len(found) < _QUEUES_MAX:
        row = conn.execute(
            select(_T.queue_id, _T.namespace_id, _T.queue)
            .where(_T.queue_id > last)
            .order_by(_T.queue_id)
            .limit(1)
        ).first()
        if row is None:
            break
        last = row.queue_id
        found.append((row.namespace_id, row.queue))
    return found


def paused_by(conn: Connection, subject_id: Id, action: str) -> Paused | None:
    """The newest audit row of such an action on a queue or workflow: who stopped it."""
    columns = tables.audit.c
    row = conn.execute(
        select(columns.at, columns.actor, columns.reason)
        .where(columns.subject_id == subject_id, columns.action == action)
        .order_by(columns.at.desc(), columns.id.desc())
        .limit(1)
    ).first()
    return None if row is None else Paused(row.at, row.actor, row.reason)


_UNSETTLED = (
    "SCHEDULED",
    "READY",
    "OFFERED",
    "RUNNING",
    "RETRY_WAIT",
    "VERIFYING",
    "CANCELLING",
    "NEEDS_REVIEW",
)
