"""Pulling and acknowledging: what a reader takes is out of sight for a while, and comes again unless it is
acknowledged. Every function runs in one transaction that touches the reader's row first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from orbit_sdk.values.ids import Id
from orbit_server.pulse.subscriptions.filters import ENDED
from orbit_server.storage.tables import (
    deliveries,
    events,
    instance_outputs,
    readers,
    task_results,
)

__all__ = ["Taken", "acknowledge", "expire", "figures", "oldest", "pull"]

_D = deliveries.c
_R = readers.c


@dataclass(frozen=True, slots=True)
class Taken:
    """One delivery: its row as it now stands, its event, and what the event's task or workflow left."""

    id: Id
    deliveries: int
    visible_at: int
    event: Any
    result: str | None
    error: str | None


def _touch(conn: Connection, subscription_id: Id, **changes: Any) -> None:
    conn.execute(update(readers).where(_R.id == subscription_id).values(lock_seq=_R.lock_seq + 1, **changes))


def pull(conn: Connection, subscription_id: Id, now: int, limit: int, visibility_ms: int) -> list[Taken]:
    """Take up to `limit` events that nobody is reading, oldest first; those that come again come when their
    time is over.
    """
    _touch(conn, subscription_id, pulled_at=now)
    rows = conn.execute(
        select(_D.id, _D.deliveries, events)
        .join(events, events.c.id == _D.event_id)
        .where(_D.subscription_id == subscription_id, _D.visible_at <= now)
        .order_by(_D.visible_at, _D.id)
        .limit(limit)
    ).all()
    if not rows:
        return []
    visible_at = now + visibility_ms * 1_000
    ids = [row[0] for row in rows]
    conn.execute(
        update(deliveries).where(_D.id.in_(ids)).values(visible_at=visible_at, deliveries=_D.deliveries + 1)
    )
    again = sum(1 for row in rows if row[1] > 0)
    conn.execute(
        update(readers)
        .where(_R.id == subscription_id)
        .values(delivered=_R.delivered + len(rows) - again, redelivered=_R.redelivered + again)
    )
    left = _left(conn, rows)
    return [Taken(row[0], row[1] + 1, visible_at, row, *left.get(row.id_1, (None, None))) for row in rows]


def _left(conn: Connection, rows: Sequence[Any]) -> dict[Id, tuple[str | None, str | None]]:
    """Result and error of the tasks and workflows that ended, by event."""
    ended = [row for row in rows if row.state in ENDED]
    tasks = {row.aggregate_id: row.id_1 for row in ended if row.aggregate_kind == "task"}
    workflows = {row.aggregate_id: row.id_1 for row in ended if row.aggregate_kind == "workflow"}
    found: dict[Id, tuple[str | None, str | None]] = {}
    t, o = task_results.c, instance_outputs.c
    if tasks:
        for row in conn.execute(select(t.task_id, t.result, t.error).where(t.task_id.in_(sorted(tasks)))):
            found[tasks[row[0]]] = (row[1], row[2])
    if workflows:
        query = select(o.instance_id, o.output, o.error).where(o.instance_id.in_(sorted(workflows)))
        for row in conn.execute(query):
            found[workflows[row[0]]] = (row[1], row[2])
    return found


def acknowledge(conn: Connection, subscription_id: Id, ids: Sequence[Id]) -> int:
    """Take deliveries out of the backlog, whoever reads them now; gives how many were in it."""
    _touch(conn, subscription_id)
    gone = conn.execute(
        delete(deliveries).where(_D.id.in_(sorted(set(ids))), _D.subscription_id == subscription_id)
    ).rowcount
    if gone:
        conn.execute(
            update(readers).where(_R.id == subscription_id).values(acknowledged=_R.acknowledged + gone)
        )
    return int(gone)


def expire(conn: Connection, subscription_id: Id, before: int, limit: int) -> int:
    """Give up what was added before an instant, a bounded number of events."""
    old = (
        conn.execute(
            select(_D.id)
            .where(_D.subscription_id == subscription_id, _D.added_at < before)
            .order_by(_D.added_at)
            .limit(limit)
        )
        .scalars()
        .all()
    )
    if not old:
        return 0
    _touch(conn, subscription_id)
    gone = conn.execute(delete(deliveries).where(_D.id.in_(old))).rowcount
    conn.execute(update(readers).where(_R.id == subscription_id).values(expired=_R.expired + gone))
    return int(gone)


def oldest(conn: Connection, subscription_id: Id) -> int | None:
    """When the oldest event in the backlog was added."""
    return conn.execute(
        select(_D.added_at).where(_D.subscription_id == subscription_id).order_by(_D.added_at).limit(1)
    ).scalar()


def figures(conn: Connection, subscription_id: Id, now: int) -> tuple[int | None, int]:
    """When the oldest event in the backlog was added, and how many are being read now."""
    flying = conn.execute(
        select(func.count()).where(
            _D.subscription_id == subscription_id, _D.visible_at > now, _D.deliveries > 0
        )
    ).scalar_one()
    return oldest(conn, subscription_id), flying
