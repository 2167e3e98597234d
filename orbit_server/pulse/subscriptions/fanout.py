"""From stored events to the subscriptions that want them: each event once, in one transaction with its flag.

Events are found by their flag and an index, never by a position in time: an event that commits late is found
late, and none is passed over. The subscriptions are read after the events and after the namespace's roster
was touched, so that a subscription gets everything that was stored after it was made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.pulse.subscriptions.filters import KINDS, Facts, Filter, stored_filter
from orbit_server.storage.row_sql import RowSql
from orbit_server.storage.tables import deliveries, events, instances, readers, rosters, subscriptions, tasks

__all__ = ["Delivered", "FannedOut", "fan_out"]

log = logging.getLogger(__name__)

BITE: Final = 500
UNHEARD_BITE: Final = 4_000
"""Events that nobody waits for are only marked, so more of them make one transaction."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Somebody beside subscriptions who is told of events, in the transaction that marks them."""

    waits: Callable[[Connection], bool]
    """Whether there is anybody to be told at all. Asked after the events were read."""
    hear: Callable[[Connection, Sequence[Any], int], int]
    """(connection, events, now) -> how many it took."""


_E = events.c
_EVENT = (
    _E.id,
    _E.namespace_id,
    _E.workflow_id,
    _E.task_id,
    _E.aggregate_kind,
    _E.aggregate_id,
    _E.type,
    _E.state,
    _E.occurred_at,
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """Hint: a subscription has something new."""

    subscription_id: Id


@dataclass(frozen=True, slots=True)
class FannedOut:
    """What one bite did. `heard`: what listeners took of it; `more`: it stopped at its bound."""

    events: int = 0
    delivered: Mapping[Id, int] = field(default_factory=dict)
    heard: int = 0
    subscriptions: int = 0
    more: bool = False


def fan_out(conn: Connection, now: int, listeners: Sequence[Listener] = (), bite: int = BITE) -> FannedOut:
    """Give the oldest events that were not fanned out to those that want them."""
    if not _somebody_waits(conn, listeners):
        unheard = _mark_unheard(conn, listeners)
        if unheard is not None:
            return unheard
    found: Sequence[Any] = conn.execute(
        select(*_EVENT).where(_E.fanned_out == 0).order_by(_E.fanned_out, _E.id).limit(bite)
    ).all()
    if not found:
        return FannedOut()
    more = len(found) == bite
    namespaces = sorted({event.namespace_id for event in found})
    touched = conn.execute(
        update(rosters).where(rosters.c.id.in_(namespaces)).values(lock_seq=rosters.c.lock_seq + 1)
    )
    if touched.rowcount:
        # Another node may have given some of them out while this one waited for the roster.
        ids = [event.id for event in found]
        left = set(conn.execute(select(_E.id).where(_E.id.in_(ids), _E.fanned_out == 0)).scalars())
        found = [event for event in found if event.id in left]
    open_ones = conn.execute(
        select(subscriptions).where(
            subscriptions.c.namespace_id.in_(namespaces), subscriptions.c.ended_at.is_(None)
        )
    ).all()
    delivered = _deliver(conn, found, open_ones, now) if open_ones else {}
    heard = sum(listener.hear(conn, found, now) for listener in listeners)
    _mark(conn, [event.id for event in found])
    return FannedOut(len(found), delivered, heard, len(open_ones), more=more)


def _mark_unheard(conn: Connection, listeners: Sequence[Listener]) -> FannedOut | None:
    """Mark events that nobody waits for; None when somebody does by now.

    Whoever is not there yet when asked for after the events were read is made after they were stored, and is
    owed none of them. So no roster has to be touched.
    """
    index = select(_E.id).where(_E.fanned_out == 0).order_by(_E.fanned_out, _E.id).limit(UNHEARD_BITE)
    ids: Sequence[Id] = conn.execute(index).scalars().all()
    if not ids:
        return FannedOut()
    if _somebody_waits(conn, listeners):
        return None
    _mark(conn, ids)
    return FannedOut(len(ids), more=len(ids) == UNHEARD_BITE)


def _somebody_waits(conn: Connection, listeners: Sequence[Listener]) -> bool:
    is_open = select(subscriptions.c.id).where(subscriptions.c.ended_at.is_(None)).limit(1)
    return conn.execute(is_open).first() is not None or any(one.waits(conn) for one in listeners)


def _mark(conn: Connection, ids: Sequence[Id]) -> None:
    _MARKS.assign(conn, "fanned_out", 1, ids)


_MARKS: Final = RowSql("events", "id", ("id", "fanned_out"))


def _deliver(conn: Connection, found: Sequence[Any], open_ones: Sequence[Any], now: int) -> dict[Id, int]:
    filters = {one.id: wanted for one in open_ones if (wanted := _filter(one)) is not None}
    facts = _facts(conn, found, filters.values())
    delivered: dict[Id, int] = {}
    for one in open_ones:
        wanted = filters.get(one.id)
        if wanted is None:
            continue
        mine = [
            event
            for event in found
            if event.namespace_id == one.namespace_id and wanted.wants(facts[event.id])
        ]
        if mine:
            count = _add(conn, one, mine, now)
            if count:
                delivered[one.id] = count
    return delivered


def _filter(one: Any) -> Filter | None:
    """What a subscription wants. A damaged row gets nothing, and keeps nothing from the others."""
    try:
        return stored_filter(one.filter)
    except (ValueError, AttributeError, TypeError):
        log.exception("the filter of subscription %s is damaged: it gets no events", one.id)
        return None


def _facts(conn: Connection, found: Sequence[Any], filters: Iterable[Filter]) -> dict[Id, Facts]:
    """What is known of the events; tasks and workflows are only looked at where a filter asks."""
    filters = list(filters)
    task_rows: dict[Id, Any] = {}
    workflow_ids = {event.workflow_id for event in found if event.workflow_id is not None}
    if any(each.asks_tasks for each in filters):
        ids = sorted({event.task_id for event in found if event.task_id is not None})
        query = select(tasks.c.id, tasks.c.queue, tasks.c.handler, tasks.c.instance_id)
        task_rows = {row.id: row for row in conn.execute(query.where(tasks.c.id.in_(ids)))}
        workflow_ids |= {row.instance_id for row in task_rows.values() if row.instance_id is not None}
    definitions: dict[Id, str] = {}
    if workflow_ids and any(each.asks_workflows for each in filters):
        query = select(instances.c.id, instances.c.definition_id)
        rows = conn.execute(query.where(instances.c.id.in_(sorted(workflow_ids))))
        definitions = {row[0]: row[1] for row in rows}
    return {event.id: _fact(event, task_rows.get(event.task_id), definitions) for event in found}


def _fact(event: Any, task: Any, definitions: Mapping[Id, str]) -> Facts:
    workflow_id = event.workflow_id if task is None else task.instance_id
    return Facts(
        str(KINDS.get(event.aggregate_kind, event.aggregate_kind)),
        event.type,
        event.state,
        None if task is None else task.queue,
        None if task is None else task.handler,
        definitions.get(workflow_id) if workflow_id is not None else None,
    )


def _add(conn: Connection, one: Any, mine: Sequence[Any], now: int) -> int:
    """Add events to a subscription; what its bound has no room for is given up as it says, and counted."""
    reader = conn.execute(select(readers).where(readers.c.id == one.id)).one()
    backlog = one.added - reader.acknowledged - reader.expired - reader.dropped
    room = max(0, one.backlog_max - backlog)
    taken, dropped = mine, 0
    changes: dict[str, Any] = {}
    if len(mine) > room:
        lost: Sequence[int]
        if one.when_full == "DROP_NEWEST":
            taken = mine[:room]
            lost = [event.occurred_at for event in mine[room:]]
        else:
            taken = mine[-one.backlog_max :]
            over = backlog + len(taken) - one.backlog_max
            lost = [
                *(event.occurred_at for event in mine[: -one.backlog_max]),
                *_drop_oldest(conn, one.id, over),
            ]
        dropped = len(lost)
        if lost:
            first = min(lost) if one.dropped_first_at is None else min(one.dropped_first_at, *lost)
            changes = {"dropped_first_at": first, "dropped_last_at": max(one.dropped_last_at or 0, *lost)}
    rows = [
        {
            "id": IdSeed(event.occurred_at, f"{one.id}:{event.id}").nth(0),
            "subscription_id": one.id,
            "event_id": event.id,
            "added_at": now,
            "visible_at": now,
            "deliveries": 0,
        }
        for event in taken
    ]
    if rows:
        conn.execute(insert(deliveries), rows)
    conn.execute(
        update(subscriptions)
        .where(subscriptions.c.id == one.id)
        .values(added=one.added + len(rows), dropped=one.dropped + dropped, **changes)
    )
    return len(rows)


def _drop_oldest(conn: Connection, subscription_id: Id, count: int) -> list[int]:
    """Give up the oldest; their reader's row is touched first, as by whoever takes from the backlog."""
    if count <= 0:
        return []
    conn.execute(
        update(readers).where(readers.c.id == subscription_id).values(lock_seq=readers.c.lock_seq + 1)
    )
    d = deliveries.c
    oldest = conn.execute(
        select(d.id, d.added_at)
        .where(d.subscription_id == subscription_id)
        .order_by(d.added_at, d.id)
        .limit(count)
    ).all()
    if not oldest:
        return []
    gone = conn.execute(delete(deliveries).where(d.id.in_([row.id for row in oldest]))).rowcount
    conn.execute(
        update(readers).where(readers.c.id == bindparam("reader")).values(dropped=readers.c.dropped + gone),
        {"reader": subscription_id},
    )
    return [row.added_at for row in oldest]
