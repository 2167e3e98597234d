"""Finding schedules that are due and occurrences that have ended: one index each, in bounded bites.

What a sweep costs depends on what is due, never on how many schedules there are. Sweeps of several nodes are
harmless: the touched schedule decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.schedules.running import RunSchedule, SettleFire
from orbit_server.schedules.targets import Means
from orbit_server.storage.commands import Command
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place, beyond
from orbit_server.storage.tables import schedule_inbox, schedules
from orbit_server.weave.service import send_all

__all__ = ["SweepReport", "sweep_ended", "sweep_schedules"]

log = logging.getLogger(__name__)

_BITE = 100
_BITES_MAX = 20


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did. `more`: it stopped at its bound. `next_at`: when the next schedule is due."""

    seen: int = 0
    moved: int = 0
    failed: int = 0
    more: bool = False
    next_at: int | None = None


async def sweep_schedules(
    database: Database, means: Means, new_seed: Callable[[], IdSeed], at: int
) -> SweepReport:
    """Run every schedule that is due, page by page past those that cannot run."""
    seen = moved = failed = 0
    place: Place | None = None
    for _ in range(_BITES_MAX):
        found = await database.read(partial(_due, at=at, after=place))
        commands = [RunSchedule(schedule_id, new_seed(), means) for _, schedule_id in found]
        went, missed = await _send(database, means, commands)
        seen, moved, failed = seen + len(found), moved + went, failed + missed
        if len(found) < _BITE:
            upcoming = await database.read(lambda conn: _next(conn, at))
            return SweepReport(seen, moved, failed, next_at=upcoming)
        place = found[-1]
    return SweepReport(seen, moved, failed, more=True)


async def sweep_ended(database: Database, means: Means, new_seed: Callable[[], IdSeed]) -> SweepReport:
    """Settle the occurrences whose targets have ended."""
    seen = moved = failed = 0
    place: Place | None = None
    for _ in range(_BITES_MAX):
        found = await database.read(partial(_ended, after=place))
        commands = [SettleFire(row[2], row[3], row[1], new_seed(), means) for row in found]
        went, missed = await _send(database, means, commands)
        seen, moved, failed = seen + len(found), moved + went, failed + missed
        if len(found) < _BITE:
            return SweepReport(seen, moved, failed)
        place = (found[-1][0], found[-1][1])
    return SweepReport(seen, moved, failed, more=True)


def _due(conn: Connection, at: int, after: Place | None) -> list[Place]:
    table = schedules.c
    query = select(table.due_at, table.id).where(table.due_at <= at)
    if after is not None:
        query = query.where(beyond(table.due_at, table.id, after))
    return [(row[0], row[1]) for row in conn.execute(query.order_by(table.due_at, table.id).limit(_BITE))]


def _next(conn: Connection, at: int) -> int | None:
    query = select(schedules.c.due_at).where(schedules.c.due_at > at).order_by(schedules.c.due_at).limit(1)
    return conn.execute(query).scalar()


def _ended(conn: Connection, after: Place | None) -> list[tuple[int, Id, Id, Id]]:
    table = schedule_inbox.c
    query = select(table.created_at, table.id, table.schedule_id, table.fire_id).where(
        table.state == "PENDING"
    )
    if after is not None:
        query = query.where(beyond(table.created_at, table.id, after))
    rows = conn.execute(query.order_by(table.created_at, table.id).limit(_BITE))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def _send(database: Database, means: Means, commands: Sequence[Command[Any]]) -> tuple[int, int]:
    """How many moved and how many failed; one bad row never stops the others."""
    moved = failed = 0
    answers = await send_all(database, means.weave, commands, background=True)
    for command, answer in zip(commands, answers, strict=True):
        if isinstance(answer, OrbitError):
            failed += 1
            log.warning("%s of schedule %s: %s", type(command).__name__, command.lane, answer)
        elif answer.answer:
            moved += 1
    return moved, failed
