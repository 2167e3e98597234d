"""The figures of a node for its metrics page: dispatch, backlog, and how late its event loop is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from orbit_server.api.metrics import describe, histogram
from orbit_server.api.server import Sample
from orbit_server.loops.backlog import LastBacklog
from orbit_server.pulse.figures import Backlog, DispatchFigures
from orbit_server.verify.checker import Checker

_TICK_S: Final = 0.1
_KEPT: Final = 100

describe(
    (
        (
            "orbit_tasks",
            "gauge",
            "Unsettled tasks by queue and state; blocked ones apart.",
        ),
        (
            "orbit_oldest_ready_seconds",
            "gauge",
            "Since when the first in line has been ready.",
        ),
        ("orbit_backlog_seen_timestamp_seconds", "gauge", "When the figures of the backlog were read."),
        ("orbit_queue_paused", "gauge", "1 while a queue is paused."),
        ("orbit_reviews", "gauge", "Tasks that wait for a person, by class."),
        ("orbit_permits_in_use", "gauge", "Permits of a limit that are in use."),
        ("orbit_permits_limit", "gauge", "How many permits a limit allows."),
        ("orbit_blocked_tasks", "gauge", "READY tasks that something holds back, by queue and cause."),
        ("orbit_backlog_tasks", "gauge", "Tasks that count in a limited backlog."),
        ("orbit_backlog_limit", "gauge", "How many tasks a backlog takes."),
        ("orbit_key_waiters", "gauge", "Tasks that wait for their concurrency key."),
        ("orbit_claims_total", "counter", "Attempts that this node offered to workers, by kind."),
        ("orbit_attempts_ended_total", "counter", "Attempts whose end this node stored, by outcome."),
        ("orbit_task_retries_total", "counter", "Attempts after which a task waits for another."),
        ("orbit_dispatch_delay_seconds", "histogram", "From ready to claimed."),
        (
            "orbit_event_loop_lag_seconds",
            "gauge",
            "The longest delay in the last ten seconds.",
        ),
    )
)


describe(
    (
        ("orbit_invariant_violations", "gauge", "What must be impossible and was found, by rule."),
        ("orbit_invariant_checks_total", "counter", "Looks of this node at a part of a rule."),
        ("orbit_invariant_checks_skipped_total", "counter", "Looks that took longer than they may."),
        ("orbit_invariant_passes_total", "counter", "Passes of this node through all rules."),
        ("orbit_invariant_passed_timestamp_seconds", "gauge", "When this node's last pass ended."),
    )
)


def check_samples(checks: Checker) -> Iterator[Sample]:
    """What the checker looked at, and what it found."""
    for rule, count in sorted(checks.violations.items()):
        labels = {"rule": str(rule)}
        yield "orbit_invariant_violations", labels, count
        yield "orbit_invariant_checks_total", labels, checks.figures.checked[rule]
        yield "orbit_invariant_checks_skipped_total", labels, checks.figures.skipped[rule]
    yield "orbit_invariant_passes_total", {}, checks.figures.passes
    if checks.figures.finished_at is not None:
        yield "orbit_invariant_passed_timestamp_seconds", {}, checks.figures.finished_at / 1e6


class LoopLag:
    """Wakes ten times a second and remembers how late it was."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """From now on, on the running loop."""
        loop = asyncio.get_running_loop()
        self._due = loop.time() + _TICK_S
        self._timer = loop.call_at(self._due, self._tick, loop)

    def stop(self) -> None:
        """No more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def worst(self) -> float:
        """Seconds."""
        return max(self._late, default=0.0)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._late = [*self._late[-_KEPT:], max(0.0, loop.time() - self._due)]
        self._due = loop.time() + _TICK_S
        self._timer = loop.call_at(self._due, self._tick, loop)


def pulse_samples(done: DispatchFigures, last: LastBacklog, lag: LoopLag) -> Iterator[Sample]:
    """Everything about tasks. Gauges of the database are the same on every node: take the largest."""
    yield "orbit_event_loop_lag_seconds", {}, lag.worst
    for kind, count in done.claims.items():
        yield "orbit_claims_total", {"kind": kind}, count
    for outcome, count in done.ended.items():
        yield "orbit_attempts_ended_total", {"outcome": outcome}, count
    yield "orbit_task_retries_total", {}, done.retries
    yield from histogram("orbit_dispatch_delay_seconds", {}, done.delay, 1e6)
    yield from _backlog(last.seen)


def _backlog(seen: Backlog) -> Iterable[Sample]:
    if seen.at:
        yield "orbit_backlog_seen_timestamp_seconds", {}, seen.at / 1e6
    for one in seen.queues:
        labels = {"namespace": one.namespace_id, "queue": one.queue}
        for (state, blocked), count in one.states.items():
            yield "orbit_tasks", {**labels, "state": state, "blocked": str(int(blocked))}, count
        for cause, count in one.causes.items():
            yield "orbit_blocked_tasks", {**labels, "cause": cause}, count
        yield "orbit_queue_paused", labels, int(one.paused)
        age = 0 if one.oldest_ready_at is None else max(0, seen.at - one.oldest_ready_at)
        yield "orbit_oldest_ready_seconds", labels, age / 1e6
    for (namespace_id, review_class), count in seen.reviews.items():
        yield "orbit_reviews", {"namespace": namespace_id, "class": review_class}, count
    for row in seen.limits:
        labels = {"namespace": row.namespace_id, "queue": row.queue or ""}
        if row.running_max is not None:
            yield "orbit_permits_in_use", labels, row.running
            yield "orbit_permits_limit", labels, row.running_max
        if row.backlog_max is not None:
            yield "orbit_backlog_tasks", labels, row.backlog
            yield "orbit_backlog_limit", labels, row.backlog_max
    yield "orbit_key_waiters", {}, seen.key_waiters
