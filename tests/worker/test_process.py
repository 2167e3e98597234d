"""Handlers in processes of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from orbit_sdk.protocol import worker as wire
from orbit_sdk.worker import Worker
from tests.worker.paper_server import TOKEN, PaperServer, paper_server
from tests.worker.process_handlers import ALL


@pytest.fixture
async def paper() -> AsyncIterator[PaperServer]:
    async with paper_server() as server:
        yield server


@asynccontextmanager
async def working(paper: PaperServer, **options: int) -> AsyncIterator[None]:
    worker = Worker(paper.url, TOKEN, ALL, **options)
    run = asyncio.ensure_future(worker.run(signals=False))
    try:
        yield
    finally:
        worker.halt()
        await run


async def test_the_handler_runs_in_another_process_with_its_context(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("p.pid"))
        process, namespace, effect_key = result.result
        assert process != str(os.getpid())
        assert (namespace, effect_key) == ("paper", "e-1")


async def test_a_mark_is_stored_before_the_child_goes_on(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("p.marked"))
        assert result.result == "done"
        assert any(isinstance(frame, wire.Mark) for frame in session.frames)


async def test_a_child_that_dies_is_an_unexpected_end(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        result = await paper.result(await session.offer("p.dies"))
        assert (result.outcome, result.message) == (
            "EXCEPTION",
            "ProcessEnded: the process ended without an answer",
        )


async def test_a_child_is_killed_when_its_lease_is_gone(paper: PaperServer) -> None:
    paper.lease_ms = 600
    paper.renews = False
    async with working(paper, slots=1):
        session = await paper.session()
        await session.offer("p.spins")
        await session.until(lambda me: me.link.credit.room() == 0)
        await session.room(1)


async def test_a_cancel_reaches_the_child(paper: PaperServer) -> None:
    async with working(paper):
        session = await paper.session()
        attempt = await session.offer("p.cancelled")
        await session.send(wire.Cancel(items=[wire.Gone(attempt_id=attempt, reason="asked")]))
        assert (await paper.result(attempt)).outcome == "CANCELLED"
