"""What a transaction reads of each kind of row is found by an index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, event

from orbit_server.bootstrap import KINDS, open_database
from orbit_server.bulk.queries import due as due_bulks
from orbit_server.bulk.queries import pending as pending_items
from orbit_server.pulse.in_use import by_handler
from orbit_server.pulse.keys.queries import due_keys
from orbit_server.pulse.sweeps import _bite as due_tasks
from orbit_server.schedules.sweeps import _due as due_schedules
from orbit_server.schedules.sweeps import _ended as ended_fires
from orbit_server.settings import Settings
from orbit_server.storage.faults import FAULTS
from orbit_server.storage.migrations import migrate
from orbit_server.storage.tables import tasks
from orbit_server.weave.definitions.drafts import drop_old
from orbit_server.weave.definitions.usage import _running as unfinished
from orbit_server.weave.signals.queries import page as signals_page
from orbit_server.weave.sweeps.inbox import pending
from orbit_server.weave.sweeps.signals import over_signals
from orbit_server.weave.sweeps.steps import due_advances, due_steps
from orbit_server.weave.timeline.queries import page as events_page

IDS = ["0" * 32, "1" * 32]
PLACE = (1_000_000, IDS[0])
LATER = 2_000_000
PAGES: dict[str, Callable[[Connection], object]] = {
    "due_at>? AND due_at<?": partial(due_tasks, column=tasks.c.due_at, limit=LATER, after=PLACE, bite=10),
    "deadline_at>? AND deadline_at<?": partial(
        due_tasks, column=tasks.c.deadline_at, limit=LATER, after=PLACE, bite=10
    ),
    "lease_until>? AND lease_until<?": partial(
        due_tasks, column=tasks.c.lease_until, limit=LATER, after=PLACE, bite=10
    ),
    "admit_at>? AND admit_at<?": partial(due_keys, at=LATER, after=PLACE),
    "ix_schedules_due (due_at>? AND due_at<?": partial(due_schedules, at=LATER, after=PLACE),
    "ix_schedule_inbox_state (state=? AND created_at>?": partial(ended_fires, after=PLACE),
    "ix_inbox_state (state=? AND created_at>?": partial(pending, after=PLACE, limit=10),
    "ix_steps_due (due_at>? AND due_at<?": partial(due_steps, now=LATER, after=PLACE, limit=10),
    "advance_due_at>? AND advance_due_at<?": partial(due_advances, now=LATER, after=PLACE, limit=10),
    "state=? AND expires_at>? AND expires_at<?": partial(over_signals, now=LATER, after=PLACE, limit=10),
    "workflow_id=? AND occurred_at<?": partial(
        events_page, namespace_id=IDS[0], instance_id=IDS[1], before=PLACE, limit=10
    ),
    "ix_instances_state (namespace_id=? AND state=?": partial(
        unfinished, namespace_id=IDS[0], definition_id=None
    ),
    "COVERING INDEX ix_tasks_ready (queue_id=? AND state=?": partial(by_handler, queue_ids=IDS),
    "ix_definition_drafts_namespace (namespace_id=? AND definition_id=?": partial(
        drop_old, namespace_id=IDS[0], definition_id="a"
    ),
    "ix_bulks_due (due_at<?": partial(due_bulks, at=LATER, limit=10),
    "ix_bulk_items_state (bulk_id=? AND state=?": partial(pending_items, bulk_id=IDS[0], limit=10),
    "instance_id=?": partial(signals_page, instance_id=IDS[0], state=None, before=PLACE, limit=10),
}
"""What the search of a later page must start from, by its read."""
OF_ROWS = [kind for kind in KINDS if hasattr(kind, "table")]


class Noted:
    """Notes every statement that is sent past Core."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def statement(self, sql: str) -> None:
        self.texts.append(sql)


def plans(conn: Connection, kind: Any) -> list[dict[str, Any]]:
    noted = Noted()
    conn.info[FAULTS] = noted
    try:
        kind.load(conn, IDS)
    finally:
        del conn.info[FAULTS]
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    return [
        dict(row)
        for text in noted.texts
        for row in conn.exec_driver_sql(f"{word} {text}", tuple(IDS)).mappings()
    ]


async def test_rows_of_a_group_are_found_by_an_index(database_url: str) -> None:
    migrate(database_url)
    async with open_database(Settings(database=database_url)) as database:
        for kind in OF_ROWS:
            found = await database.read(partial(plans, kind=kind))
            assert found
            assert all(map(uses_an_index, found)), (kind.name, found)


def uses_an_index(plan: dict[str, Any]) -> bool:
    if "detail" in plan:
        return "SEARCH" in plan["detail"] and "SCAN" not in plan["detail"]
    return plan["type"] in ("range", "ref", "eq_ref", "const") and plan["key"] is not None


def plan_of(conn: Connection, read: Callable[[Connection], object]) -> list[dict[str, Any]]:
    """How the first statement of a read is answered."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, text: str, values: Any, *_: Any) -> None:
        sent.append((text, values))

    event.listen(conn, "before_cursor_execute", note)
    try:
        read(conn)
    finally:
        event.remove(conn, "before_cursor_execute", note)
    text, values = sent[0]
    return [dict(row) for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values).mappings()]


@pytest.mark.parametrize("start", PAGES)
async def test_a_later_page_starts_where_the_one_before_ended(sqlite_url: str, start: str) -> None:
    migrate(sqlite_url)
    async with open_database(Settings(database=sqlite_url)) as database:
        found = await database.read(partial(plan_of, read=PAGES[start]))
        details = [row["detail"] for row in found]
        assert any(start in detail for detail in details), details
        assert not any("SCAN" in detail or "TEMP B-TREE" in detail for detail in details[:1]), details
