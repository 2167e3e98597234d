"""Background work on a real node."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from orbit_sdk.errors import Unavailable
from orbit_server.clock import ManualClock, SystemClock
from orbit_server.loops.loop import Loop, Report, Runner, Runners
from orbit_server.storage.tables import nodes, steps
from tests.api.flows import start, submit
from tests.documents import document, end, timer
from tests.server import Api, node, until

TIMED = document({"sleep": timer("done", seconds=1), "done": end()}, id="test.timed")
HOUR_US = 3_600_000_000
SLOW = {"loop_ms": 60_000, "idle_loop_ms": 60_000}


async def read(api: Api, query: Any) -> list[Any]:
    def run(conn: Connection) -> list[Any]:
        return list(conn.execute(query))

    return await api.parts.server.database.read(run)


async def state(api: Api, path: str) -> str:
    found: str = (await api.get(path)).data["state"]
    return found


async def test_a_timer_fires_on_time_although_its_loop_looks_once_a_minute(migrated_url: str) -> None:
    async with node(migrated_url, **SLOW) as api:
        path = f"/v1/workflows/{await start(api, TIMED)}"
        assert await state(api, path) == "WAITING"
        reply = await api.get(path, wait_ms=20_000)
        assert reply.data["state"] == "SUCCEEDED"


async def test_a_timer_of_an_earlier_run_of_the_server_is_found_from_its_row(
    migrated_sqlite_url: str,
) -> None:
    async with node(migrated_sqlite_url, **SLOW) as api:
        workflow_id = await start(api, TIMED)
    async with node(migrated_sqlite_url, **SLOW) as api:
        reply = await api.get(f"/v1/workflows/{workflow_id}", wait_ms=20_000)
        assert reply.data["state"] == "SUCCEEDED"


async def test_a_loop_that_rests_is_given_no_more_than_its_share_of_the_time(api: Api) -> None:
    clock = ManualClock(SystemClock().wall_us())

    async def slow(at: int) -> Report:
        clock.advance(1_000_000)
        return Report()

    runner = Runner(Loop("slow", slow, 5_000, rest=20), api.parts.server.database, clock)
    began = clock.monotonic_us()
    await runner._run_once(began)
    assert runner._look_at_us == began + 21_000_000


async def test_a_delayed_task_becomes_ready(migrated_url: str) -> None:
    async with node(migrated_url) as api:
        task_id = await submit(api, delay_ms=50)

        async def ready() -> bool:
            return await state(api, f"/v1/tasks/{task_id}") == "READY"

        await until(ready)


async def test_a_task_that_did_not_start_in_time_expires(migrated_url: str) -> None:
    async with node(migrated_url, loop_ms=50) as api:
        task_id = await submit(api, start_within_ms=50)

        async def expired() -> bool:
            return await state(api, f"/v1/tasks/{task_id}") == "EXPIRED"

        await until(expired)


async def test_a_node_shows_that_it_lives_and_signs_off(migrated_url: str) -> None:
    async with node(migrated_url, idle_loop_ms=20) as api:
        seen = select(nodes.c.id, nodes.c.seen_at)
        (first,) = await until(lambda: read(api, seen))
        assert first.id == api.parts.server.node_id

        async def later() -> bool:
            (now,) = await read(api, seen)
            return bool(now.seen_at > first.seen_at)

        await until(later)
    async with node(migrated_url, idle_loop_ms=20) as api:
        await until(lambda: read(api, seen))
        assert [row.id for row in await read(api, seen)] == [api.parts.server.node_id]


async def test_nothing_that_time_decides_runs_while_the_clock_is_not_trusted(
    migrated_sqlite_url: str,
) -> None:
    clock = ManualClock(SystemClock().wall_us())
    async with node(migrated_sqlite_url, clock=clock, loop_ms=20, idle_loop_ms=20) as api:
        loops = api.parts.loops
        path = f"/v1/workflows/{await start(api, TIMED)}"
        await until(lambda: loops["due_steps"].figures.runs)
        clock.step(HOUR_US)
        await api.parts.server.database.now()
        assert api.parts.server.database.clock_is_suspect()
        # What had begun before the jump may end.
        heartbeats = loops["nodes"].figures.runs
        await until(lambda: loops["nodes"].figures.runs > heartbeats + 5)
        heartbeats = loops["nodes"].figures.runs
        before = {runner.loop.name: runner.figures.runs for runner in loops if runner.loop.heeds_clock}
        await until(lambda: loops["nodes"].figures.runs > heartbeats + 3)
        assert {name: loops[name].figures.runs for name in before} == before
        assert await state(api, path) == "WAITING"
        clock.advance(api.parts.server.settings.lease_ms * 1000)

        async def ended() -> bool:
            return await state(api, path) == "SUCCEEDED"

        await until(ended)


async def test_a_row_that_cannot_be_moved_does_not_stop_the_others(
    migrated_sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with node(migrated_sqlite_url, loop_ms=20) as api:
        bad, good = await start(api, TIMED), await start(api, TIMED)

        def damage(conn: Connection) -> None:
            conn.execute(
                update(steps).where(steps.c.instance_id == bad).values(step_key="vanished", due_at=1)
            )

        await api.parts.server.database.write(damage)
        assert (await api.get(f"/v1/workflows/{good}", wait_ms=20_000)).data["state"] == "SUCCEEDED"
        assert api.parts.loops["due_steps"].figures.failed >= 0
        assert (await api.get("/healthz")).status == 200


class Scripted:
    """Work that does what it is told, run after run; the last word holds."""

    def __init__(self, *script: Report | Exception) -> None:
        self.script = list(script)
        self.ran = 0
        self.times: list[int] = []

    async def __call__(self, at: int) -> Report:
        self.ran += 1
        self.times.append(at)
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(now, Exception):
            raise now
        return now


async def running(api: Api, work: Scripted, interval_ms: int) -> tuple[Runner, Runners]:
    runners = Runners(
        [Loop("scripted", work, interval_ms)], api.parts.server.database, api.parts.server.clock
    )
    runners.start()
    await until(lambda: work.ran)
    return runners["scripted"], runners


async def test_a_loop_that_fails_goes_on(edge: Api, caplog: pytest.LogCaptureFixture) -> None:
    work = Scripted(Unavailable("away"), ValueError("a bug"), Report(seen=1, moved=1))
    runner, runners = await running(edge, work, 10)
    await until(lambda: runner.figures.runs >= 3)
    await runners.stop()
    assert (runner.figures.errors, runner.figures.errors_in_a_row) == (2, 0)
    assert [record.message for record in caplog.records if "rests" in record.message] == [
        "loop scripted rests: away"
    ]
    assert any("works again" in record.message for record in caplog.records) or not caplog.records[1:]


async def test_a_hint_ends_the_waiting(edge: Api) -> None:
    work = Scripted(Report())
    runner, runners = await running(edge, work, 60_000)
    runner.wake()
    await until(lambda: work.ran == 2)
    runner.wake_at(work.times[-1] + 50_000)
    await until(lambda: work.ran == 3)
    assert work.times[2] >= work.times[1] + 50_000
    await runners.stop()


async def test_a_loop_that_stopped_at_its_bound_goes_on_at_once(edge: Api) -> None:
    work = Scripted(Report(more=True), Report(more=True), Report())
    runner, runners = await running(edge, work, 60_000)
    await until(lambda: runner.figures.runs == 3)
    await runners.stop()


async def test_a_loop_looks_again_when_it_said_it_would(edge: Api) -> None:
    at = await edge.parts.server.database.now()
    work = Scripted(Report(next_at=at + 200_000), Report())
    _, runners = await running(edge, work, 60_000)
    await until(lambda: work.ran == 2)
    assert work.times[1] >= at + 200_000
    await runners.stop()


async def test_work_that_stays_due_does_not_make_a_loop_spin(edge: Api) -> None:
    work = Scripted(Report(next_at=1))
    _, runners = await running(edge, work, 60_000)
    for _ in range(200):
        await asyncio.sleep(0)
    assert work.ran == 1
    await runners.stop()
