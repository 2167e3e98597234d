"""Handlers that go on after their attempts are over, and what a worker tells of itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.protocol import worker as wire
from orbit_sdk.worker import Worker, WorkerReport
from tests.server import until
from tests.worker.paper_server import TOKEN, PaperServer, PaperSession, paper_server

GO_ON = threading.Event()


@orbit.handler("s.deaf", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
def deaf(ctx: TaskContext) -> str:
    GO_ON.wait(20)
    return "too late"


@orbit.handler("s.quick", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
def quick(ctx: TaskContext) -> str:
    return "done"


@orbit.handler("s.stubborn", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def stubborn(ctx: TaskContext) -> str:
    while not GO_ON.is_set():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue
    return "too late"


@pytest.fixture
async def paper() -> AsyncIterator[PaperServer]:
    GO_ON.clear()
    async with paper_server() as server:
        server.lease_ms, server.renews, server.heartbeat_ms = 200, False, 50
        yield server
    GO_ON.set()


def start(paper: PaperServer, **options: Any) -> tuple[Worker, asyncio.Future[WorkerReport]]:
    options = {"slots": 1, "stuck_after_ms": 0, "grace_ms": 100, "health_port": 0, **options}
    worker = Worker(paper.url, TOKEN, [deaf, quick, stubborn], **options)
    return worker, asyncio.ensure_future(worker.run(signals=False))


async def page(worker: Worker, path: str) -> tuple[int, str]:
    await until(lambda: worker.health_port)
    reader, writer = await asyncio.open_connection("127.0.0.1", worker.health_port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: worker\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return int(text.split()[1]), text.partition("\r\n\r\n")[2]


async def told_stuck(session: PaperSession, count: int) -> None:
    """The server hears of it with the next beat."""
    await until(lambda: [one.stuck for one in session.beats][-1:] == [count])


async def test_a_thread_that_outlives_its_attempt_is_replaced_and_shown_until_it_ends(
    paper: PaperServer,
) -> None:
    worker, run = start(paper)
    session = await paper.session()
    await session.offer("s.deaf")
    await told_stuck(session, 1)
    paper.renews, paper.lease_ms = True, 30_000
    other = await session.offer("s.quick", lease_ms=30_000)
    assert (await paper.result(other)).result == "done"
    assert (await page(worker, "/healthz"))[0] == 200
    assert "orbit_sdk_worker_stuck_handlers 1" in (await page(worker, "/metrics"))[1]
    GO_ON.set()
    await told_stuck(session, 0)
    for _ in range(3):
        again = await session.offer("s.quick", lease_ms=30_000)
        assert (await paper.result(again)).result == "done"
    worker.stop()
    report = await run
    assert (report.lost, report.replaced, report.outcomes) == (1, 1, {"SUCCEEDED": 4})
    assert report.clean


async def test_what_cannot_be_replaced_any_more_makes_the_worker_unhealthy_and_is_named_at_the_end(
    paper: PaperServer,
) -> None:
    worker, run = start(paper, stuck_max=0)
    session = await paper.session()
    assert (await page(worker, "/readyz")) == (200, "ready\n")
    await session.offer("s.deaf")
    await told_stuck(session, 1)
    status, text = await page(worker, "/healthz")
    assert status == 503
    assert "1 handlers" in text
    assert (await page(worker, "/readyz"))[0] == 503
    assert session.link.credit.room() == 0
    worker.stop()
    report = await run
    assert [(one.handler, one.how) for one in report.left] == [("s.deaf@1", "STUCK")]


async def test_a_coroutine_that_ignores_its_end_keeps_its_slot_and_is_shown(paper: PaperServer) -> None:
    worker, run = start(paper)
    session = await paper.session()
    await session.offer("s.stubborn")
    await told_stuck(session, 1)
    assert session.link.credit.room() == 0
    GO_ON.set()
    await told_stuck(session, 0)
    await session.room()
    worker.stop()
    assert (await run).replaced == 0


async def test_a_worker_without_a_server_is_alive_and_not_ready(paper: PaperServer) -> None:
    worker = Worker("http://127.0.0.1:9", TOKEN, [quick], health_port=0)
    run = asyncio.ensure_future(worker.run(signals=False))
    assert (await page(worker, "/healthz"))[0] == 200
    assert await page(worker, "/readyz") == (503, "not connected\n")
    assert (await page(worker, "/else"))[0] == 404
    reader, writer = await asyncio.open_connection("127.0.0.1", worker.health_port)
    writer.write(b"POST / HTTP/1.1\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()
    worker.halt()
    await run


@pytest.mark.parametrize("wrong", [{"health_port": 70_000}, {"stuck_after_ms": -1}, {"stuck_max": -1}])
def test_settings_that_make_no_sense_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Worker("http://127.0.0.1:9", TOKEN, [quick], **wrong)
    assert next(iter(wrong)) in str(refused.value.details)


async def test_a_handler_that_runs_out_of_grace_is_named_in_the_report(paper: PaperServer) -> None:
    paper.renews, paper.lease_ms = True, 30_000
    worker, run = start(paper)
    session = await paper.session()
    await session.offer("s.deaf")
    await until(lambda: worker.health.busy)
    worker.stop()
    report = await run
    assert [(one.handler, one.how) for one in report.left] == [("s.deaf@1", "RUNNING")]


def test_a_beat_without_the_figure_is_one_of_a_worker_where_nothing_is_stuck() -> None:
    assert wire.Beat(number=1).stuck == 0


async def test_room_is_told_per_queue_where_a_way_of_running_has_a_limit(paper: PaperServer) -> None:
    paper.renews, paper.lease_ms = True, 30_000
    worker, run = start(paper, slots=3, threads=1)
    session = await paper.session()
    await session.room(3)
    assert session.link.credit.room("jobs") == 1
    attempt = await session.offer("s.deaf")
    await session.until(lambda me: me.link.credit.room() == 2)
    assert session.link.credit.room("jobs") == 0
    beyond = await session.offer("s.quick")
    GO_ON.set()
    assert [(await paper.result(one)).result for one in (attempt, beyond)] == ["too late", "done"]
    worker.stop()
    await run
