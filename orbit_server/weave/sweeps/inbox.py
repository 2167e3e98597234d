"""The ordinary path of the inbox: what was stored but not yet seen by its workflow is found from rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from orbit_sdk.errors import Code, OrbitError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place, beyond
from orbit_server.storage.tables import inbox
from orbit_server.weave.inbox.commands import BlockOnError, ConsumeReport
from orbit_server.weave.service import send, send_all
from orbit_server.weave.state.running import Weave

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pending:
    """An inbox row that waits."""

    id: Id
    instance_id: Id
    task_id: Id
    activation_id: Id
    created_at: int


@dataclass(frozen=True, slots=True)
class InboxReport:
    """What one pass did. `last` is where the next pass of the same sweep goes on; None at the end."""

    found: int
    applied: int
    failed: int
    last: Place | None


def pending(conn: Connection, after: Place | None, limit: int) -> list[Pending]:
    """The oldest rows that wait, after the given (created_at, id)."""
    query = select(
        inbox.c.id, inbox.c.instance_id, inbox.c.task_id, inbox.c.activation_id, inbox.c.created_at
    )
    query = query.where(inbox.c.state == "PENDING")
    if after is not None:
        query = query.where(beyond(inbox.c.created_at, inbox.c.id, after))
    query = query.order_by(inbox.c.created_at, inbox.c.id).limit(limit)
    return [Pending(*row) for row in conn.execute(query)]


async def sweep_inbox(
    database: Database,
    weave: Weave,
    new_seed: Callable[[], IdSeed],
    *,
    after: Place | None = None,
    limit: int = 200,
) -> InboxReport:
    """Consume one bite. A row that cannot be applied sends its step to review; it never stops the others."""
    rows = await database.read(lambda conn: pending(conn, after, limit))
    commands = [ConsumeReport(row.instance_id, row.task_id, row.id, new_seed(), weave) for row in rows]
    answers = await send_all(database, weave, commands, background=True)
    applied = failed = 0
    for row, answer in zip(rows, answers, strict=True):
        if not isinstance(answer, OrbitError):
            applied += 1
            continue
        if answer.code in (Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED):
            continue
        failed += 1
        log.error("inbox row %s of workflow %s cannot be applied", row.id, row.instance_id, exc_info=answer)
        await _block(database, weave, row, str(answer.__cause__ or answer), new_seed())
    last = (rows[-1].created_at, rows[-1].id) if len(rows) == limit else None
    return InboxReport(len(rows), applied, failed, last)


async def _block(database: Database, weave: Weave, row: Pending, message: str, seed: IdSeed) -> None:
    command = BlockOnError(
        row.instance_id, row.task_id, row.activation_id, row.id, message[:500], seed, weave
    )
    try:
        await send(database, weave, command, background=True)
    except OrbitError as error:
        log.warning("workflow %s cannot be sent to review: %s", row.instance_id, error)
