"""What Weave asks often is answered through one index that serves condition and order alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event

from orbit_server.weave.instances import lists
from orbit_server.weave.sweeps import inbox, signals, steps
from orbit_server.weave.timeline import queries as timeline
from tests.documents import document, end, wait
from tests.storage.weave.paper import NAMESPACE, Paper

OWNER = "0" * 32
PLACE = (5, OWNER)


def members(conn: Connection, table: str, live: str) -> Any:
    """As the kinds of members read them."""
    owners = f"('{OWNER}', '{'1' * 32}')"
    return conn.exec_driver_sql(f"SELECT * FROM {table} WHERE instance_id IN {owners} AND {live}")


HOT: dict[str, tuple[str, Callable[[Connection], Any]]] = {
    "due steps": ("ix_steps_due", lambda conn: steps.due_steps(conn, 9, None, 5)),
    "due steps, the next bite": ("ix_steps_due", lambda conn: steps.due_steps(conn, 9, PLACE, 5)),
    "the next due step": ("ix_steps_due", lambda conn: steps.next_due_at(conn, 9)),
    "checkpoints": ("ix_instances_advance", lambda conn: steps.due_advances(conn, 9, None, 5)),
    "pending inbox rows": ("ix_inbox_state", lambda conn: inbox.pending(conn, None, 5)),
    "signals that are over": ("ix_signals_expires", lambda conn: signals.over_signals(conn, 9, None, 5)),
    "checkpoints, the next bite": (
        "ix_instances_advance",
        lambda conn: steps.due_advances(conn, 9, PLACE, 5),
    ),
    "inbox rows, the next bite": ("ix_inbox_state", lambda conn: inbox.pending(conn, PLACE, 5)),
    "signals, the next bite": ("ix_signals_expires", lambda conn: signals.over_signals(conn, 9, PLACE, 5)),
    "live steps": ("ix_steps_instance", lambda conn: members(conn, "steps", "live = 1")),
    "closed steps": ("ix_steps_instance", lambda conn: members(conn, "steps", "live = 0")),
    "pending signals": ("ix_signals_instance", lambda conn: members(conn, "signals", "state = 'PENDING'")),
    "the timeline": ("ix_events_workflow", lambda conn: timeline.page(conn, NAMESPACE, OWNER, PLACE, 5)),
    "instances, newest first": (
        "ix_instances_namespace",
        lambda conn: lists.page_instances(conn, NAMESPACE, lists.InstanceFilter(), OWNER, 5),
    ),
    "instances of a business key": (
        "ix_instances_business_key",
        lambda conn: lists.page_instances(
            conn, NAMESPACE, lists.InstanceFilter(business_key="job-1"), None, 5
        ),
    ),
}


def explained(conn: Connection, ask: Callable[[Connection], Any]) -> str:
    """The plans of every statement that a read sends."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(conn, "before_cursor_execute", note)
    ask(conn)
    event.remove(conn, "before_cursor_execute", note)
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    return " ".join(
        str(row) for statement, given in sent for row in conn.exec_driver_sql(f"{word} {statement}", given)
    )


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_read_uses_its_index_and_sorts_nothing(migrated_url: str, name: str) -> None:
    index, ask = HOT[name]
    async with Paper(migrated_url) as paper:
        await paper.publish(document({"ask": wait("done"), "done": end()}))
        for number in range(6):
            instance = await paper.start({}, business_key=f"job-{number}")
            await paper.signal(instance, match="other", expires_at=await paper.database.now() + 10**9)
        found = await paper.database.read(lambda conn: explained(conn, ask))
    assert index in found
    assert "TEMP B-TREE" not in found
    assert "filesort" not in found
