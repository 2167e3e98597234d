"""Reads of queues: their rows, their figures, and the wake-up sequences that nodes poll."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.queues.rows import QUEUES, QueueRow
from orbit_server.storage import tables


@dataclass(frozen=True, slots=True)
class Signpost:
    """What a dispatcher keeps of a queue's row between two looks."""

    paused: bool
    wake_seq: int


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as operators see it: tasks by state, and how long the oldest ready one has waited for."""

    name: str
    paused: bool
    revision: int
    states: Mapping[str, int]
    oldest_ready_at: int | None


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
    tasks = tables.tasks.c
    found = []
    for queue in queues:
        queue_id = queue_id_of(namespace_id, queue)
        row = queue_row(conn, namespace_id, queue)
        counts = conn.execute(
            select(tasks.state, func.count(), func.min(tasks.virtual_start))
            .where(tasks.queue_id == queue_id, tasks.state.in_(_UNSETTLED))
            .group_by(tasks.state)
        ).all()
        found.append(
            QueueFigures(
                name=queue,
                paused=row is not None and row.paused,
                revision=0 if row is None else row.revision,
                states={state: count for state, count, _ in counts},
                oldest_ready_at=next((oldest for state, _, oldest in counts if state == "READY"), None),
            )
        )
    return found


def queue_names(conn: Connection, namespace_id: Id, *, after: str = "", limit: int = 20) -> list[str]:
    """Names of queues that have a row, in order, after the given one."""
    queues = tables.queues.c
    rows = conn.execute(
        select(queues.name)
        .where(queues.namespace_id == namespace_id, queues.name > after)
        .order_by(queues.name)
        .limit(limit)
    )
    return [name for (name,) in rows]


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
