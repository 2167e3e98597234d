"""Taking rows away by their ids, and what stays behind of them: the keys of the requests that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Column, Connection, delete, select, update

from orbit_sdk.values.ids import Id
from orbit_server.storage.row_sql import IN_MAX
from orbit_server.storage.tables import (
    attempts,
    evidence,
    idempotency,
    task_progress,
    task_results,
    task_specs,
    tasks,
)

KEY_US: Final = 7 * 86_400_000_000
"""So long a key still gives the answer of what is gone."""


def in_parts(ids: Sequence[Id]) -> list[Sequence[Id]]:
    """Ids in pieces that fit one statement."""
    return [ids[start : start + IN_MAX] for start in range(0, len(ids), IN_MAX)]


def remove(conn: Connection, column: Column[str], ids: Sequence[Id]) -> int:
    """Delete the rows whose column holds one of the ids."""
    table = column.table
    return sum(conn.execute(delete(table).where(column.in_(part))).rowcount for part in in_parts(ids))


def end_keys(conn: Connection, subjects: Sequence[Id], now: int) -> None:
    """Requests about these things get their answers a while longer, then only that they were made before."""
    c = idempotency.c
    for part in in_parts(subjects):
        conn.execute(
            update(idempotency)
            .where(c.subject_id.in_(part), c.expires_at.is_(None))
            .values(expires_at=now + KEY_US)
        )


def remove_tasks(conn: Connection, ids: Sequence[Id], now: int) -> int:
    """Delete settled tasks, whose rows this transaction holds, with all that belongs to them; counts rows."""
    end_keys(conn, ids, now)
    orphans = _asked_about(conn, ids)
    owners = (task_results.c.task_id, task_specs.c.task_id, task_progress.c.task_id)
    members = (attempts.c.task_id, evidence.c.task_id)
    gone = sum(remove(conn, column, ids) for column in (*owners, *members, tasks.c.id))
    return gone + remove(conn, evidence.c.task_id, orphans)


def _asked_about(conn: Connection, ids: Sequence[Id]) -> list[Id]:
    """What probes among these tasks asked about and what is gone: a probe that ended later left its word."""
    t = tasks.c
    asked: set[Id] = set()
    for part in in_parts(ids):
        query = select(t.probe_of).where(t.id.in_(part), t.probe_of.is_not(None))
        asked.update(conn.execute(query).scalars())
    there: set[Id] = set()
    for part in in_parts(sorted(asked)):
        there.update(conn.execute(select(t.id).where(t.id.in_(part))).scalars())
    return sorted(asked - there)
