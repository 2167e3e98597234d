"""The sweeps of Pulse: what has become due, whose time is over, whose lease has ended.

Each finds its rows through one index, in bounded bites, paging past rows that it cannot act on, and sends one
command per row: a damaged row is counted and reported and never stops the others. Sweeps on several nodes are
harmless, the touched row decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.due import LeaseEnded, TaskDeadline, TaskDue
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage import tables
from orbit_server.storage.commands import Command
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place, beyond

log = logging.getLogger(__name__)

_T = tables.tasks.c


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One run: rows looked at, rows moved, rows that could not be decided (their ids, a bounded number of
    them).
    """

    seen: int = 0
    moved: int = 0
    failed: int = 0
    failed_ids: tuple[Id, ...] = ()
    more: bool = False
    """The run stopped at its bound: there is more to do at once."""


_FAILED_IDS_MAX = 20
_BITES_MAX = 50


async def sweep_due(database: Database, at: int, times: PulseTimes = TIMES) -> SweepReport:
    """Tasks whose `due_at` has come."""
    return await _sweep(database, _T.due_at, at, TaskDue, times.sweep_bite)


async def sweep_deadlines(database: Database, at: int, times: PulseTimes = TIMES) -> SweepReport:
    """Tasks whose latest start, total deadline or time to verify has passed."""
    return await _sweep(database, _T.deadline_at, at - 1, TaskDeadline, times.sweep_bite)


async def sweep_leases(database: Database, at: int, times: PulseTimes = TIMES) -> SweepReport:
    """Attempts whose lease ended longer ago than clocks may differ."""
    limit = at - times.lease_skew_ms * 1000 - 1
    return await _sweep(
        database, _T.lease_until, limit, lambda task_id: LeaseEnded(task_id, times), times.sweep_bite
    )


async def next_due(database: Database) -> int | None:
    """The earliest `due_at` of all, so that a loop may sleep until then."""
    return await database.read(
        lambda conn: conn.execute(
            select(_T.due_at).where(_T.due_at.is_not(None)).order_by(_T.due_at).limit(1)
        ).scalar()
    )


async def _sweep(
    database: Database, column: Column[Any], limit: int, command: Callable[[Id], Command[bool]], bite: int
) -> SweepReport:
    report = SweepReport()
    place: Place | None = None
    for _ in range(_BITES_MAX):
        rows = await database.read(partial(_bite, column=column, limit=limit, after=place, bite=bite))
        if not rows:
            return report
        place = rows[-1]
        ids = [row_id for _, row_id in rows]
        futures = [database.committer.post(command(row_id), background=True) for row_id in ids]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        report = _add(report, ids, answers)
        if len(rows) < bite:
            return report
    return SweepReport(report.seen, report.moved, report.failed, report.failed_ids, more=True)


def _bite(
    conn: Connection, *, column: Column[Any], limit: int, after: Place | None, bite: int
) -> list[Place]:
    query = select(column, _T.id).where(column <= limit)
    if after is not None:
        query = query.where(beyond(column, _T.id, after))
    return [(at, row_id) for at, row_id in conn.execute(query.order_by(column, _T.id).limit(bite))]


def _add(report: SweepReport, ids: list[Id], answers: list[Any]) -> SweepReport:
    failed: list[Id] = []
    moved = 0
    for row_id, answer in zip(ids, answers, strict=True):
        if isinstance(answer, asyncio.CancelledError):
            raise answer
        if isinstance(answer, BaseException):
            log.error("task %s cannot be swept: %s", row_id, answer)
            failed.append(row_id)
        elif answer.answer:
            moved += 1
    kept = (*report.failed_ids, *failed)[:_FAILED_IDS_MAX]
    return SweepReport(report.seen + len(ids), report.moved + moved, report.failed + len(failed), kept)
