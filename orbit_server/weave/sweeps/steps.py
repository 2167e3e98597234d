"""Finding what time or a stored checkpoint moves: bounded bites over one index each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.errors import Code, OrbitError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage.commands import Command
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place, beyond
from orbit_server.storage.tables import instances, steps
from orbit_server.weave.instances.time import BlockStep, ContinueAdvance, StepDue
from orbit_server.weave.service import send_all
from orbit_server.weave.state.running import Weave

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one pass did. `last` is where the next pass of the same sweep goes on; `next_due_at` is the
    earliest instant that is still to come (of steps).
    """

    found: int
    moved: int
    failed: int
    last: Place | None
    next_due_at: int | None = None


def due_steps(conn: Connection, now: int, after: Place | None, limit: int) -> list[tuple[int, Id, Id]]:
    """(due_at, activation, instance) of steps that are due, oldest first."""
    query = select(steps.c.due_at, steps.c.id, steps.c.instance_id).where(steps.c.due_at <= now)
    if after is not None:
        query = query.where(beyond(steps.c.due_at, steps.c.id, after))
    return [
        (row[0], row[1], row[2])
        for row in conn.execute(query.order_by(steps.c.due_at, steps.c.id).limit(limit))
    ]


def next_due_at(conn: Connection, now: int) -> int | None:
    """The earliest instant after `now` for which a step waits."""
    query = select(steps.c.due_at).where(steps.c.due_at > now).order_by(steps.c.due_at, steps.c.id).limit(1)
    found = conn.execute(query).first()
    return None if found is None else found[0]


def due_advances(conn: Connection, now: int, after: Place | None, limit: int) -> list[tuple[int, Id]]:
    """(advance_due_at, instance) of checkpoints that are due, oldest first."""
    at_column = instances.c.advance_due_at
    query = select(at_column, instances.c.id).where(at_column <= now)
    if after is not None:
        query = query.where(beyond(at_column, instances.c.id, after))
    return [(row[0], row[1]) for row in conn.execute(query.order_by(at_column, instances.c.id).limit(limit))]


async def sweep_due_steps(
    database: Database,
    weave: Weave,
    new_seed: Callable[[], IdSeed],
    *,
    after: Place | None = None,
    limit: int = 200,
) -> SweepReport:
    """Move the steps whose time has come. One that cannot be moved goes to review."""
    now = await database.now()
    found = await database.read(lambda conn: due_steps(conn, now, after, limit))
    commands = [StepDue(instance_id, step_id, new_seed(), weave) for _, step_id, instance_id in found]
    moved, failed = await send_each(database, weave, commands)
    await _block(database, weave, new_seed, failed)
    if len(found) == limit:
        return SweepReport(len(found), moved, len(failed), (found[-1][0], found[-1][1]), now)
    upcoming = await database.read(lambda conn: next_due_at(conn, now))
    return SweepReport(len(found), moved, len(failed), None, upcoming)


async def sweep_advances(
    database: Database,
    weave: Weave,
    new_seed: Callable[[], IdSeed],
    *,
    after: Place | None = None,
    limit: int = 200,
) -> SweepReport:
    """Continue the checkpoints that wait. One that cannot be continued sends its targets to review."""
    now = await database.now()
    found = await database.read(lambda conn: due_advances(conn, now, after, limit))
    commands = [ContinueAdvance(instance_id, new_seed(), weave) for _, instance_id in found]
    moved, failed = await send_each(database, weave, commands)
    await _block(database, weave, new_seed, failed)
    return SweepReport(len(found), moved, len(failed), found[-1] if len(found) == limit else None)


async def send_each(
    database: Database, weave: Weave, commands: Sequence[Command[Any]]
) -> tuple[int, list[tuple[Command[Any], OrbitError]]]:
    """How many moved, and which failed. One bad row never stops the others: it is logged and passed by."""
    moved = 0
    failed: list[tuple[Command[Any], OrbitError]] = []
    for command, answer in zip(
        commands, await send_all(database, weave, commands, background=True), strict=True
    ):
        if isinstance(answer, OrbitError):
            failed.append((command, answer))
            log.warning("%s of workflow %s: %s", type(command).__name__, command.lane, answer)
        elif answer.answer:
            moved += 1
    return moved, failed


async def _block(
    database: Database,
    weave: Weave,
    new_seed: Callable[[], IdSeed],
    failed: Sequence[tuple[Command[Any], OrbitError]],
) -> None:
    """What can never be applied goes to a person; what only the database kept back is met again."""
    blocks = [
        BlockStep(
            command.lane,
            command.activation_id if isinstance(command, StepDue) else None,
            str(error.__cause__ or error)[:500],
            new_seed(),
            weave,
        )
        for command, error in failed
        if error.code not in (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED)
    ]
    await send_each(database, weave, blocks)
