"""Figures of Pulse: counters of this node, and what a look at the database shows of everybody's backlog."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sqlalchemy import Connection, case, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.limits.queries import all_limits
from orbit_server.pulse.queues.queries import queue_row, queues_with_tasks
from orbit_server.pulse.tasks.lifecycle import Block
from orbit_server.pulse.tasks.limits.records import LimitRow
from orbit_server.storage import tables
from orbit_server.storage.metrics import Histogram

_T = tables.tasks.c
_K = tables.concurrency_keys.c
_DELAYS_US = (1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 30_000_000, 300_000_000)
_UNSETTLED = ("SCHEDULED", "READY", "OFFERED", "RUNNING", "RETRY_WAIT", "VERIFYING", "CANCELLING")
_CLOCK_LIKE = 10**15
_QUEUES_MAX = 500
_PLAIN_START = case((_T.virtual_start > _CLOCK_LIKE, _T.virtual_start))
"""Since when a task without a fairness key is ready; those with one stand in virtual time (null)."""


@dataclass(slots=True)
class DispatchFigures:
    """What this node did. Delays are microseconds from READY to the claim; tasks with a fairness key stand in
    virtual time and are not among them.
    """

    claims: Counter[str] = field(default_factory=Counter)
    """By kind of attempt."""
    ended: Counter[str] = field(default_factory=Counter)
    """Attempts by outcome."""
    retries: int = 0
    delay: Histogram = field(default_factory=lambda: Histogram(_DELAYS_US))


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """One queue: tasks by (state, blocked or not); READY tasks by what holds them back (two causes: counted
    twice); since when the oldest that can be claimed is ready.
    """

    namespace_id: Id
    queue: str
    paused: bool
    states: dict[tuple[str, bool], int]
    causes: dict[str, int]
    oldest_ready_at: int | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """Everything, read at `at`. `reviews` counts by (namespace, class)."""

    at: int
    queues: tuple[QueueBacklog, ...] = ()
    reviews: Counter[tuple[Id, str]] = field(default_factory=Counter)
    limits: tuple[LimitRow, ...] = ()
    key_waiters: int = 0


def read_backlog(conn: Connection, at: int) -> Backlog:
    """A look through the ready index, queue by queue; settled tasks are not read."""
    reviews: Counter[tuple[Id, str]] = Counter()
    found = []
    for namespace_id, queue in queues_with_tasks(conn)[:_QUEUES_MAX]:
        found.append(_queue(conn, namespace_id, queue))
        rows = conn.execute(
            select(_T.review_class, func.count())
            .where(_T.queue_id == queue_id_of(namespace_id, queue), _T.state == "NEEDS_REVIEW")
            .group_by(_T.review_class)
        ).all()
        for review_class, count in rows:
            reviews[(namespace_id, review_class or "UNKNOWN")] += count
    waiting = conn.execute(select(func.sum(_K.waiting)).where(_K.admit_at.is_not(None))).scalar()
    return Backlog(at, tuple(found), reviews, tuple(all_limits(conn)), int(waiting or 0))


def _queue(conn: Connection, namespace_id: Id, queue: str) -> QueueBacklog:
    row = queue_row(conn, namespace_id, queue)
    rows = conn.execute(
        select(_T.state, _T.blocked, func.count(), func.min(_PLAIN_START))
        .where(_T.queue_id == queue_id_of(namespace_id, queue), _T.state.in_(_UNSETTLED))
        .group_by(_T.state, _T.blocked)
    ).all()
    states: Counter[tuple[str, bool]] = Counter()
    causes: Counter[str] = Counter()
    oldest = None
    for state, blocked, count, start in rows:
        if state == "READY":
            causes.update({cause.name or "": count for cause in Block(blocked)})
        held = state == "READY" and bool(blocked)
        states[(state, held)] += count
        if state == "READY" and not blocked:
            oldest = start
    paused = row is not None and row.paused
    return QueueBacklog(namespace_id, queue, paused, dict(states), dict(causes), oldest)
