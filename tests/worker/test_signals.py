"""A worker process and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator

import pytest

from orbit_sdk.protocol import worker as wire
from tests.worker.paper_server import TOKEN, PaperServer, PaperSession, paper_server

PROGRAM = """
import asyncio, sys, threading
import orbit_sdk.handlers as orbit
from orbit_sdk.worker import Worker

@orbit.handler("s.polite", version=1, queue="jobs", recovery=orbit.Recovery.IDEMPOTENT)
async def polite(ctx: orbit.TaskContext) -> str:
    ctx.heartbeat("here")
    while not ctx.stopping:
        await asyncio.sleep(0.01)
    return "stopped"

@orbit.handler("s.deaf", version=1, queue="jobs", recovery=orbit.Recovery.IDEMPOTENT)
def deaf(ctx: orbit.TaskContext) -> None:
    threading.Event().wait()

asyncio.run(Worker(sys.argv[1], sys.argv[2], [polite, deaf], grace_ms=int(sys.argv[3])).run())
"""


@pytest.fixture
async def paper() -> AsyncIterator[PaperServer]:
    async with paper_server() as server:
        yield server


async def started(paper: PaperServer, grace_ms: int) -> tuple[asyncio.subprocess.Process, PaperSession]:
    arguments = (sys.executable, "-c", PROGRAM, paper.url, TOKEN, str(grace_ms))
    process = await asyncio.create_subprocess_exec(*arguments)
    return process, await paper.session()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_what_runs_finish_and_ends_the_process_well(
    paper: PaperServer, number: signal.Signals
) -> None:
    process, session = await started(paper, 60_000)
    attempt = await session.offer("s.polite")
    await session.until(lambda me: any(isinstance(frame, wire.Progress) for frame in me.frames))
    process.send_signal(number)
    assert (await paper.result(attempt)).result == "stopped"
    assert await process.wait() == 0


async def test_grace_that_runs_out_ends_a_process_whose_thread_never_returns(paper: PaperServer) -> None:
    process, session = await started(paper, 50)
    await session.offer("s.deaf")
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_a_second_signal_ends_the_process_at_once(paper: PaperServer) -> None:
    process, session = await started(paper, 3_600_000)
    await session.offer("s.deaf")
    process.send_signal(signal.SIGTERM)
    await session.until(lambda me: me.link.state == "draining")
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 128 + signal.SIGTERM
