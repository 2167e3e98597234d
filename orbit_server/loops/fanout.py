"""Events that were stored, given to subscriptions and to schedules; and backlogs that grew too old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.subscriptions import reading
from orbit_server.pulse.subscriptions.fanout import Delivered, FannedOut, fan_out
from orbit_server.pulse.subscriptions.managing import purge
from orbit_server.schedules.ends import EndedFires, note_ended
from orbit_server.storage.database import Database
from orbit_server.storage.tables import subscriptions

NAME: Final = "fanout"
RETENTION: Final = "subscriptions"
_LANE: Final = "fanout"
_BITES: Final = 20
_OLD: Final = 500


@dataclass(slots=True)
class Interest:
    """Whether somebody waits for events, so that every commit should wake the loop. Counters for metrics."""

    subscriptions: int = 0
    events: int = 0
    delivered: int = 0
    expired: int = 0


def fanout(
    database: Database, interval_ms: int, interest: Interest, publish: Callable[[Sequence[object]], None]
) -> Loop:
    """The loop that gives events out."""

    async def run_once(_at: int) -> Report:
        seen = moved = 0
        for _ in range(_BITES):
            now = await database.now()
            done = await database.write(partial(fan_out, now=now, listeners=(note_ended,)), lane=_LANE)
            seen += done.events
            moved += sum(done.delivered.values())
            _tell(done, interest, publish)
            if not done.more:
                interest.subscriptions = await database.read(_open_ones)
                return Report(seen, moved)
        return Report(seen, moved, more=True)

    return Loop(NAME, run_once, interval_ms, heeds_clock=False)


def _tell(done: FannedOut, interest: Interest, publish: Callable[[Sequence[object]], None]) -> None:
    interest.events += done.events
    interest.delivered += sum(done.delivered.values())
    hints: list[object] = [Delivered(each) for each in done.delivered]
    if done.heard:
        hints.append(EndedFires())
    if hints:
        publish(hints)


def _open_ones(conn: Connection) -> int:
    query = select(subscriptions.c.id).where(subscriptions.c.ended_at.is_(None)).limit(1)
    return len(conn.execute(query).all())


def retention(database: Database, interval_ms: int, interest: Interest) -> Loop:
    """The loop that gives up what is older than its subscription keeps it."""

    async def run_once(at: int) -> Report:
        rows = await database.read(_retentions)
        moved = 0
        more = False
        for subscription_id, retention_ms, is_open in rows:
            before = at - retention_ms * 1_000 if is_open else at + 1
            gone = await database.write(_expiry(subscription_id, before), lane=subscription_id)
            moved += gone
            more = more or gone == _OLD
            if not is_open and gone == 0:
                await database.write(_purge(subscription_id), lane=_LANE)
        interest.expired += moved
        return Report(len(rows), moved, more=more)

    return Loop(RETENTION, run_once, interval_ms)


def _retentions(conn: Connection) -> list[tuple[Id, int, bool]]:
    s = subscriptions.c
    return [
        (row[0], row[1], row[2] is None) for row in conn.execute(select(s.id, s.retention_ms, s.ended_at))
    ]


def _expiry(subscription_id: Id, before: int) -> Callable[[Connection], int]:
    return lambda conn: reading.expire(conn, subscription_id, before, _OLD)


def _purge(subscription_id: Id) -> Callable[[Connection], None]:
    return lambda conn: purge(conn, subscription_id)
