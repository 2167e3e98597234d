"""One lap of retention: every sort of row in turn, each in bites of one short transaction.

A lap remembers nothing that matters: it may end anywhere, and the next one, here or on another node, finds in
the rows what is left to do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock
from orbit_server.retention import members, records, roots
from orbit_server.retention.horizon import told_until
from orbit_server.retention.keeping import Keeping, keepings
from orbit_server.retention.roots import Cuts, Found
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place
from orbit_server.storage.tables import purges

__all__ = ["KINDS", "RetentionFigures", "Sweep"]

T = TypeVar("T")

KINDS: Final = ("notices", "tasks", "workflows", "rows", "occurrences", "keys", "audit", "closed")
_LANE: Final = "retention"
_BITE: Final = 100
_REST: Final = 3
"""After a bite the database has so many times its length for others."""
_REST_MAX_S: Final = 0.5


@dataclass(slots=True)
class RetentionFigures:
    """What this node took away, by kind, and how the last lap went."""

    gone: Counter[str] = field(default_factory=Counter)
    bites: int = 0
    laps: int = 0
    lap_seconds: float = 0.0
    purging: int = 0
    """Workflows whose rows are going, as last looked at."""
    held_back_s: float = 0.0
    """By how much events that nobody got yet hold everything back."""


@dataclass(frozen=True, slots=True)
class _Lap:
    at: int
    told: int
    keeping: dict[Id, Keeping]

    def cuts(self, kept_ms: Callable[[Keeping], int]) -> Cuts:
        """Before when something must have ended, by namespace, to be old and told of."""
        return Cuts(
            {
                each: min(self.at - kept_ms(keeping) * 1_000, self.told)
                for each, keeping in self.keeping.items()
            }
        )

    def ages(self, kept_ms: Callable[[Keeping], int]) -> dict[Id, int]:
        """The same for what is told to nobody."""
        return {each: self.at - kept_ms(keeping) * 1_000 for each, keeping in self.keeping.items()}


class Sweep:
    """Retention of one node. `default`: what holds where a namespace says nothing else."""

    def __init__(self, database: Database, clock: Clock, default: Keeping) -> None:
        self.figures = RetentionFigures()
        self._database = database
        self._clock = clock
        self._default = default

    async def lap(self, at: int) -> int:
        """Take away everything that may go at this instant (database time); gives how many rows or roots."""
        began = self._clock.monotonic_us()
        before = self.figures.gone.total()
        lap = await self._database.read(partial(_look, at=at, default=self._default))
        self.figures.held_back_s = max(0, at - lap.told) / 1_000_000
        # Notices first: a task never goes before the last word about it.
        for step in (
            self._members,
            self._notices,
            self._tasks,
            self._workflows,
            self._members,
            self._occurrences,
            self._keys,
            self._trail,
            self._closed,
        ):
            await step(lap)
        self.figures.laps += 1
        self.figures.lap_seconds = (self._clock.monotonic_us() - began) / 1_000_000
        return self.figures.gone.total() - before

    # --- each sort of row ---

    async def _notices(self, lap: _Lap) -> None:
        cuts = lap.cuts(lambda keeping: min(keeping.tasks_ms, keeping.workflows_ms))
        for namespace_id, cut in cuts.by_namespace.items():
            await self._until_none(
                "notices", partial(records.take_notices, namespace_id=namespace_id, before=cut)
            )

    async def _tasks(self, lap: _Lap) -> None:
        cuts = lap.cuts(lambda keeping: keeping.tasks_ms)
        take = partial(roots.take_tasks, cuts=cuts, now=lap.at)
        await self._walk("tasks", partial(roots.old_tasks, cuts=cuts), take)

    async def _workflows(self, lap: _Lap) -> None:
        cuts = lap.cuts(lambda keeping: keeping.workflows_ms)
        take = partial(roots.take_instances, cuts=cuts, now=lap.at)
        await self._walk("workflows", partial(roots.old_instances, cuts=cuts), take)

    async def _members(self, lap: _Lap) -> None:
        while going := await self._database.read(members.marked):
            self.figures.purging = await self._database.read(count_purging)
            done = await self._write(partial(members.bite, going=going, now=lap.at))
            self.figures.gone["rows"] += done.rows
        self.figures.purging = 0

    async def _occurrences(self, lap: _Lap) -> None:
        ages = lap.ages(lambda keeping: keeping.schedules_ms)
        for schedule_id, cut in await self._database.read(partial(records.schedules_with_history, cuts=ages)):
            take = partial(records.take_occurrences, schedule_id=schedule_id, before=cut)
            await self._until_none("occurrences", take)

    async def _keys(self, lap: _Lap) -> None:
        await self._until_none("keys", partial(records.take_keys, now=lap.at))

    async def _trail(self, lap: _Lap) -> None:
        for namespace_id, cut in lap.ages(lambda keeping: keeping.audit_ms).items():
            place: Place | None = None
            while True:
                take = partial(records.take_trail, namespace_id=namespace_id, before=cut, after=place)
                trail = await self._write(take)
                self.figures.gone["audit"] += trail.gone
                place = trail.last
                if place is None:
                    break

    async def _closed(self, lap: _Lap) -> None:
        await self._until_none("closed", partial(records.take_closed, now=lap.at))
        for queue_id in await self._database.read(records.queue_ids):
            after: Id | None = ""
            while after is not None:
                take = partial(records.take_flows, queue_id=queue_id, after=after, now=lap.at)
                gone, after = await self._write(take)
                self.figures.gone["closed"] += gone

    # --- in bites ---

    async def _walk(
        self,
        kind: str,
        look: Callable[..., Found],
        take: Callable[..., int],
    ) -> None:
        """Look through a list from its start, and take what may go."""
        after: Id | None = ""
        while after is not None:
            found = await self._database.read(partial(look, after=after))
            after = found.last
            for start in range(0, len(found.ids), _BITE):
                gone = await self._write(partial(take, ids=found.ids[start : start + _BITE]))
                self.figures.gone[kind] += gone

    async def _until_none(self, kind: str, take: Callable[[Connection], int]) -> None:
        while gone := await self._write(take):
            self.figures.gone[kind] += gone

    async def _write(self, fn: Callable[[Connection], T]) -> T:
        """One bite, and a rest after it."""
        began = self._clock.monotonic_us()
        done = await self._database.write(fn, lane=_LANE)
        self.figures.bites += 1
        took_s = (self._clock.monotonic_us() - began) / 1_000_000
        await asyncio.sleep(min(_REST_MAX_S, _REST * took_s))
        return done


def _look(conn: Connection, *, at: int, default: Keeping) -> _Lap:
    return _Lap(at, told_until(conn, at), dict(keepings(conn, default)))


def count_purging(conn: Connection) -> int:
    """Workflows whose rows are going, counted up to a thousand."""
    marks = select(purges.c.id).limit(1_000).subquery()
    return int(conn.execute(select(func.count()).select_from(marks)).scalar_one())
