"""Rows that go by their own age: notices of tasks, keys, the trail of actions, occurrences, what closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, Connection, Select, and_, delete, select, update

from orbit_sdk.values.ids import Id
from orbit_server.retention.rows import in_parts, remove
from orbit_server.storage.places import Place, beyond
from orbit_server.storage.tables import (
    audit,
    bulks,
    events,
    fair_flows,
    idempotency,
    instances,
    purges,
    queues,
    schedule_fires,
    schedule_inbox,
    schedule_records,
    schedules,
    sessions,
    steps,
    tasks,
)

ROWS: Final = 500
"""Rows of one bite."""
DIGEST_US: Final = 400 * 86_400_000_000
"""So long the bare digest of a key says that its request was made before."""
CLOSED_US: Final = 7 * 86_400_000_000
"""So long sessions that closed, and reports that were consumed, stay to be looked at."""
_A = audit.c
_E = events.c
_K = idempotency.c


# --- notices of tasks --------------------------------------------------------------------------------------


def notice_page(namespace_id: Id, before: int) -> Select[*tuple[Any, ...]]:
    """Events of no workflow, oldest first."""
    return (
        select(_E.id)
        .where(_E.namespace_id == namespace_id, _E.workflow_id.is_(None), _E.occurred_at < before)
        .order_by(_E.occurred_at, _E.id)
        .limit(ROWS)
    )


def take_notices(conn: Connection, namespace_id: Id, before: int) -> int:
    """Delete what told subscriptions of tasks. The tasks keep their own record."""
    return remove(conn, _E.id, list(conn.execute(notice_page(namespace_id, before)).scalars()))


# --- keys --------------------------------------------------------------------------------------------------


def key_page(now: int) -> Select[*tuple[Any, ...]]:
    """Keys whose time is over."""
    return (
        select(_K.id, _K.answer.is_(None).label("bare"))
        .where(_K.expires_at < now)
        .order_by(_K.expires_at)
        .limit(ROWS)
    )


def take_keys(conn: Connection, now: int) -> int:
    """Of expired keys only the digest stays; bare digests go."""
    rows = conn.execute(key_page(now)).all()
    bare = [row.id for row in rows if row.bare]
    for part in in_parts([row.id for row in rows if not row.bare]):
        conn.execute(
            update(idempotency).where(_K.id.in_(part)).values(answer=None, expires_at=now + DIGEST_US)
        )
    remove(conn, _K.id, bare)
    return len(rows)


# --- the trail of actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trail:
    """A bite of the trail: rows that went, and where the next bite goes on (None: it has seen the end)."""

    gone: int
    last: Place | None


def trail_page(namespace_id: Id, before: int, after: Place | None) -> Select[*tuple[Any, ...]]:
    """Who did what, oldest first."""
    query = select(_A.id, _A.at, _A.subject_kind, _A.subject_id)
    query = query.where(_A.namespace_id == namespace_id, _A.at < before)
    if after is not None:
        query = query.where(beyond(_A.at, _A.id, after))
    return query.order_by(_A.at, _A.id).limit(ROWS)


def take_trail(conn: Connection, namespace_id: Id, before: int, after: Place | None) -> Trail:
    """Delete old rows whose subject is gone, or was never more than a setting."""
    rows = conn.execute(trail_page(namespace_id, before, after)).all()
    there: set[Id] = set()
    for kind, columns in _SUBJECTS.items():
        ids = sorted({row.subject_id for row in rows if row.subject_kind == kind})
        for column in columns:
            for part in in_parts(ids):
                there.update(conn.execute(select(column).where(column.in_(part))).scalars())
    going = [row.id for row in rows if row.subject_kind not in _STAY and row.subject_id not in there]
    remove(conn, _A.id, going)
    last = (rows[-1].at, rows[-1].id) if len(rows) == ROWS else None
    return Trail(len(going), last)


_STAY: Final = frozenset({"definition"})
"""Definitions stay, and so does who published and retired them."""
_SUBJECTS: Final[dict[str, tuple[Column[str], ...]]] = {
    "bulk": (bulks.c.id,),
    "task": (tasks.c.id,),
    "workflow": (instances.c.id, purges.c.id),
    "workflow_step": (steps.c.id,),
}


# --- schedules ---------------------------------------------------------------------------------------------


def take_occurrences(conn: Connection, schedule_id: Id, before: int) -> int:
    """Delete what a schedule ran, and what is on record for it, up to an instant that splits no record."""
    s, f, r = schedules.c, schedule_fires.c, schedule_records.c
    conn.execute(update(schedules).where(s.id == schedule_id).values(lock_seq=s.lock_seq + 1))
    row = conn.execute(select(s.accounted_to, s.kept_from).where(s.id == schedule_id)).first()
    if row is None:
        return 0
    cut = _unsplit(conn, schedule_id, min(before, row.accounted_to))
    if row.kept_from is None or cut > row.kept_from:
        conn.execute(update(schedules).where(s.id == schedule_id).values(kept_from=cut))
    done = conn.execute(occurrence_page(schedule_id, cut)).scalars()
    gone = remove(conn, f.id, list(done))
    notes = conn.execute(
        select(r.id).where(r.schedule_id == schedule_id, r.last_at <= cut).order_by(r.at, r.id).limit(ROWS)
    ).scalars()
    return gone + remove(conn, r.id, list(notes))


def occurrence_page(schedule_id: Id, cut: int) -> Select[*tuple[Any, ...]]:
    """What a schedule ran up to an instant and what has ended since."""
    c = schedule_fires.c
    return (
        select(c.id)
        .where(c.schedule_id == schedule_id, c.planned_at <= cut, c.state.not_in(("WAITING", "STARTED")))
        .order_by(c.planned_at, c.id)
        .limit(ROWS)
    )


def _unsplit(conn: Connection, schedule_id: Id, cut: int) -> int:
    """The latest instant up to `cut` at which no record is under way."""
    c = schedule_records.c
    while True:
        under_way = conn.execute(
            select(c.first_at)
            .where(c.schedule_id == schedule_id, c.first_at <= cut, c.last_at > cut)
            .limit(1)
        ).scalar()
        if under_way is None:
            return cut
        cut = under_way - 1


def schedules_with_history(conn: Connection, cuts: dict[Id, int]) -> list[tuple[Id, int]]:
    """Schedules that have something to give up, each with its cut."""
    s = schedules.c
    found = []
    for row in conn.execute(select(s.id, s.namespace_id).order_by(s.id)):
        cut = cuts.get(row.namespace_id, 0)
        if any(conn.execute(query).first() is not None for query in _history(row.id, cut)):
            found.append((row.id, cut))
    return found


def _history(schedule_id: Id, cut: int) -> tuple[Select[*tuple[Any, ...]], Select[*tuple[Any, ...]]]:
    f, r = schedule_fires.c, schedule_records.c
    return (
        select(f.id).where(f.schedule_id == schedule_id, f.planned_at <= cut).limit(1),
        select(r.id).where(r.schedule_id == schedule_id, r.at <= cut).limit(1),
    )


# --- what closed -------------------------------------------------------------------------------------------


def take_closed(conn: Connection, now: int) -> int:
    """Sessions that closed, and consumed reports of ended occurrences."""
    s, i = sessions.c, schedule_inbox.c
    old = now - CLOSED_US
    closed = select(s.id).where(s.closed_at < old).order_by(s.closed_at).limit(ROWS)
    heard = (
        select(i.id).where(i.state == "APPLIED", i.created_at < old).order_by(i.created_at, i.id).limit(ROWS)
    )
    gone = remove(conn, s.id, list(conn.execute(closed).scalars()))
    return gone + remove(conn, i.id, list(conn.execute(heard).scalars()))


def flow_page(queue_id: Id, after: Id) -> Select[*tuple[Any, ...]]:
    """Fairness keys of a queue, by id."""
    c = fair_flows.c
    return (
        select(c.id, c.weight, c.finish, c.last)
        .where(c.queue_id == queue_id, c.id > after)
        .order_by(c.id)
        .limit(ROWS)
    )


def take_flows(conn: Connection, queue_id: Id, after: Id, now: int) -> tuple[int, Id | None]:
    """Forget fairness keys that nobody used for long and that queue behind nothing: a new task of such a key
    starts where one of an unknown key does.
    """
    reached = conn.execute(select(queues.c.virtual_time).where(queues.c.id == queue_id)).scalar()
    rows = conn.execute(flow_page(queue_id, after)).all()
    c = fair_flows.c
    plain = and_(c.weight == 1, c.finish <= (reached or 0), c.last < now - CLOSED_US)
    gone = 0
    for part in in_parts([row.id for row in rows]):
        gone += conn.execute(delete(fair_flows).where(c.id.in_(part), plain)).rowcount
    return gone, (rows[-1].id if len(rows) == ROWS else None)


def queue_ids(conn: Connection) -> Sequence[Id]:
    """Every queue."""
    return conn.execute(select(queues.c.id).order_by(queues.c.id)).scalars().all()


__all__ = [
    "CLOSED_US",
    "DIGEST_US",
    "ROWS",
    "Trail",
    "flow_page",
    "key_page",
    "notice_page",
    "occurrence_page",
    "queue_ids",
    "schedules_with_history",
    "take_closed",
    "take_flows",
    "take_keys",
    "take_notices",
    "take_occurrences",
    "take_trail",
    "trail_page",
]
