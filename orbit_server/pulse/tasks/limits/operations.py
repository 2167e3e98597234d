"""Permits and backlogs inside a transaction: taken by a claim, given back by whatever closes the attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import Detail, ResourceExhausted
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.limits.decide import Wait, given_back, granted, wait_for
from orbit_server.pulse.tasks.limits.records import Counted, LimitRow, limit_id_of
from orbit_server.pulse.tasks.limits.rows import LIMITS
from orbit_server.storage.book import Book

_COME_BACK_MS = 1_000


@dataclass(frozen=True, slots=True)
class LaneHeld:
    """Hint: claims of this queue (None: of the namespace) get nothing. `wait_us`: until the next token comes;
    None: until a permit is given back.
    """

    namespace_id: Id
    queue: str | None
    wait_us: int | None


@dataclass(frozen=True, slots=True)
class LimitFreed:
    """Hint: a full queue (None: namespace) has room again."""

    namespace_id: Id
    queue: str | None


@lru_cache(maxsize=4_096)
def permits_of(permits: str) -> tuple[Id, ...]:
    """The limit rows that an attempt holds permits of, from its column."""
    return tuple(orjson.loads(permits))


def may_take(book: Book, limit_ids: Iterable[Id]) -> bool:
    """Whether every limit gives a permit now. Leaves word of the one that does not."""
    for limit_id in limit_ids:
        row = book.get(LIMITS, limit_id)
        wait = None if row is None else wait_for(row, book.now)
        if row is not None and wait is not None:
            book.after_commit(LaneHeld(row.namespace_id, row.queue, wait.us))
            return False
    return True


def take(book: Book, limit_ids: Sequence[Id]) -> str | None:
    """Take a permit and a token of each; answers what the attempt's column has to hold."""
    held = []
    for limit_id in limit_ids:
        row = book.get(LIMITS, limit_id)
        if row is None:
            continue
        after = granted(row, book.now)
        if after is not row:
            book.change(LIMITS, row, after)
        if row.running_max is not None:
            held.append(limit_id)
    return orjson.dumps(held).decode() if held else None


def give_back(book: Book, permits: str) -> None:
    """Free what a closing attempt holds. Needs the rows in "limits"."""
    for limit_id in permits_of(permits):
        row = book.get(LIMITS, limit_id)
        if row is not None:
            book.change(LIMITS, row, given_back(row))
            if row.running_max is not None and row.running >= row.running_max:
                book.after_commit(LimitFreed(row.namespace_id, row.queue))


def count_in(book: Book, limit_ids: Iterable[Id]) -> Counted:
    """Let a new task into the backlogs that these rows limit.

    Raises:
        ResourceExhausted: one of them is full.
    """
    rows = [row for row in (book.get(LIMITS, limit_id) for limit_id in limit_ids) if row is not None]
    rows = [row for row in rows if row.backlog_max is not None]
    for row in rows:
        if row.backlog_max is not None and row.backlog >= row.backlog_max:
            raise _full(row, row.backlog_max)
    counted = Counted.NOWHERE
    for row in rows:
        book.change(LIMITS, row, altered(row, backlog=row.backlog + 1))
        counted |= Counted.NAMESPACE if row.queue is None else Counted.QUEUE
    return counted


def count_out(book: Book, limit_ids: Iterable[Id]) -> None:
    """A task has left these backlogs."""
    for limit_id in limit_ids:
        row = book.get(LIMITS, limit_id)
        if row is not None:
            book.change(LIMITS, row, altered(row, backlog=row.backlog - 1))


def backlog_ids(namespace_id: Id, queue: str, counted: int) -> list[Id]:
    """The rows of the backlogs in which a task counts."""
    ids = []
    if counted & Counted.QUEUE:
        ids.append(limit_id_of(namespace_id, queue))
    if counted & Counted.NAMESPACE:
        ids.append(limit_id_of(namespace_id))
    return ids


def waits(rows: Iterable[LimitRow], now: int) -> list[tuple[LimitRow, Wait]]:
    """The rows that give no permit now, and how long they will not."""
    return [(row, wait) for row in rows if (wait := wait_for(row, now)) is not None]


def _full(row: LimitRow, most: int) -> ResourceExhausted:
    whose = "the namespace" if row.queue is None else f"queue {row.queue}"
    field = "namespace" if row.queue is None else "queue"
    return ResourceExhausted(
        f"{whose} has as many unsettled tasks as its backlog holds ({most}); come back later",
        [Detail(field, f"backlog is limited to {most}")],
        retry_after_ms=_COME_BACK_MS,
    )
