"""What has been told to everybody who asked: nothing goes before its events are given out and delivered."""

from __future__ import annotations

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.tables import deliveries, events

_MS_HEX = 12
_SKEW_US = 60_000_000
"""Ids are made by servers, instants come from the database: so far the two may lie apart."""


def told_until(conn: Connection, now: int) -> int:
    """Events before this instant (microseconds) are in nobody's way: no subscription has still to get them.

    Ids begin with the time of what they name, and the id of a delivery with that of its event: the first one
    of all says how far everybody has come.
    """
    first_event = conn.execute(
        select(events.c.id).where(events.c.fanned_out == 0).order_by(events.c.id).limit(1)
    ).scalar()
    first_delivery = conn.execute(select(deliveries.c.id).order_by(deliveries.c.id).limit(1)).scalar()
    waiting = [time_of(each) for each in (first_event, first_delivery) if each is not None]
    return min([now, *(at - _SKEW_US for at in waiting)])


def time_of(row_id: Id) -> int:
    """The instant an id begins with, in microseconds."""
    return int(row_id[:_MS_HEX], 16) * 1_000


def ids_until(at: int) -> Id:
    """Whatever was made before this instant (microseconds) has a smaller id."""
    return f"{max(0, at + _SKEW_US) // 1_000:0{_MS_HEX}x}" + "0" * (32 - _MS_HEX)
