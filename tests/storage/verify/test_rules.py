"""Every rule over a real database: a healthy one breaks none, a planted violation is found by its rule."""

# ruff: noqa: E501  # a planted statement is one line

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from orbit_server.pulse.tasks.commands import By, CancelTask, SubmitTask
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.operations import NewTask
from orbit_server.pulse.tasks.reports import Told
from orbit_server.storage.tables import metadata
from orbit_server.verify import RULES, snapshot, violations
from orbit_server.weave.control.commands import Action
from tests.databases import sqlite_url
from tests.documents import document, end, poll, task, wait
from tests.server import until
from tests.storage.weave.paper import NAMESPACE, Paper

OTHER = "f" * 32


@dataclass
class Scene:
    """A database in which a little of everything goes on, and the ids of it."""

    url: str
    ids: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def planted(self, statements: tuple[str, ...]) -> Iterator[Connection]:
        """The database with these changes, which are gone afterwards."""
        address = self.url.replace("mysql://", "mysql+pymysql://")
        engine = create_engine(address)
        try:
            with engine.connect() as conn, conn.begin() as transaction:
                for statement in statements:
                    found = conn.execute(text(statement), self.ids)
                    assert found.rowcount > 0, f"nothing was planted by {statement}"
                yield conn
                transaction.rollback()
        finally:
            engine.dispose()


def plays() -> dict[str, Any]:
    told: list[int] = []

    def risky(_: Any) -> Told:
        told.append(1)
        return Told(Said.EXCEPTION, code="BOOM") if len(told) == 1 else Told(Said.SUCCEEDED, result=7)

    return {
        "safe": lambda _: Told(Said.SUCCEEDED, result=1),
        "risky": risky,
        "status": lambda _: Told(Said.SUCCEEDED, result={"state": "pending"}),
    }


def flow(name: str, nodes: dict[str, Any]) -> dict[str, Any]:
    return document({**nodes, "done": end()}, id=f"test.{name}")


async def play(scene: Scene) -> None:
    ids = scene.ids
    async with Paper(scene.url, plays()) as paper:
        worker = paper.worker()
        await paper.publish(flow("signal", {"first": task("ask", "safe"), "ask": wait("done")}))
        await paper.publish(flow("again", {"pay": task("done", "risky")}))
        await paper.publish(flow("poll", {"ask": poll("done")}))
        await paper.publish(flow("nobody", {"look": task("done", "read")}))
        ids["ended"] = await paper.start({}, definition_id="test.signal")
        await paper.until(ids["ended"], "WAITING")
        ids["signal"] = (await paper.signal(ids["ended"], "approval", "m", 1))["id"]
        await paper.until(ids["ended"], "SUCCEEDED")
        ids["again"] = await paper.start({}, definition_id="test.again")
        await paper.until(ids["again"], "NEEDS_REVIEW")
        step = (await paper.steps(ids["again"]))["pay"]
        await paper.conclude(ids["again"], "pay", step.revision, "RERUN")
        await paper.until(ids["again"], "SUCCEEDED")
        ids["waiting"] = await paper.start({}, definition_id="test.signal")
        await paper.until(ids["waiting"], "WAITING")
        ids["pending"] = (await paper.signal(ids["waiting"], "approval", "another", 1))["id"]
        ids["polling"] = await paper.start({}, definition_id="test.poll")
        await paper.until(ids["polling"], "WAITING")
        worker.holding = True
        ids["running"] = await paper.start({}, definition_id="test.signal")
        await until(lambda: worker.held)
        ids["paused"] = await paper.start({}, definition_id="test.nobody")
        await paper.control(ids["paused"], Action.PAUSE)
        for name in ("later", "dropped"):
            new = NewTask(
                name[0] * 32, NAMESPACE, "jobs", "safe", 1, "{}", "0" * 64, name, recovery=Recovery.IDEMPOTENT
            )
            ids[name] = new.id
            await paper.database.committer.submit(SubmitTask(None, new, delay_ms=3_600_000))
        by = By("operator", "a test", paper.seed())
        await paper.database.committer.submit(CancelTask(None, NAMESPACE, ids["dropped"], by))
    with snapshot(scene.url) as conn:
        for name in ("ended", "again", "waiting", "polling", "running", "paused"):
            for key, step_id, task_id in conn.execute(
                text(
                    "SELECT step_key, id, task_id FROM steps WHERE instance_id = :id ORDER BY activation_no"
                ),
                {"id": ids[name]},
            ):
                ids[f"{name}_{key}"], ids[f"{name}_{key}_task"] = step_id, task_id
        for name in ("ended_first", "again_pay", "running_first"):
            query = text("SELECT id FROM attempts WHERE task_id = :id")
            ids[f"{name}_attempt"] = conn.execute(query, {"id": ids[f"{name}_task"]}).scalar_one()
        first = text("SELECT id, task_id FROM steps WHERE step_key = 'pay' AND activation_no = 1")
        ids["again_old"], ids["again_old_task"] = conn.execute(first).one()
    ids["other"], ids["long_ago"], ids["never"] = OTHER, 1, 4_000_000_000_000_000


