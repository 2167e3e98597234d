"""Retention over a real database: what goes, what stays, and what anybody sees of it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, text

from orbit_sdk.errors import Conflict, Gone, NotFound
from orbit_sdk.values.ids import Id
from orbit_server.clock import SystemClock
from orbit_server.pulse.ids import retry_id_of
from orbit_server.pulse.tasks.attempts import Held, RecordResult, Settled
from orbit_server.pulse.tasks.commands import Basis, By, CancelTask, RetryTask, SubmitTask
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.operations import NewTask
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.retention import members, records, roots
from orbit_server.retention.keeping import Keeping
from orbit_server.retention.sweep import Sweep
from orbit_server.storage import tables
from orbit_server.storage.commands import CommandKey
from orbit_server.verify import violations
from orbit_server.weave.control.commands import Action
from tests.documents import document, end, poll, task, wait
from tests.storage.weave.paper import NAMESPACE, Paper, succeeds

T = TypeVar("T")

DAY = 86_400_000_000
SHORT = Keeping(tasks_ms=1_000, workflows_ms=1_000, schedules_ms=1_000, audit_ms=1_000)
LATER = 3_600_000_000
"""So long after everything a lap is run: an hour."""
OF_WORKFLOWS = ("instances", "instance_inputs", "instance_outputs", "steps", "payloads", "signals")
OF_TASKS = ("tasks", "task_specs", "task_results", "task_progress", "attempts", "evidence", "inbox")
EVERYTHING = (*OF_WORKFLOWS, "signal_bodies", *OF_TASKS, "events", "purges")


class Killed(Exception):
    """Stands for a process that ends at this moment."""


class Watched(Sweep):
    """Retention that looks for violations after every bite, and may be ended before one."""

    bites = 0
    ends_before: int | None = None
    found: list[Any]

    async def _write(self, fn: Callable[[Connection], T]) -> T:
        if self.bites == self.ends_before:
            raise Killed
        done = await super()._write(fn)
        self.bites += 1
        self.found += await self._database.read(violations)
        return done


def sweep_of(paper: Paper, keeping: Keeping = SHORT, ends_before: int | None = None) -> Watched:
    sweep = Watched(paper.database, SystemClock(), keeping)
    sweep.found, sweep.ends_before = [], ends_before
    return sweep


async def settle_down(paper: Paper) -> None:
    """The namespace is there and everybody has heard of everything."""
    at = await paper.database.now()
    if not await paper.rows("SELECT 1 FROM namespaces"):
        await paper.set(
            "INSERT INTO namespaces (id, name, kind, created_at, settings) "
            "VALUES (:id, 'test', 'PRODUCTION', :at, '{}')",
            id=NAMESPACE,
            at=at,
        )
    await paper.set("UPDATE events SET fanned_out = 1")


async def lap(paper: Paper, keeping: Keeping = SHORT, after: int = LATER) -> int:
    await settle_down(paper)
    sweep = sweep_of(paper, keeping)
    gone = await sweep.lap(await paper.database.now() + after)
    assert sweep.found == []
    return gone


async def counts(paper: Paper) -> dict[str, int]:
    found = {}
    for name in EVERYTHING:
        ((found[name],),) = await paper.rows(f"SELECT COUNT(*) FROM {name}")
    return {name: count for name, count in found.items() if count}


def flow(name: str, nodes: dict[str, Any]) -> dict[str, Any]:
    return document({**nodes, "done": end()}, id=f"test.{name}")


async def publish_all(paper: Paper) -> None:
    await paper.publish(flow("chain", {"one": task("two", "safe"), "two": task("done", "safe")}))
    await paper.publish(flow("signal", {"first": task("ask", "safe"), "ask": wait("done")}))
    await paper.publish(flow("poll", {"ask": poll("done")}))
    await paper.publish(flow("risk", {"pay": task("done", "risky")}))


def plays() -> dict[str, Any]:
    return {
        "safe": succeeds(1),
        "status": succeeds({"state": "done"}),
        "risky": lambda _: Told(Said.EXCEPTION, code="BOOM"),
    }


def key_of(key: str, operation: str = "task.submit") -> CommandKey:
    return CommandKey(NAMESPACE, operation, key, "1" * 64)


async def submit(paper: Paper, key: str, **more: Any) -> Id:
    delay_ms = more.pop("delay_ms", None)
    new = NewTask(
        paper.seed().nth(0),
        NAMESPACE,
        "jobs",
        more.pop("handler", "safe"),
        1,
        "{}",
        "0" * 64,
        key,
        recovery=more.pop("recovery", Recovery.IDEMPOTENT),
        **more,
    )
    answer = await paper.database.committer.submit(SubmitTask(key_of(key), new, delay_ms=delay_ms))
    return str(answer["task_id"])


async def task_state(paper: Paper, task_id: Id) -> str | None:
    rows = await paper.rows("SELECT state FROM tasks WHERE id = :id", id=task_id)
    return rows[0][0] if rows else None


async def until_task(paper: Paper, task_id: Id, state: str) -> None:
    for _ in range(500):
        if await task_state(paper, task_id) == state:
            return
        await paper.sweep()
    raise AssertionError(await task_state(paper, task_id))


async def ended_ones(paper: Paper) -> dict[str, Id]:
    """A workflow of each kind that has ended, with a signal, a control and a restart among them."""
    found = {"chain": await paper.start({}, definition_id="test.chain")}
    found["signal"] = await paper.start({}, definition_id="test.signal")
    found["poll"] = await paper.start({}, definition_id="test.poll")
    await paper.until(found["signal"], "WAITING")
    await paper.control(found["signal"], Action.PAUSE)
    await paper.control(found["signal"], Action.RESUME)
    await paper.signal(found["signal"], "approval", "m", 1)
    for each in found.values():
        await paper.until(each, "SUCCEEDED")
    return found


async def test_a_finished_workflow_goes_with_every_row_of_it(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        await ended_ones(paper)
        assert {"steps", "tasks", "events", "signals", "inbox"} <= set(await counts(paper))
        assert await lap(paper) > 3
        assert await counts(paper) == {}


async def test_what_is_younger_than_its_time_stays(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        await ended_ones(paper)
        await until_task(paper, await submit(paper, "single"), "SUCCEEDED")
        before = await counts(paper)
        longer = Keeping(*[7_200_000] * 4)
        assert await lap(paper, longer) == 0
        assert await counts(paper) == before


async def test_what_is_open_or_in_review_stays_whole(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        paper.worker(handlers=["risky"], recovery="CONSERVATIVE")
        await publish_all(paper)
        waiting = await paper.start({}, definition_id="test.signal")
        await paper.until(waiting, "WAITING")
        review = await paper.start({}, definition_id="test.risk")
        await paper.until(review, "NEEDS_REVIEW")
        unsure = await submit(paper, "unsure", handler="risky", recovery=Recovery.CONSERVATIVE)
        await until_task(paper, unsure, "NEEDS_REVIEW")
        later = await submit(paper, "later", delay_ms=360_000_000)
        before = await counts(paper)
        await lap(paper)
        after = await counts(paper)
        notices = before.pop("events") - after.pop("events")
        assert after == before
        assert notices > 0, "what told subscribers of the tasks goes by its own age"
        assert await paper.rows("SELECT 1 FROM events WHERE workflow_id = :id", id=waiting), (
            "the timeline of an open workflow stays"
        )
        assert await task_state(paper, later) == "SCHEDULED"
        await paper.signal(waiting, "approval", "m", 1)
        await paper.until(waiting, "SUCCEEDED")


async def test_nothing_goes_before_everybody_has_got_its_events(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        await ended_ones(paper)
        await settle_down(paper)
        before = await counts(paper)
        ((first,),) = await paper.rows("SELECT MIN(id) FROM events")
        await paper.set("UPDATE events SET fanned_out = 0 WHERE id = :id", id=first)
        sweep = sweep_of(paper)
        assert await sweep.lap(await paper.database.now() + LATER) == 0
        assert sweep.figures.held_back_s > 3_000
        await paper.set("UPDATE events SET fanned_out = 1")
        await paper.set(
            "INSERT INTO deliveries (id, subscription_id, event_id, added_at, visible_at, deliveries) "
            "VALUES (:id, 's', :id, 1, 1, 0)",
            id=first,
        )
        assert await sweep.lap(await paper.database.now() + LATER) == 0
        assert await counts(paper) == before
        await paper.set("DELETE FROM deliveries")
        assert await sweep.lap(await paper.database.now() + LATER) > 0
        assert await counts(paper) == {}


async def test_from_the_first_bite_on_nobody_finds_the_workflow(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        worker = paper.worker()
        await publish_all(paper)
        worker.holding = True
        instance = await paper.start({}, definition_id="test.chain")
        (first,) = await paper.held(worker)
        worker.holding = False
        await worker.play(first)
        await paper.until(instance, "SUCCEEDED")
        await settle_down(paper)
        now = await paper.database.now()
        cuts = roots.Cuts({NAMESPACE: now + LATER})
        await paper.database.write(partial(records.take_notices, namespace_id=NAMESPACE, before=now))
        taken = await paper.database.write(partial(roots.take_instances, ids=[instance], cuts=cuts, now=now))
        assert taken == 1
        assert (await counts(paper))["tasks"] == 2
        with pytest.raises(NotFound):
            await paper.signal(instance, "approval", "m", 1)
        with pytest.raises(NotFound):
            await paper.control(instance, Action.CANCEL)
        assert await paper.database.read(violations) == []
        held = Held(first.task_id, first.attempt_id, first.generation)
        late = RecordResult(NAMESPACE, held, report_of(Told(Said.FINAL, code="NO")), instance)
        assert (await paper.database.committer.submit(late)).settled is Settled.EVIDENCE
        await lap(paper)
        assert await counts(paper) == {}
        answer = await paper.database.committer.submit(late)
        assert answer.settled is Settled.REFUSED, "all of these end the re-sending"


@pytest.mark.parametrize("ends_before", range(0, 14, 2))
async def test_a_lap_that_was_cut_off_is_finished_by_another(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch, ends_before: int
) -> None:
    monkeypatch.setattr(members, "ROWS", 9)
    async with Paper(migrated_sqlite_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        await ended_ones(paper)
        await until_task(paper, await submit(paper, "single"), "SUCCEEDED")
        await settle_down(paper)
        at = await paper.database.now() + LATER
        cut_off = sweep_of(paper, ends_before=ends_before)
        with pytest.raises(Killed):
            await cut_off.lap(at)
        other = sweep_of(paper)
        await other.lap(at)
        assert cut_off.found + other.found == []
        assert await counts(paper) == {}


async def test_a_key_outlives_what_it_made_by_a_week_then_tells_that_it_was_used(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        first = await submit(paper, "once")
        await until_task(paper, first, "SUCCEEDED")
        await lap(paper)
        assert await counts(paper) == {}
        assert await submit(paper, "once") == first, "the first answer for a week"
        await lap(paper, after=8 * DAY)
        with pytest.raises(Gone) as gone:
            await submit(paper, "once")
        assert [detail.reason for detail in gone.value.details] == [first]
        other = SubmitTask(
            CommandKey(NAMESPACE, "task.submit", "once", "2" * 64),
            NewTask(paper.seed().nth(0), NAMESPACE, "jobs", "safe", 1, "{}", "0" * 64, "x"),
        )
        with pytest.raises(Conflict):
            await paper.database.committer.submit(other)
        await lap(paper, after=500 * DAY)
        assert await submit(paper, "once") != first, "forgotten in the end"


async def test_a_task_stays_while_its_retry_is_open_and_a_retry_while_its_origin_stays(
    database_url: str,
) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker(handlers=["risky"], recovery="CONSERVATIVE")
        origin = await submit(paper, "risk", handler="risky", recovery=Recovery.CONSERVATIVE)
        await until_task(paper, origin, "NEEDS_REVIEW")
        ((revision,),) = await paper.rows("SELECT revision FROM tasks WHERE id = :id", id=origin)
        by = By("operator", "a test", paper.seed(), basis=Basis.PROVEN, evidence='"seen"')
        order = RetryTask(key_of("retry", "task.review"), NAMESPACE, origin, revision, by, 5)
        await paper.database.committer.submit(order)
        retry = retry_id_of(origin)
        await until_task(paper, retry, "NEEDS_REVIEW")
        await lap(paper)
        assert await task_state(paper, origin) == "FAILED"
        ((revision,),) = await paper.rows("SELECT revision FROM tasks WHERE id = :id", id=retry)
        again = RetryTask(key_of("again", "task.review"), NAMESPACE, retry, revision, by, 5)
        await paper.set("DELETE FROM audit")
        await paper.database.committer.submit(again)
        await paper.set("UPDATE tasks SET last = last + :more WHERE id = :id", more=2 * LATER, id=origin)
        await settle_down(paper)
        await sweep_of(paper).lap(await paper.database.now() + LATER)
        assert await task_state(paper, retry) == "FAILED", "its origin is too young to go"


async def test_a_root_of_effects_stays_while_an_heir_is_kept(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        root = await paper.start({}, definition_id="test.chain")
        heir = await paper.start({}, definition_id="test.signal")
        await paper.until(root, "SUCCEEDED")
        await paper.set("UPDATE instances SET heir = :heir WHERE id = :id", heir=heir, id=root)
        await paper.set("UPDATE instances SET effect_root = :root WHERE id = :id", root=root, id=heir)
        await lap(paper)
        assert {row[0] for row in await paper.rows("SELECT id FROM instances")} == {root, heir}


async def test_the_trail_stays_as_long_as_what_it_tells_of(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        await publish_all(paper)
        ended = await ended_ones(paper)
        later = await submit(paper, "later", delay_ms=360_000_000)
        by = By("operator", "a test", paper.seed())
        await paper.database.committer.submit(CancelTask(None, NAMESPACE, later, by))
        waiting = await paper.start({}, definition_id="test.signal")
        await paper.until(waiting, "WAITING")
        await paper.control(waiting, Action.PAUSE)
        kept = Keeping(1_000, 1_000, 1_000, 7_200_000)
        await lap(paper, kept)
        assert await task_state(paper, later) is None
        subjects = {row[0] for row in await paper.rows("SELECT subject_id FROM audit")}
        assert {ended["signal"], later, waiting} <= subjects, "the trail has a longer time of its own"
        await lap(paper)
        kinds = {(row[0], row[1]) for row in await paper.rows("SELECT subject_kind, subject_id FROM audit")}
        assert {subject for kind, subject in kinds if kind == "workflow"} == {waiting}
        assert {kind for kind, _ in kinds} == {"workflow", "definition"}


async def test_a_namespace_may_keep_things_longer(database_url: str) -> None:
    async with Paper(database_url, plays()) as paper:
        paper.worker()
        first = await submit(paper, "first")
        await until_task(paper, first, "SUCCEEDED")
        await settle_down(paper)
        await paper.set("UPDATE namespaces SET settings = :said", said='{"retention":{"tasks_ms":7200000}}')
        await lap(paper)
        assert await task_state(paper, first) == "SUCCEEDED"
        await paper.set("UPDATE namespaces SET settings = :said", said='{"retention":{"tasks_ms":5000}}')
        await lap(paper)
        assert await task_state(paper, first) is None


IDS = ["0" * 32, "1" * 32]
PAGES = {
    "tasks": roots.task_page(1, "0"),
    "instances": roots.instance_page(1, "0"),
    "steps": members.step_page(IDS, 10),
    "signals": members.member_page(tables.signals, IDS, 10),
    "inbox": members.member_page(tables.inbox, IDS, 10),
    "tasks of workflows": members.member_page(tables.tasks, IDS, 10),
    "payloads": members.member_page(tables.payloads, IDS, 10),
    "events": members.event_page(IDS[0], IDS, 10),
    "notices": records.notice_page(IDS[0], 1),
    "keys": records.key_page(1),
    "audit": records.trail_page(IDS[0], 1, (0, "0")),
    "occurrences": records.occurrence_page(IDS[0], 1),
    "flows": records.flow_page(IDS[0], "0"),
}


@pytest.mark.parametrize("name", PAGES)
async def test_what_may_go_is_found_by_an_index_in_its_order(migrated_url: str, name: str) -> None:
    async with Paper(migrated_url) as paper:
        query = PAGES[name]

        def plan(conn: Connection) -> list[dict[str, Any]]:
            word = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
            compiled = query.compile(conn, compile_kwargs={"literal_binds": True})
            return [dict(row) for row in conn.execute(text(f"{word} {compiled}")).mappings()]

        for row in await paper.database.read(plan):
            if "detail" in row:
                assert "SCAN" not in row["detail"]
                assert name == "steps" or "TEMP B-TREE" not in row["detail"], row
            else:
                assert row["key"] is not None, row
                assert name == "steps" or "filesort" not in (row["Extra"] or ""), row


async def test_what_a_probe_left_for_a_task_that_was_gone_goes_with_the_probe(migrated_url: str) -> None:
    async with Paper(migrated_url, plays()) as paper:
        origin = await submit(paper, "origin")
        by = By("person", "r", paper.seed())
        await paper.database.committer.submit(CancelTask(None, NAMESPACE, origin, by))
        probe = await submit(paper, "probe", recovery=Recovery.READ_ONLY, probe_of=origin)
        await lap(paper)
        assert (await task_state(paper, origin), await task_state(paper, probe)) == (None, "READY")
        paper.worker(recovery="READ_ONLY")
        await until_task(paper, probe, "SUCCEEDED")
        assert (await counts(paper))["evidence"] == 1
        await lap(paper)
        assert not set(await counts(paper)) & set(OF_TASKS)
