"""Events that were stored, given to subscriptions and to schedules; and backlogs that grew too old."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.loops.loop import Loop, Report
from orbit_server.pulse.subscriptions import reading
from orbit_server.pulse.subscriptions.fanout import Delivered, FannedOut, fan_out
from orbit_server.pulse.subscriptions.managing import purge
from orbit_server.schedules.ends import ENDS, EndedFires
from orbit_server.storage.database import Database
from orbit_server.storage.tables import events, readers, subscriptions

NAME: Final = "fanout"
EXPIRY: Final = "subscriptions"
_LANE: Final = "fanout"
_BITES: Final = 20
_OLD: Final = 500


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a subscription's reader is behind, as last looked at."""

    namespace_id: Id
    name: str
    backlog: int
    oldest_s: float
    dropped: int


@dataclass(slots=True)
class Interest:
    """Whether somebody waits for events, so that every commit should wake the loop. Counters for metrics."""

    subscriptions: int = 0
    events: int = 0
    delivered: int = 0
    expired: int = 0
    pending_s: float = 0.0
    lags: tuple[Lag, ...] = ()


def fanout(
    database: Database, interval_ms: int, interest: Interest, publish: Callable[[Sequence[object]], None]
) -> Loop:
    """The loop that gives events out."""

    async def run_once(_at: int) -> Report:
        seen = moved = 0
        for _ in range(_BITES):
            now = await database.now()
            done = await database.write(partial(fan_out, now=now, listeners=(ENDS,)), lane=_LANE)
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


def expiry(database: Database, interval_ms: int, interest: Interest) -> Loop:
    """The loop that gives up what is older than its subscription keeps it."""

    async def run_once(at: int) -> Report:
        found = await database.read(lambda conn: _look(conn, at))
        moved = 0
        more = False
        for row in found.rows:
            is_open = row.ended_at is None
            before = at - row.retention_ms * 1_000 if is_open else at + 1
            gone = await database.write(_expire(row.id, before), lane=row.id)
            moved += gone
            more = more or gone == _OLD
            if not is_open and gone == 0:
                await database.write(_purge(row.id), lane=_LANE)
        interest.expired += moved
        interest.lags = found.lags
        interest.pending_s = found.pending_s
        return Report(len(found.rows), moved, more=more)

    return Loop(EXPIRY, run_once, interval_ms)


@dataclass(frozen=True, slots=True)
class _Looked:
    rows: Sequence[Any]
    lags: tuple[Lag, ...]
    pending_s: float


def _look(conn: Connection, at: int) -> _Looked:
    """Every subscription, ended ones included, and how far the readers of the open ones are behind."""
    s, r = subscriptions.c, readers.c
    query = select(
        *(s.id, s.namespace_id, s.name, s.retention_ms, s.ended_at, s.added, s.dropped),
        (s.added - r.acknowledged - r.expired - r.dropped).label("backlog"),
    ).join(readers, r.id == s.id)
    rows = conn.execute(query).all()
    lags = []
    for row in rows:
        if row.ended_at is None:
            oldest = reading.oldest(conn, row.id) if row.backlog else None
            waits_s = 0.0 if oldest is None else max(0, at - oldest) / 1_000_000
            lags.append(Lag(row.namespace_id, row.name, max(0, row.backlog), waits_s, row.dropped))
    e = events.c
    query_pending = select(e.occurred_at).where(e.fanned_out == 0).order_by(e.id).limit(1)
    pending = conn.execute(query_pending).scalar()
    return _Looked(rows, tuple(lags), 0.0 if pending is None else max(0, at - pending) / 1_000_000)


def figures(interest: Interest) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Samples for metrics (`FAMILIES` says what they are)."""
    yield "orbit_events_given_out_total", {}, interest.events
    yield "orbit_deliveries_added_total", {}, interest.delivered
    yield "orbit_deliveries_expired_total", {}, interest.expired
    yield "orbit_events_pending_seconds", {}, interest.pending_s
    for lag in interest.lags:
        labels = {"namespace_id": lag.namespace_id, "subscription": lag.name}
        yield "orbit_subscription_backlog", labels, lag.backlog
        yield "orbit_subscription_oldest_seconds", labels, lag.oldest_s
        yield "orbit_subscription_dropped_total", labels, lag.dropped


FAMILIES: Final = (
    ("orbit_events_given_out_total", "counter", "Events that this node gave to subscriptions and schedules."),
    ("orbit_deliveries_added_total", "counter", "Events that this node added to backlogs of subscriptions."),
    ("orbit_deliveries_expired_total", "counter", "Events that nobody acknowledged in time."),
    ("orbit_events_pending_seconds", "gauge", "Age of the oldest event that was not given out yet."),
    ("orbit_subscription_backlog", "gauge", "Events that wait in a subscription or are being read."),
    ("orbit_subscription_oldest_seconds", "gauge", "For how long the oldest of them has waited."),
    ("orbit_subscription_dropped_total", "counter", "Events that a full backlog gave up."),
)


def _expire(subscription_id: Id, before: int) -> Callable[[Connection], int]:
    return lambda conn: reading.expire(conn, subscription_id, before, _OLD)


def _purge(subscription_id: Id) -> Callable[[Connection], None]:
    return lambda conn: purge(conn, subscription_id)
