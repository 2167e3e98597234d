"""The worker in JavaScript, written from the page of the protocol, against a real server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from orbit_sdk.client import OrbitClient
from tests.crash.house import PATIENT, SHORT
from tests.crash.proxy import Proxy, proxy
from tests.databases import sqlite_url
from tests.server import ROOT, ServerProcess, server_process, until
from tools.find_node import WITHOUT, find, missing

EXAMPLE = ROOT / "examples" / "javascript_worker"


@contextmanager
def javascript(url: str, token: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The worker as a process that talks to `url`."""
    node = find()
    if node is None:
        assert os.environ.get(WITHOUT) == "1", missing()
        pytest.skip(f"{WITHOUT}=1")
    with log.open("ab") as out:
        process = subprocess.Popen(
            [node, str(EXAMPLE / "handlers.mjs")],
            env={**os.environ, "ORBIT_URL": url, "ORBIT_TOKEN": token},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("javascript")
    with server_process(sqlite_url(folder), folder, *SHORT) as one:
        yield one


@pytest.fixture
def wire(server: ServerProcess) -> Iterator[Proxy]:
    """What stands between the worker and the server."""
    parts = urlsplit(server.url)
    with proxy((str(parts.hostname), int(parts.port or 0))) as one:
        yield one


@pytest.fixture
def worker(server: ServerProcess, wire: Proxy, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with javascript(f"http://127.0.0.1:{wire.port}", server.token, tmp_path / "node.log") as process:
        yield process
    assert "refused" not in (tmp_path / "node.log").read_text()


@pytest_asyncio.fixture
async def client(server: ServerProcess) -> AsyncIterator[OrbitClient]:
    async with OrbitClient(server.url, server.token, settings=PATIENT) as one:
        yield one


async def submit(client: OrbitClient, handler: str, recovery: str, **parameters: Any) -> str:
    task = {"queue": "letters", "handler": handler, "handler_version": 1, "parameters": parameters}
    return (await client.tasks.submit({**task, "recovery": recovery})).id


async def reaches(client: OrbitClient, task_id: str, state: str) -> Any:
    async def look() -> Any:
        found = await client.tasks.get(task_id)
        return found if found.state == state else None

    return await until(look)


async def attempts(client: OrbitClient, task_id: str) -> list[tuple[str, str | None]]:
    return [(one.worker, one.outcome) async for one in client.tasks.attempts(task_id)]


ONCE = [("javascript", "SUCCEEDED")]


async def test_it_runs_started_offers_and_those_that_have_to_be_asked_for(
    client: OrbitClient, worker: subprocess.Popen[bytes]
) -> None:
    easy = [await submit(client, "letter.fold", "IDEMPOTENT", sheets=n) for n in range(20)]
    careful = await submit(client, "letter.post", "CONSERVATIVE", to="ada")
    for n, task_id in enumerate(easy):
        found = await reaches(client, task_id, "SUCCEEDED")
        assert found.result == {"folds": 2 * n}
        assert await attempts(client, task_id) == ONCE
    found = await reaches(client, careful, "SUCCEEDED")
    assert found.result == {"receipt": f"ada:{found.effect_key[:8]}"}
    assert await attempts(client, careful) == ONCE


async def test_it_keeps_a_lease_and_comes_back_after_a_cut_to_go_on_with_what_it_runs(
    client: OrbitClient, worker: subprocess.Popen[bytes], wire: Proxy
) -> None:
    """The handler takes longer than a lease, which is 2 s here, and the network fails meanwhile."""
    task_id = await submit(client, "letter.dry", "IDEMPOTENT", ms=2_600)
    await reaches(client, task_id, "RUNNING")
    assert wire.cut_all() == 1
    assert (await reaches(client, task_id, "SUCCEEDED")).result == "dry"
    assert await attempts(client, task_id) == ONCE
    after = await submit(client, "letter.post", "CONSERVATIVE", to="bob")
    await reaches(client, after, "SUCCEEDED")


async def test_a_handler_hears_of_a_cancel_and_says_that_it_stopped(
    client: OrbitClient, worker: subprocess.Popen[bytes]
) -> None:
    task_id = await submit(client, "letter.dry", "IDEMPOTENT", ms=60_000)
    await reaches(client, task_id, "RUNNING")
    await client.tasks.cancel(task_id, reason="it rains")
    await reaches(client, task_id, "CANCELLED")
    assert await attempts(client, task_id) == [("javascript", "CANCELLED")]


async def test_told_to_stop_it_finishes_what_it_runs_and_leaves_well(
    client: OrbitClient, worker: subprocess.Popen[bytes]
) -> None:
    task_id = await submit(client, "letter.dry", "CONSERVATIVE", ms=300)
    await reaches(client, task_id, "RUNNING")
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 20) == 0
    assert (await client.tasks.get(task_id)).state == "SUCCEEDED"


async def test_a_token_that_is_not_known_ends_it_with_a_word(server: ServerProcess, tmp_path: Path) -> None:
    with javascript(server.url, "nobody", tmp_path / "stranger.log") as process:
        assert await asyncio.to_thread(process.wait, 20) == 1
    assert "401" in (tmp_path / "stranger.log").read_text()


def test_it_is_as_small_as_the_page_says() -> None:
    assert len((EXAMPLE / "worker.mjs").read_text().splitlines()) < 150
