"""What may happen between a worker and its server, and handlers that block: nothing runs twice for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orbit_sdk.client import OrbitClient
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.crash.proxy import Proxy, proxy
from tests.crash.test_workers import MODULE, reaches, submit
from tests.server import until

ONCE = [("RUN", "SUCCEEDED")]


@pytest.fixture
def at(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    with house(sqlite_url, tmp_path, Ledger(linger_ms=0)) as built:
        built.server()
        yield built


@pytest.fixture
def wire(at: House) -> Iterator[Proxy]:
    parts = urlsplit(at.servers[0].url)
    with proxy((str(parts.hostname), int(parts.port or 0))) as one:
        at.worker(url=f"http://127.0.0.1:{one.port}", module=MODULE)
        yield one


async def attempts(client: OrbitClient, task_id: str) -> list[tuple[Any, Any]]:
    return [(one.kind, one.outcome) async for one in client.tasks.attempts(task_id)]


async def test_what_runs_goes_on_over_a_cut_network_and_a_dead_server(at: House, wire: Proxy) -> None:
    ledger = at.ledger
    ledger.hold |= {"risky", "safe"}
    async with at.client() as client:
        ids = [await submit(client, handler) for handler in ("risky", "safe")]
        await until(lambda: ledger.count() == 2)
        assert wire.cut_all() >= 1
        await asyncio.to_thread(at.servers[0].kill)
        await asyncio.to_thread(at.servers[0].restart)
        for step in ("risky", "safe"):
            ledger.let_go(step)
        for task_id in ids:
            await reaches(client, task_id, "SUCCEEDED")
            assert await attempts(client, task_id) == ONCE
    assert ledger.count() == 2
    at.check()


async def test_a_network_that_is_silent_beyond_the_lease_is_a_lost_worker(at: House, wire: Proxy) -> None:
    """Connections stay open and carry nothing. The handlers hear that their leases are over, though."""
    ledger = at.ledger
    ledger.hold |= {"risky", "safe"}
    async with at.client() as client:
        ids = {handler: await submit(client, handler) for handler in ("risky", "safe")}
        await until(lambda: ledger.count() == 2)
        wire.stall()
        await until(lambda: at.workers[0].log.count("stops: its lease ended") == 2)
        at.worker(module=MODULE)
        await reaches(client, ids["risky"], "NEEDS_REVIEW")
        await until(lambda: len(ledger.of_step("safe")) == 2)
        for step in ("safe", "risky"):
            ledger.let_go(step)
        await reaches(client, ids["safe"], "SUCCEEDED")
        at.workers[1].kill()
        wire.flow()
        again = await submit(client, "reads")
        await reaches(client, again, "SUCCEEDED")
        assert (await client.tasks.get(ids["risky"])).state == "NEEDS_REVIEW"
        assert await attempts(client, ids["safe"]) == [*ONCE, ("RUN", "LEASE_LOST")]
    assert len(ledger.of_step("risky")) == 1
    at.check()


async def test_a_handler_that_blocks_in_foreign_code_beyond_its_lease_keeps_it(at: House) -> None:
    """Once on the loop that every coroutine shares, once in a thread; a lease is 2 s here."""
    at.worker(module=MODULE)
    async with at.client() as client:
        ids = [await submit(client, handler) for handler in ("blocks_loop", "blocks_thread")]
        for task_id in ids:
            await reaches(client, task_id, "SUCCEEDED")
            assert await attempts(client, task_id) == ONCE
    at.check()
