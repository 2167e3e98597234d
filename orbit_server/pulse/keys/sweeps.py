"""The sweep of keys: those with room and waiters, and those whose admissions nobody claims."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from sqlalchemy import Connection, select

from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.keys.queries import due_keys
from orbit_server.pulse.sweeps import SweepReport
from orbit_server.storage import tables
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place

log = logging.getLogger(__name__)

_BITE = 100
_BITES_MAX = 20


async def sweep_keys(database: Database, at: int, lines: KeyLines | None = None) -> SweepReport:
    """Look at every key that is due; `moved` counts the tasks that were admitted. `lines` learns who is
    next.
    """
    seen = moved = failed = 0
    place: Place | None = None
    for _ in range(_BITES_MAX):
        found = await database.read(partial(due_keys, at=at, after=place, limit=_BITE))
        if not found:
            break
        place = found[-1][0]
        futures = [database.committer.post(command, background=True) for _, command in found]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for (_, command), answer in zip(found, answers, strict=True):
            if isinstance(answer, asyncio.CancelledError):
                raise answer
            if isinstance(answer, BaseException):
                log.error("a concurrency key cannot be looked at: %s", answer)
                failed += 1
            else:
                moved += answer.answer
                if lines is not None:
                    lines.read(command.key_id, command.waiters[answer.answer :])
        seen += len(found)
        if len(found) < _BITE:
            break
    return SweepReport(seen, moved, failed, more=moved > 0)


async def next_key(database: Database) -> int | None:
    """The earliest instant at which a key has to be looked at."""
    return await database.read(_next)


def _next(conn: Connection) -> int | None:
    at = tables.concurrency_keys.c.admit_at
    return conn.execute(select(at).where(at.is_not(None)).order_by(at).limit(1)).scalar()
