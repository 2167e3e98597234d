"""Rule 8: whatever is not finished, in review or paused waits for something that is stored and found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Table, select

from orbit_sdk.engine.invariants import check_state
from orbit_sdk.engine.state import State, Step
from orbit_sdk.values.ids import Id
from orbit_server.storage import tables
from orbit_server.verify.finding import Probe
from orbit_server.weave.state.rows import INSTANCES, STEPS, InstanceRow, to_instance, to_step

MOVING: Final = (
    Probe(
        "step",
        "waits for task {0}, which is {1} and has told everything it will",
        """
        SELECT s.id, t.id, t.state FROM steps s JOIN tasks t ON t.id = s.task_id
        WHERE s.live = 1 AND s.state = 'WAITING_TASK'
          AND t.state IN ('SUCCEEDED', 'FAILED', 'EXPIRED', 'CANCELLED', 'NEEDS_REVIEW')
          AND NOT EXISTS (
            SELECT 1 FROM inbox n
            WHERE n.instance_id = s.instance_id AND n.state = 'PENDING' AND n.task_id = t.id)
          AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = s.instance_id AND i.paused = 1)
        """,
    ),
    Probe(
        "inbox",
        "waits for workflow {0}, which does not exist",
        """
        SELECT n.id, n.instance_id FROM inbox n LEFT JOIN instances i ON i.id = n.instance_id
        WHERE n.state = 'PENDING' AND i.id IS NULL
        """,
    ),
    Probe(
        "task",
        "is {0} and has no instant at which it goes on",
        "SELECT id, state FROM tasks WHERE state IN ('SCHEDULED', 'RETRY_WAIT') AND due_at IS NULL",
    ),
    Probe(
        "task",
        "is {0} and has no lease that could end",
        """
        SELECT id, state FROM tasks
        WHERE (state IN ('OFFERED', 'RUNNING') OR attempt_id IS NOT NULL) AND lease_until IS NULL
        """,
    ),
    Probe(
        "task",
        "is {0} and has no open attempt",
        "SELECT id, state FROM tasks WHERE state IN ('OFFERED', 'RUNNING') AND attempt_id IS NULL",
    ),
    Probe(
        "task",
        "is {0}, blocked by {1}, and nothing is due",
        """
        SELECT id, state, blocked FROM tasks
        WHERE state IN ('READY', 'VERIFYING', 'CANCELLING') AND attempt_id IS NULL
          AND blocked NOT IN (0, 1, 2, 3) AND due_at IS NULL
        """,
    ),
    Probe(
        "task",
        "waits without a limit",
        """
        SELECT id FROM tasks WHERE state IN ('SCHEDULED', 'READY', 'RETRY_WAIT') AND deadline_at IS NULL
          AND (latest_start_at IS NOT NULL OR total_deadline_at IS NOT NULL)
        """,
    ),
)


def facts_and_summaries(conn: Connection) -> Iterator[tuple[str, str, str]]:
    """The engine's own judgement of every instance: its state follows from its steps, something moves it."""
    live: dict[str, dict[str, Step]] = defaultdict(dict)
    table = tables.steps
    for row in STEPS.rows(_rows(conn, table, STEPS.columns, table.c.live == 1)):
        live[row.instance_id][row.step_key] = to_step(row)
    i = tables.instances.c
    # Of what has ended only the odd ones: the rest is history, and may be long.
    odd = (i.checkpoint.is_not(None)) | (i.advance_due_at.is_not(None)) | (i.pending_signals != 0)
    odd |= i.id.in_(select(table.c.instance_id).where(table.c.live == 1))
    where = i.ended_at.is_(None) | odd
    for head in INSTANCES.rows(_rows(conn, tables.instances, INSTANCES.columns, where)):
        for message in check_state(State(to_instance(head), live[head.id])):
            yield "workflow", head.id, message


UNFINISHED: Final = ("RUNNING", "WAITING", "CANCELLING", "NEEDS_REVIEW")


def judged_page(
    conn: Connection, state: str, after: Id, limit: int
) -> tuple[list[Id], list[tuple[str, str, str]]]:
    """The engine's judgement of a page of workflows in an unfinished state, of all namespaces, by id.

    Answers the ids that were judged, and what is wrong with them.
    """
    i = tables.instances.c
    heads: list[InstanceRow] = []
    for (namespace_id,) in conn.execute(select(tables.namespaces.c.id)).all():
        query = (
            select(*(i[name] for name in INSTANCES.columns))
            .where(i.namespace_id == namespace_id, i.state == state, i.id > after)
            .order_by(i.id)
            .limit(limit)
        )
        heads += INSTANCES.rows([tuple(row) for row in conn.execute(query)])
    heads = sorted(heads, key=lambda head: head.id)[:limit]
    live: dict[str, dict[str, Step]] = defaultdict(dict)
    for rows in STEPS.load(conn, [head.id for head in heads]).values():
        for row in rows:
            live[row.instance_id][row.step_key] = to_step(row)
    found = [
        ("workflow", head.id, message)
        for head in heads
        for message in check_state(State(to_instance(head), live[head.id]))
    ]
    return [head.id for head in heads], found


def _rows(
    conn: Connection, table: Table, columns: tuple[str, ...], where: ColumnElement[bool]
) -> list[tuple[Any, ...]]:
    query = select(*(table.c[name] for name in columns)).where(where)
    return [tuple(row) for row in conn.execute(query)]
