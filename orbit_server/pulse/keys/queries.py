"""Reads of keys, without a lock: which have to be looked at, who waits, who holds."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.keys.commands import Admit
from orbit_server.pulse.tasks.keys.decide import UNCLAIMED_US
from orbit_server.pulse.tasks.keys.records import DEFAULT_MOST, ClassRow, KeyRow
from orbit_server.pulse.tasks.keys.rows import CLASSES, KEYS
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage import tables
from orbit_server.storage.places import Place, beyond

_K = tables.concurrency_keys.c
_P = tables.key_places.c
_Q = tables.queues.c
_T = tables.tasks.c
_CANDIDATES = 32
_SHOWN = 10


def due_keys(
    conn: Connection, at: int, *, after: Place | None = None, limit: int = 100
) -> list[tuple[Place, Admit]]:
    """Keys to look at now, in order after the given place, each as the command that does it.

    Those of paused queues are passed over: nobody could claim what is admitted there.
    """
    query = (
        select(_K.admit_at, _K.id, _K.class_id)
        .outerjoin(tables.queues, _Q.id == _K.queue_id)
        .where(_K.admit_at <= at, or_(_Q.paused.is_(None), _Q.paused == 0))
    )
    if after is not None:
        query = query.where(beyond(_K.admit_at, _K.id, after))
    rows = conn.execute(query.order_by(_K.admit_at, _K.id).limit(limit)).all()
    return [((due, key_id), admission(conn, key_id, class_id, at)) for due, key_id, class_id in rows]


def admission(conn: Connection, key_id: Id, class_id: Id, at: int) -> Admit:
    """The command that looks at one key, with the first who wait and those who were admitted in vain."""
    waiters = conn.execute(
        select(_P.id)
        .where(_P.key_id == key_id, _P.admitted_at.is_(None))
        .order_by(_P.priority.desc(), _P.virtual_start, _P.id)
        .limit(_CANDIDATES)
    )
    unclaimed = conn.execute(
        select(_P.id).where(_P.key_id == key_id, _P.admitted_at <= at - UNCLAIMED_US).limit(_CANDIDATES)
    )
    return Admit(key_id, class_id, tuple(waiters.scalars()), tuple(unclaimed.scalars()))


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A key as `why` shows it: its row, its limit, and some of those who hold it."""

    row: KeyRow
    most: int
    holders: tuple[Task, ...]
    ahead: int
    """Waiters before the task that was asked about, at least."""


def facts(conn: Connection, task: Task, key_id: Id) -> KeyFacts | None:
    """What a task's key looks like; None when nobody has used it."""
    row = KEYS.load(conn, [key_id]).get(key_id)
    if row is None:
        return None
    known = CLASSES.load(conn, [row.class_id]).get(row.class_id)
    running = conn.execute(
        select(_T.id)
        .where(
            _T.queue_id == task.queue_id,
            _T.state.in_(("OFFERED", "RUNNING", "CANCELLING")),
            _T.concurrency_key == task.concurrency_key,
        )
        .limit(_SHOWN)
    )
    admitted = conn.execute(
        select(_P.id).where(_P.key_id == key_id, _P.admitted_at.is_not(None)).limit(_SHOWN)
    )
    ids = [one for one in (*running.scalars(), *admitted.scalars()) if one != task.id][:_SHOWN]
    ahead = conn.execute(
        select(_P.id)
        .where(
            _P.key_id == key_id,
            _P.admitted_at.is_(None),
            or_(
                _P.priority > task.priority,
                (_P.priority == task.priority) & (_P.virtual_start < task.virtual_start),
            ),
        )
        .limit(1_000)
    )
    return KeyFacts(
        row,
        DEFAULT_MOST if known is None else known.running_max,
        tuple(TASKS.load(conn, ids).values()) if ids else (),
        len(ahead.scalars().all()),
    )


def classes(conn: Connection, namespace_id: Id, queue: str) -> list[ClassRow]:
    """The classes of a queue whose limit was set."""
    columns = tables.key_classes.c
    ids = conn.execute(
        select(columns.id)
        .where(columns.namespace_id == namespace_id, columns.queue == queue)
        .order_by(columns.name)
        .limit(1_000)
    )
    wanted = list(ids.scalars())
    rows = CLASSES.load(conn, wanted) if wanted else {}
    return sorted(rows.values(), key=lambda row: row.name)