@pytest.fixture(scope="module", params=["sqlite", "mariadb"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if request.param == "sqlite":
        built = Scene(sqlite_url(Path(tmp_path_factory.mktemp("scene"))))
        asyncio.run(play(built))
        yield built
        return
    server = request.getfixturevalue("mariadb")
    built = Scene(server.create_database())
    asyncio.run(play(built))
    yield built
    server.drop_database(built.url)


def copied(table: str, where: str, **changed: str) -> str:
    """Insert a copy of a row with other values in some columns."""
    columns = [column.name for column in metadata.tables[table].columns]
    names = ", ".join(f"`{name}`" for name in columns)
    values = ", ".join(changed.get(name, f"`{name}`") for name in columns)
    return f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE {where}"


def limit(running_max: str = "NULL", running: int = 0, backlog: int = 0) -> str:
    return (
        "INSERT INTO limits (id, namespace_id, queue, running_max, running, backlog, rate_per_ms, burst, level,"
        f" level_at, changed_at, revision, last) VALUES (:other, :other, 'jobs', {running_max}, {running},"
        f" {backlog}, 0, 0, 0, 0, 0, 1, 0)"
    )


def line(held: int = 0, waiting: int = 0, admit_at: str = "NULL") -> str:
    return (
        "INSERT INTO concurrency_keys (id, namespace_id, queue_id, class_id, name, held, waiting, admit_at, last)"
        f" VALUES (:other, :other, :other, :other, 'k', {held}, {waiting}, {admit_at}, 0)"
    )


PERMIT = "UPDATE attempts SET permits = :other WHERE id = :running_first_attempt"
KEYED = "UPDATE tasks SET concurrency_key = 'k', state = 'READY', blocked = 0 WHERE id = :later"
PLACED = "INSERT INTO key_places (id, key_id, priority, virtual_start) VALUES (:later, :other, 5, 0)"

PLANTS: list[tuple[int, str, tuple[str, ...]]] = [
    (1, "2 open attempts", (copied("attempts", "id = :running_first_attempt", id=":other", generation="9"),)),
    (
        1,
        "is not the attempt that its task holds",
        ("UPDATE tasks SET attempt_id = NULL WHERE id = :running_first_task",),
    ),
    (
        1,
        "holds an attempt that is closed",
        ("UPDATE attempts SET state = 'CLOSED' WHERE id = :running_first_attempt",),
    ),
    (
        1,
        "gave generation 1 to 2",
        (
            copied("attempts", "id = :again_pay_attempt", id=":other", generation="1"),
            copied("attempts", "id = :again_pay_attempt", id="'a'", generation="1"),
        ),
    ),
    (1, "has generation 77", ("UPDATE attempts SET generation = 77 WHERE id = :ended_first_attempt",)),
    (
        1,
        "started before attempt",
        (copied("attempts", "id = :ended_first_attempt", id=":other", generation="generation + 1"),),
    ),
    (
        1,
        "after the last moment allowed",
        ("UPDATE attempts SET started_at = :never WHERE id = :ended_first_attempt",),
    ),
    (
        1,
        "after the cancel of its workflow",
        (
            "UPDATE audit SET action = 'workflow.cancel', subject_id = :ended, at = :long_ago WHERE action = 'workflow.pause'",
        ),
    ),
    (
        1,
        "after the cancel of its task",
        ("UPDATE audit SET subject_id = :ended_first_task, at = :long_ago WHERE action = 'task.cancel'",),
    ),
    (
        1,
        "while its workflow was paused",
        ("UPDATE audit SET subject_id = :ended, at = :long_ago WHERE action = 'workflow.pause'",),
    ),
    (
        2,
        "still holds a session or permits",
        ("UPDATE attempts SET permits = '[]' WHERE id = :ended_first_attempt",),
    ),
    (2, "bound to no session", ("UPDATE attempts SET session_id = NULL WHERE id = :running_first_attempt",)),
    (
        2,
        "a gate that nobody closed",
        ("UPDATE tasks SET gate = 1, blocked = 1 WHERE id = :running_first_task",),
    ),
    (2, "that nothing will ever lift", ("UPDATE tasks SET blocked = 8 WHERE id = :later",)),
    (2, "counts 5 permits in use", (limit(running=5),)),
    (2, "allows 0; 1 attempts", (limit("0", running=1), PERMIT)),
    (2, "counts a backlog of 9", (limit(backlog=9),)),
    (2, "is held 5 times", (line(held=5),)),
    (2, "has 5 waiters by its row", (line(waiting=5, admit_at="1"),)),
    (2, "waiters that nobody will wake", (line(waiting=5),)),
    (2, "has a key without a row", (KEYED,)),
    (2, "without its place in line", (KEYED,)),
    (2, "has a place in line, but", (PLACED,)),
    (3, "which does not exist", ("DELETE FROM tasks WHERE id = :polling_ask_task",)),
    (3, "which does not exist", ("UPDATE idempotency SET subject_id = :other WHERE subject_id = :ended",)),
    (3, "has no stored input", ("DELETE FROM instance_inputs WHERE instance_id = :ended",)),
    (3, "without its outcome", ("DELETE FROM instance_outputs WHERE instance_id = :ended",)),
    (3, "has no stored parameters", ("DELETE FROM task_specs WHERE task_id = :later",)),
    (3, "without its result", ("DELETE FROM task_results WHERE task_id = :ended_first_task",)),
    (3, "has no stored body", ("DELETE FROM signal_bodies WHERE id = :pending",)),
    (3, "has no stored document", ("DELETE FROM definition_documents",)),
    (3, "runs a definition that is not stored", ("DELETE FROM definition_documents",)),
    (3, "that is not stored", ("UPDATE steps SET result_ref = 'P:nowhere' WHERE id = :ended_first",)),
    (3, "counts 5 pending signals", ("UPDATE instances SET pending_signals = 5 WHERE id = :waiting",)),
    (
        3,
        "without an inbox row",
        (
            "UPDATE tasks SET state = 'NEEDS_REVIEW' WHERE id = :polling_ask_task",
            "DELETE FROM inbox WHERE task_id = :polling_ask_task",
        ),
    ),
    (4, "2 live activations", (copied("steps", "id = :waiting_ask", id=":other", activation_no="2"),)),
    (4, "opened activation 1", (copied("steps", "id = :ended_first", id=":other"),)),
    (
        4,
        "opened again without a recorded decision",
        ("DELETE FROM audit WHERE action = 'workflow.review.rerun'",),
    ),
    (4, "consumed 2 signals", (copied("signals", "id = :signal", id=":other"),)),
    (
        4,
        "was consumed 2 times",
        (copied("events", "aggregate_id = :signal AND state = 'CONSUMED'", id=":other"),),
    ),
    (4, "is the result of 2 steps", (copied("steps", "id = :ended_ask", id=":other", step_key="'twin'"),)),
    (4, "applied twice", (copied("inbox", "task_id = :ended_first_task", id=":other"),)),
    (4, "tells of revision 99", ("UPDATE inbox SET source_revision = 99 WHERE task_id = :ended_first_task",)),
    (4, "has 2 tasks for round", (copied("tasks", "id = :ended_first_task", id=":other"),)),
    (
        5,
        "after it ended at",
        (
            copied(
                "events",
                "aggregate_id = :dropped AND state = 'CANCELLED'",
                id=":other",
                aggregate_revision="9",
                state="'READY'",
            ),
        ),
    ),
    (
        5,
        "after it ended at",
        (
            copied(
                "events",
                "aggregate_id = :ended AND state = 'SUCCEEDED'",
                id=":other",
                aggregate_revision="99",
            ),
        ),
    ),
    (5, "but its end is None", ("UPDATE instances SET ended_at = NULL WHERE id = :ended",)),
    (5, "but its end is None", ("UPDATE tasks SET settled_at = NULL WHERE id = :ended_first_task",)),
    (5, "still holds an attempt", ("UPDATE tasks SET due_at = 1 WHERE id = :ended_first_task",)),
    (
        5,
        "and step ask is still",
        ("UPDATE steps SET live = 1, state = 'WAITING_SIGNAL' WHERE id = :ended_ask",),
    ),
    (
        5,
        "is still READY",
        ("UPDATE tasks SET state = 'READY', settled_at = NULL WHERE id = :ended_first_task",),
    ),
    (
        5,
        "after its workflow had ended",
        ("UPDATE attempts SET started_at = :never WHERE id = :ended_first_attempt",),
    ),
    (5, "is closed and still", ("UPDATE steps SET state = 'WAITING_TASK' WHERE id = :ended_first",)),
    (6, "used 9 of", ("UPDATE tasks SET attempts_used = 9 WHERE id = :ended_first_task",)),
    (6, "was charged for 1", ("UPDATE tasks SET attempts_used = 2 WHERE id = :ended_first_task",)),
    (
        6,
        "verified 2 times at once",
        (
            "UPDATE attempts SET kind = 'VERIFY' WHERE id = :running_first_attempt",
            copied("attempts", "id = :running_first_attempt", id=":other", generation="9"),
        ),
    ),
    (
        6,
        "spent 9 of 3 attempts",
        ("UPDATE tasks SET attempts_used = 9, attempts_max = 9 WHERE id = :ended_first_task",),
    ),
    (6, "began round 9 of 5", ("UPDATE tasks SET round = 9 WHERE id = :polling_ask_task",)),
    (
        7,
        "may have done",
        (
            "DELETE FROM audit WHERE subject_id = :again_old",
            copied(
                "attempts",
                "task_id = :again_old_task",
                id=":other",
                generation="generation + 9",
                started_at=":never",
            ),
        ),
    ),
    (7, "of another task may have done", ("DELETE FROM audit WHERE subject_id = :again_old",)),
    (7, "nobody decided so", ("DELETE FROM audit WHERE subject_id = :again_old",)),
    (
        7,
        "was stored before",
        (
            "UPDATE tasks SET state = 'FAILED' WHERE id = :ended_first_task",
            (
                "INSERT INTO evidence (id, task_id, attempt_id, namespace_id, kind, contradiction, at)"
                " VALUES (:other, :ended_first_task, :ended_first_attempt, :other, 'LATE_SUCCEEDED', 1, 1)"
            ),
        ),
    ),
    (7, "took its failure exit while", ("UPDATE steps SET failure_ref = 'T:x' WHERE id = :ended_first",)),
    (
        8,
        "told everything it will",
        (
            "UPDATE inbox SET state = 'STALE' WHERE task_id = :ended_first_task",
            "UPDATE steps SET live = 1, state = 'WAITING_TASK' WHERE id = :ended_first",
        ),
    ),
    (
        8,
        "waits for workflow",
        ("UPDATE inbox SET state = 'PENDING', instance_id = :other WHERE task_id = :ended_first_task",),
    ),
    (8, "no instant at which it goes on", ("UPDATE tasks SET due_at = NULL WHERE id = :later",)),
    (8, "no lease that could end", ("UPDATE tasks SET lease_until = NULL WHERE id = :running_first_task",)),
    (8, "has no open attempt", ("UPDATE tasks SET attempt_id = NULL WHERE id = :running_first_task",)),
    (
        8,
        "and nothing is due",
        ("UPDATE tasks SET state = 'READY', blocked = 4, due_at = NULL WHERE id = :later",),
    ),
    (
        8,
        "waits without a limit",
        ("UPDATE tasks SET latest_start_at = 1, deadline_at = NULL WHERE id = :later",),
    ),
    (8, "the instance says WAITING but", ("UPDATE instances SET state = 'WAITING' WHERE id = :running",)),
    (8, "nothing will ever move it", ("UPDATE steps SET due_at = NULL WHERE id = :waiting_ask",)),
    (
        8,
        "the instance waits for nothing",
        ("UPDATE steps SET live = 0, state = 'COMPLETED' WHERE id = :waiting_ask",),
    ),
    (9, "controlled 6 times", ("UPDATE instances SET control_version = 7 WHERE id = :ended",)),
    (9, "paused or cancelled and nobody", ("DELETE FROM audit WHERE action = 'workflow.pause'",)),
    (9, "was cancelled and nobody", ("DELETE FROM audit WHERE action = 'task.cancel'",)),
    (9, "was published and nobody", ("DELETE FROM audit WHERE subject_kind = 'definition'",)),
    (9, "and is at 1", ("UPDATE instances SET revision = 1 WHERE id = :ended",)),
    (9, "and is at 0", ("UPDATE steps SET revision = 0 WHERE id = :ended_first",)),
    (9, "and is at 1", ("UPDATE tasks SET revision = 1 WHERE id = :dropped",)),
    (9, "and is at 0", ("UPDATE signals SET revision = 0 WHERE id = :signal",)),
    (
        9,
        "that does not exist",
        ("UPDATE events SET aggregate_id = :other WHERE aggregate_kind = 'workflow'",),
    ),
    (
        9,
        "events of revision",
        (copied("events", "aggregate_id = :dropped AND state = 'CANCELLED'", id=":other"),),
    ),
    (
        9,
        "counts 1 items applied, skipped and failed, and has 0",
        (
            "INSERT INTO bulks (id, namespace_id, action, state, most, items, refused, truncated, applied, skipped, failed, interval_us, revision, made_by, created_at, started_at, expires_at, due_at, last) VALUES (:other, :other, 'task.cancel', 'APPLYING', 9, 1, 0, 0, 1, 0, 0, 1, 1, 'me', 1, 1, 1, 1, 1)",
        ),
    ),
]


def test_a_healthy_database_breaks_no_rule(scene: Scene) -> None:
    with snapshot(scene.url) as conn:
        assert violations(conn) == []


@pytest.mark.parametrize(("number", "message", "statements"), PLANTS, ids=[f"{n}-{m}" for n, m, _ in PLANTS])
def test_a_planted_violation_is_found(
    scene: Scene, number: int, message: str, statements: tuple[str, ...]
) -> None:
    (rule,) = [rule for rule in RULES if rule.number == number]
    with scene.planted(statements) as conn:
        found = [str(one) for one in rule.violations(conn)]
    assert any(message in one for one in found), found
    assert all(one.startswith(f"rule {number}: ") for one in found)


def test_every_query_of_every_rule_finds_something_planted(scene: Scene) -> None:
    silent = {(rule.number, probe.message) for rule in RULES for probe in rule.probes}
    rules = {rule.number: rule for rule in RULES}
    for number, _, statements in PLANTS:
        with scene.planted(statements) as conn:
            for probe in rules[number].probes:
                if (number, probe.message) in silent and any(probe.run(conn, number)):
                    silent.discard((number, probe.message))
    assert not silent
