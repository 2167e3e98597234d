"""Lists and counts: every filter finds what it names, no row comes twice, and no request reads it all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event, make_url

from orbit_sdk.values.ids import IdSeed
from orbit_server.pulse.tasks import lists as task_lists
from orbit_server.pulse.tasks.lists import TaskFilter, count_tasks, page_tasks
from orbit_server.storage import lists
from orbit_server.weave.instances.lists import InstanceFilter, count_instances, page_instances
from tests.databases import MariaDb
from tests.documents import document, end, wait
from tests.storage.weave.paper import NAMESPACE, Paper

STATES = ("RUNNING", "RETRY_WAIT", "NEEDS_REVIEW", "SUCCEEDED", "FAILED")
ANY = InstanceFilter()


async def start(paper: Paper, number: int) -> str:
    return await paper.start(
        {},
        definition_id="test.flow",
        business_key=f"job-{number % 4}",
        labels='{"region":"eu","tier":"a,b"}' if number % 2 else '{"region":"us"}',
    )


@pytest.fixture
async def paper(migrated_url: str) -> AsyncIterator[Paper]:
    """Twelve workflows, each waiting for a signal; some of them changed by hand."""
    async with Paper(migrated_url) as built:
        await built.publish(document({"ask": wait("done"), "done": end()}))
        ids = [await start(built, number) for number in range(12)]
        await built.set("UPDATE instances SET paused = 1 WHERE id = :id", id=ids[3])
        await built.set("UPDATE instances SET state = 'FAILED' WHERE id = :id", id=ids[5])
        await built.set("UPDATE steps SET reason = 'LATE' WHERE instance_id = :id", id=ids[7])
        await built.set(
            "INSERT INTO instance_outputs (instance_id, output, error) VALUES (:id, NULL, :error)",
            id=ids[5],
            error='{"code":"NO_FUNDS","message":"none"}',
        )
        yield built


async def found(paper: Paper, wanted: InstanceFilter, limit: int = 50) -> list[int]:
    """Which of the twelve, oldest first, page by page."""
    ids = [row[0] for row in await paper.rows("SELECT id FROM instances ORDER BY id")]
    rows: list[str] = []
    before = None
    while True:
        page = await paper.database.read(
            lambda conn, before=before: page_instances(conn, NAMESPACE, wanted, before, limit)
        )
        rows += [row.id for row in page.rows]
        before = page.reached or (page.rows[-1].id if len(page.rows) == limit else None)
        if before is None:
            assert rows == sorted(set(rows), reverse=True)
            return sorted(ids.index(row) for row in rows)


FILTERS: dict[str, tuple[InstanceFilter, list[int]]] = {
    "nothing": (InstanceFilter(), list(range(12))),
    "business key": (InstanceFilter(business_key="job-1"), [1, 5, 9]),
    "state": (InstanceFilter(state="FAILED"), [5]),
    "paused": (InstanceFilter(paused=True), [3]),
    "not paused, of a key": (InstanceFilter(paused=False, business_key="job-3"), [7, 11]),
    "another definition": (InstanceFilter(definition_id="test.other"), []),
    "definition and version": (
        InstanceFilter(definition_id="test.flow", definition_version=1, state="FAILED"),
        [5],
    ),
    "step": (InstanceFilter(step="ask"), list(range(12))),
    "step and reason": (InstanceFilter(step="ask", reason="LATE"), [7]),
    "another step": (InstanceFilter(step="done"), []),
    "error code": (InstanceFilter(error_code="NO_FUNDS"), [5]),
    "the beginning of an error code": (InstanceFilter(error_code="NO"), []),
    "label": (InstanceFilter(labels={"region": "us"}), [0, 2, 4, 6, 8, 10]),
    "two labels": (InstanceFilter(labels={"region": "eu", "tier": "a,b"}), [1, 3, 5, 7, 9, 11]),
    "a label in another case": (InstanceFilter(labels={"region": "US"}), []),
    "long ago": (InstanceFilter(started_to=1_000_000), []),
    "since long ago": (InstanceFilter(started_from=1_000_000), list(range(12))),
}


@pytest.mark.parametrize("limit", [50, 2])
async def test_each_filter_finds_what_it_names_however_pages_are_cut(
    paper: Paper, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (wanted, expected) in FILTERS.items():
        assert await found(paper, wanted, limit) == expected, name
    monkeypatch.setattr(lists, "LOOKS", (2, 3))
    for name, (wanted, expected) in FILTERS.items():
        assert await found(paper, wanted, limit) == expected, f"{name}, looking at five rows at a time"


async def test_counts_tell_each_group_and_whether_that_was_all(
    paper: Paper, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count(group_by: str | None, wanted: InstanceFilter = ANY) -> lists.Tally:
        return await paper.database.read(lambda conn: count_instances(conn, NAMESPACE, wanted, group_by))

    assert await count(None) == lists.Tally(12, [], True, False)
    assert (await count("state")).groups == [("WAITING", 11), ("FAILED", 1)]
    assert (await count("paused")).groups == [("false", 11), ("true", 1)]
    assert (await count("definition")).groups == [("test.flow@1", 12)]
    assert (await count("step")).groups == [("ask", 12)]
    assert ("LATE", 1) in (await count("reason")).groups
    assert (await count("error_code")).groups == [("NO_FUNDS", 1)]
    assert (await count("label:region")).groups == [("eu", 6), ("us", 6)]
    assert (await count("label:tier")).groups == [(None, 6), ("a,b", 6)]
    assert (await count("state", InstanceFilter(business_key="job-1"))).groups == [
        ("WAITING", 2),
        ("FAILED", 1),
    ]
    monkeypatch.setattr(lists, "COUNTED", 5)
    monkeypatch.setattr(lists, "GROUPS", 1)
    few = await count("state")
    assert (few.total, few.complete, few.more) == (6, False, True)


async def tasks_of(paper: Paper) -> None:
    """Ten tasks in two queues."""
    seed = IdSeed(1_700_000_000_000_000, "tasks")
    for number in range(10):
        queue = f"queue-{number % 2}"
        await paper.set(
            """INSERT INTO tasks (id, namespace_id, queue_id, queue, handler, handler_version, state, blocked,
            gate, priority, virtual_start, attempt_timeout_ms, attempts_used, attempts_max, uncharged,
            generation, recovery, can_verify, cancel_requested, effect_possible, late_success, detached,
            round, counted, revision, created_at, lock_seq, last, error_code)
            VALUES (:id, :ns, :queue_id, :queue, 'work', 1, :state, 0, 0, 5, 0, 1, 0, 1, 0, 0, 'READ_ONLY', 0,
            0, 0, 0, 0, 0, 0, 1, 1700000000000000, 0, 0, :code)""",
            id=seed.nth(number),
            ns=NAMESPACE,
            queue_id=task_lists.queue_id_of(NAMESPACE, queue),
            queue=queue,
            state=STATES[number % 5],
            code="BOOM" if number == 4 else None,
        )
        await paper.set(
            """INSERT INTO task_specs (task_id, parameters, digest, effect_key, labels, parameters_version)
            VALUES (:id, '{}', '0', '0', :labels, 1)""",
            id=seed.nth(number),
            labels=f'{{"n":"{number}"}}',
        )


async def test_tasks_are_found_by_state_in_every_queue_and_counted_in_groups(
    migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Paper(migrated_url) as paper:
        await tasks_of(paper)

        async def page(wanted: TaskFilter, **more: Any) -> list[int]:
            got = await paper.database.read(lambda conn: page_tasks(conn, NAMESPACE, wanted, **more))
            return [int(row.id[12:16], 16) & 0xFFF for row in got.rows]

        async def count(wanted: TaskFilter, group_by: str | None) -> lists.Tally:
            return await paper.database.read(lambda conn: count_tasks(conn, NAMESPACE, wanted, group_by))

        for _ in range(2):  # through the index of each queue, then, where that holds too much, in order
            assert await page(TaskFilter(states=("RUNNING",))) == [5, 0]
            assert await page(TaskFilter(states=("RUNNING", "FAILED"), queue="queue-1")) == [9, 5]
            assert await page(TaskFilter(states=("FAILED",), error_code="BOOM")) == [4]
            assert await page(TaskFilter(states=("FAILED",)), limit=1) == [9]
            assert await page(TaskFilter(labels={"n": "7"})) == [7]
            monkeypatch.setattr(lists, "COUNTED", 1)
        monkeypatch.undo()
        assert (await count(TaskFilter(), "state")).groups == [(state, 2) for state in sorted(STATES)]
        assert (await count(TaskFilter(states=("FAILED",)), "queue")).groups == [
            ("queue-0", 1),
            ("queue-1", 1),
        ]
        assert (await count(TaskFilter(queue="queue-1"), "handler")).groups == [("work@1", 5)]
        assert (await count(TaskFilter(), "label:n")).total == 10
        assert (await count(TaskFilter(), "definition")).groups == []


@pytest.mark.parametrize("joins", [True, False])
async def test_what_changes_between_two_looks_is_shown_once_and_hides_nothing_else(
    migrated_mariadb_url: str, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch, joins: bool
) -> None:
    """The newest row joins or leaves the list after the first statement: the end of that look stays put."""
    monkeypatch.setattr(lists, "LOOKS", (4, 50))
    table = f"{make_url(migrated_mariadb_url).database}.instances"
    async with Paper(migrated_mariadb_url) as built:
        await built.publish(document({"ask": wait("done"), "done": end()}))
        ids = sorted([await start(built, number) for number in range(8)])
        await built.set("UPDATE instances SET state = 'FAILED'")
        if joins:
            await built.set("UPDATE instances SET state = 'WAITING' WHERE id = :id", id=ids[-1])
        sent = 0

        def between(*_: Any) -> None:
            nonlocal sent
            sent += 1
            if sent == 2:
                to = "FAILED" if joins else "WAITING"
                mariadb.execute(f"UPDATE {table} SET state = %s WHERE id = %s", to, ids[-1])

        def read(conn: Connection) -> list[str]:
            event.listen(conn, "before_cursor_execute", between)
            wanted = InstanceFilter(state="FAILED", paused=False)
            return [row.id for row in page_instances(conn, NAMESPACE, wanted, None, 50).rows]

        rows = [row for row in await built.database.read(read) if row != ids[-1]]
    assert rows == ids[-2::-1]


# --- bounded cost ------------------------------------------------------------------------------------------

ID = "0" * 32


def instance_page(conn: Connection, **wanted: Any) -> Any:
    return page_instances(conn, ID, InstanceFilter(**wanted), ID, 5)


def task_page(conn: Connection, **wanted: Any) -> Any:
    return page_tasks(conn, ID, TaskFilter(**wanted), before=ID, limit=5)


ASKED: dict[str, tuple[str, Callable[[Connection], Any]]] = {
    "workflows": ("ix_instances_namespace", instance_page),
    "workflows by state": ("ix_instances_state", lambda conn: instance_page(conn, state="FAILED")),
    "workflows by key": ("ix_instances_business_key", lambda conn: instance_page(conn, business_key="a")),
    "workflows by definition": (
        "ix_instances_definition",
        lambda conn: instance_page(conn, definition_id="a"),
    ),
    "workflows by step": ("ix_steps_instance", lambda conn: instance_page(conn, step="a", reason="b")),
    "workflows by schedule": (
        "ix_schedule_fires_target",
        lambda conn: instance_page(conn, schedule_id=ID),
    ),
    "workflows by time": (
        "ix_instances_namespace",
        lambda conn: instance_page(conn, started_from=10**15, started_to=10**15 + 1),
    ),
    "count of workflows": (
        "ix_instances_state",
        lambda conn: count_instances(conn, ID, InstanceFilter(), "state"),
    ),
    "tasks": ("ix_tasks_namespace", task_page),
    "tasks by state": ("ix_tasks_ready", lambda conn: task_page(conn, states=("FAILED",), queue="a")),
    "tasks by key": ("ix_tasks_business_key", lambda conn: task_page(conn, business_key="a", states=("X",))),
    "tasks of a workflow": ("ix_tasks_instance", lambda conn: task_page(conn, instance_id=ID)),
    "tasks by handler": ("ix_tasks_namespace", lambda conn: task_page(conn, handler="a")),
}


def plans(conn: Connection, ask: Callable[[Connection], Any]) -> list[dict[str, Any]]:
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(conn, "before_cursor_execute", note)
    ask(conn)
    event.remove(conn, "before_cursor_execute", note)
    word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
    return [
        dict(row)
        for statement, given in sent
        for row in conn.exec_driver_sql(f"{word} {statement}", given).mappings()
    ]


@pytest.mark.parametrize("name", ASKED)
async def test_a_list_follows_an_index_and_reads_a_bounded_part_of_it(
    migrated_sqlite_url: str, name: str
) -> None:
    index, ask = ASKED[name]
    async with Paper(migrated_sqlite_url) as paper:
        told = [row["detail"] for row in await paper.database.read(lambda conn: plans(conn, ask))]
    assert any(index in line for line in told), told
    allowed = ("SCAN anon", "SCAN CONSTANT ROW", "SCAN (")
    scans = [line for line in told if line.startswith("SCAN") and not line.startswith(allowed)]
    assert scans == [], "only what was bounded before is looked through"
