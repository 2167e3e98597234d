"""How schedules learn that what they started has ended: from the events of the change, stored with it.

Whoever fans events out calls this in the transaction that marks them as fanned out; the row that it writes is
consumed by `SettleFire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.pulse.subscriptions.fanout import Listener
from orbit_server.pulse.subscriptions.filters import ENDED
from orbit_server.storage.tables import schedule_fires, schedule_inbox, schedules

__all__ = ["ENDS", "EndedFires", "note_ended"]


class EndedFires:
    """Hint: the ends of occurrences wait to be settled."""


def note_ended(conn: Connection, events: Sequence[Any], now: int) -> int:
    """Write an inbox row for each event that ends the target of a fire. Gives how many there were.

    `events` have `aggregate_kind`, `aggregate_id` and `state`.
    """
    ended: dict[Id, str] = {
        event.aggregate_id: event.state
        for event in events
        if event.aggregate_kind in ("task", "workflow") and event.state in ENDED
    }
    if not ended:
        return 0
    fires = schedule_fires.c
    query = select(fires.id, fires.schedule_id, fires.target_id).where(
        fires.target_id.in_(sorted(ended)), fires.state == "STARTED"
    )
    found = {derive_id("fire ended", row.id): row for row in conn.execute(query)}
    if not found:
        return 0
    known = set(
        conn.execute(select(schedule_inbox.c.id).where(schedule_inbox.c.id.in_(sorted(found)))).scalars()
    )
    rows = [
        {
            "id": inbox_id,
            "schedule_id": row.schedule_id,
            "fire_id": row.id,
            "state": "PENDING",
            "outcome": ended[row.target_id],
            "created_at": now,
        }
        for inbox_id, row in sorted(found.items())
        if inbox_id not in known
    ]
    if rows:
        conn.execute(insert(schedule_inbox), rows)
    return len(rows)


def _waits(conn: Connection) -> bool:
    return conn.execute(select(schedules.c.id).limit(1)).first() is not None


ENDS = Listener(_waits, note_ended)
"""Schedules, as those who are told of events."""
