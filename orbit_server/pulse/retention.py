"""Rows that come with use and go when nobody needs them: idle keys, fairness keys, lifted limits.

Each table is walked by primary key in bounded bites. A row goes by one conditional DELETE: a transaction that
holds it is waited for, and what it wrote counts; one that comes later finds no row and makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.fairness.rows import COST
from orbit_server.storage import tables
from orbit_server.storage.database import Database

_MINUTE: Final = 60_000_000
KEYS_KEPT_US: Final = 10 * _MINUTE
FLOWS_KEPT_US: Final = 60 * _MINUTE
LIMITS_KEPT_US: Final = 7 * 24 * 60 * _MINUTE
_BITE: Final = 1_000
_BITES: Final = 5


def _idle_keys(at: int) -> ColumnElement[bool]:
    """Nobody holds it and nobody waits."""
    k = tables.concurrency_keys.c
    return and_(k.held == 0, k.waiting == 0, k.admit_at.is_(None), k.last < at - KEYS_KEPT_US)


def _idle_flows(at: int) -> ColumnElement[bool]:
    """Its share was never set, and what it was served is not ahead of its queue by more than one task: made
    anew, it would stand in line as it does now.
    """
    f, q = tables.fair_flows.c, tables.queues.c
    reached = select(func.coalesce(func.max(q.virtual_time), 0)).where(q.id == f.queue_id).scalar_subquery()
    return and_(f.weight == 1, f.finish <= reached + COST, f.last < at - FLOWS_KEPT_US)


def _lifted_limits(at: int) -> ColumnElement[bool]:
    """Nothing is limited, and no permit or place of it is in use."""
    row = tables.limits.c
    nothing = and_(row.running_max.is_(None), row.backlog_max.is_(None), row.rate.is_(None))
    return and_(nothing, row.running == 0, row.backlog == 0, row.last < at - LIMITS_KEPT_US)


@dataclass(slots=True)
class Walk:
    """A way through one table, bite by bite; `after` is where the next bite goes on."""

    table: Table
    idle: Callable[[int], ColumnElement[bool]]
    after: Id = ""

    async def bite(self, database: Database, at: int) -> tuple[int, int]:
        """Answers rows seen and rows removed; fewer than a whole bite seen means the end was reached."""
        rows = await database.read(partial(self._look, at=at))
        ids = [row_id for row_id, idle in rows if idle]
        removed = await database.write(partial(self._remove, ids=ids, at=at)) if ids else 0
        self.after = rows[-1][0] if len(rows) == _BITE else ""
        return len(rows), removed

    def _look(self, conn: Connection, at: int) -> list[tuple[Id, bool]]:
        row_id = self.table.c.id
        query = select(row_id, self.idle(at)).where(row_id > self.after).order_by(row_id).limit(_BITE)
        return [(found, bool(idle)) for found, idle in conn.execute(query)]

    def _remove(self, conn: Connection, ids: Sequence[Id], at: int) -> int:
        return conn.execute(delete(self.table).where(self.table.c.id.in_(ids), self.idle(at))).rowcount


def walks() -> tuple[Walk, ...]:
    """A way through each of the tables."""
    return (
        Walk(tables.concurrency_keys, _idle_keys),
        Walk(tables.fair_flows, _idle_flows),
        Walk(tables.limits, _lifted_limits),
    )


async def clear_idle(database: Database, at: int, ways: Sequence[Walk]) -> tuple[int, int]:
    """A few bites of each way; answers rows seen and rows removed. A way that ended begins anew."""
    seen = removed = 0
    for way in ways:
        for _ in range(_BITES):
            found, gone = await way.bite(database, at)
            seen += found
            removed += gone
            if not way.after:
                break
    return seen, removed
