"""This node's sign of life, by which others see that it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, update

from orbit_sdk.values.ids import Id
from orbit_server.loops.loop import Loop, Report
from orbit_server.storage.database import Database
from orbit_server.storage.tables import nodes

NAME: Final = "nodes"
_FORGOTTEN_US: Final = 24 * 3_600_000_000
_LANE: Final = "nodes"


@dataclass(frozen=True, slots=True)
class Node:
    """How this process presents itself. `started_at` is database time."""

    id: Id
    started_at: int
    address: str


def heartbeat(database: Database, node: Node, interval_ms: int) -> Loop:
    """The loop. It says nothing about time, so it goes on while the clock is not trusted."""

    async def run_once(at: int) -> Report:
        await database.write(lambda conn: _sign(conn, node, at), lane=_LANE)
        return Report(seen=1)

    return Loop(NAME, run_once, interval_ms, heeds_clock=False)


async def sign_off(database: Database, node: Node) -> None:
    """The node leaves in good order."""
    await database.write(lambda conn: _remove(conn, node.id), lane=_LANE)


def _remove(conn: Connection, node_id: Id) -> None:
    conn.execute(delete(nodes).where(nodes.c.id == node_id))


def _sign(conn: Connection, node: Node, at: int) -> None:
    changed = conn.execute(update(nodes).where(nodes.c.id == node.id).values(seen_at=at))
    if changed.rowcount == 0:
        conn.execute(
            insert(nodes).values(id=node.id, started_at=node.started_at, seen_at=at, address=node.address)
        )
    conn.execute(delete(nodes).where(nodes.c.seen_at < at - _FORGOTTEN_US))
