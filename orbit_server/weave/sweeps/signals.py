"""Finding pending signals whose own time is over: one index that holds them by state and time."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage.database import Database
from orbit_server.storage.places import Place, beyond
from orbit_server.storage.tables import signals
from orbit_server.weave.signals.expiry import ExpirePending
from orbit_server.weave.state.running import Weave
from orbit_server.weave.sweeps.steps import SweepReport, send_each


def over_signals(conn: Connection, now: int, after: Place | None, limit: int) -> list[tuple[int, Id, Id]]:
    """(expires_at, signal, instance) of pending signals that are over, oldest first."""
    c = signals.c
    query = select(c.expires_at, c.id, c.instance_id).where(c.state == "PENDING", c.expires_at < now)
    if after is not None:
        query = query.where(beyond(c.expires_at, c.id, after))
    return [(row[0], row[1], row[2]) for row in conn.execute(query.order_by(c.expires_at, c.id).limit(limit))]


async def sweep_signals(
    database: Database,
    weave: Weave,
    new_seed: Callable[[], IdSeed],
    *,
    after: Place | None = None,
    limit: int = 200,
) -> SweepReport:
    """Expire the signals that are over, one command per instance."""
    now = await database.now()
    found = await database.read(lambda conn: over_signals(conn, now, after, limit))
    owners = dict.fromkeys(instance_id for _, _, instance_id in found)
    commands = [ExpirePending(instance_id, new_seed(), weave) for instance_id in owners]
    moved, failed = await send_each(database, weave, commands)
    last = (found[-1][0], found[-1][1]) if len(found) == limit else None
    return SweepReport(len(found), moved, len(failed), last)
