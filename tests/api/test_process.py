"""A server as a process: its sockets, its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.errors import OrbitError
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.worker import Worker
from orbit_server.storage.migrations import migrate
from tests.api.flows import ASKING, TASK
from tests.documents import document, end, ref, task
from tests.server import ROOT, ServerProcess, server_process, until

CHAIN = document(
    {
        "one": task("two", "safe", value=ref("input")),
        "two": task("done", "safe", value=ref("one")),
        "done": end(ref("two")),
    },
    id="test.chain",
)


@orbit.handler("safe", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def safe(ctx: TaskContext, value: Any) -> Any:
    return [value]


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(database_url, tmp_path) as found:
        yield found


@pytest.fixture
def light(sqlite_url: str, tmp_path: Path) -> Iterator[ServerProcess]:
    with server_process(sqlite_url, tmp_path) as found:
        yield found


def client(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=server.headers, timeout=30)


def started(server: ServerProcess, doc: dict[str, Any], value: Any = None) -> str:
    with client(server) as http_client:
        body = {"definition": doc, "current": True}
        assert http_client.post("/v1/definitions", json=body).status_code == 200
        reply = http_client.post(
            "/v1/workflows",
            json={"definition_id": doc["id"], "input": value},
            headers={"Idempotency-Key": os.urandom(8).hex()},
        )
        assert reply.status_code == 200, reply.text
        workflow_id: str = reply.json()["data"]["id"]
        return workflow_id


async def test_a_worker_takes_a_workflow_to_its_end(server: ServerProcess) -> None:
    worker = Worker(server.url, server.token, [safe])
    working = asyncio.ensure_future(worker.run(signals=False))
    try:
        workflow_id = await asyncio.to_thread(started, server, CHAIN, 7)
        async with httpx.AsyncClient(base_url=server.url, headers=server.headers, timeout=30) as http_client:
            reply = await http_client.get(f"/v1/workflows/{workflow_id}", params={"wait_ms": 20_000})
            found = reply.json()["data"]
            assert (found["state"], found["output"]) == ("SUCCEEDED", [[7]])
            sessions = (await http_client.get("/v1/workers?connected=true")).json()["data"]["items"]
            assert [one["queues"] for one in sessions] == [["jobs"]]
            (task_row, _) = (await http_client.get(f"/v1/tasks?workflow_id={workflow_id}")).json()["data"][
                "items"
            ]
            attempts = (await http_client.get(f"/v1/tasks/{task_row['id']}/attempts")).json()["data"]["items"]
            assert [(one["state"], one["outcome"]) for one in attempts] == [("CLOSED", "SUCCEEDED")]
    finally:
        worker.halt()
        await working


def test_what_was_accepted_survives_a_kill(server: ServerProcess) -> None:
    workflow_id = started(server, ASKING, {"n": 1})
    server.kill()
    server.restart()
    with client(server) as http_client:
        found = http_client.get(f"/v1/workflows/{workflow_id}").json()["data"]
        assert (found["state"], found["input"]) == ("WAITING", {"n": 1})


def test_an_orderly_stop_answers_what_is_waiting_and_ends_with_zero(light: ServerProcess) -> None:
    workflow_id = started(light, ASKING)
    answers: list[int] = []

    def wait() -> None:
        with client(light) as http_client:
            reply = http_client.get(f"/v1/workflows/{workflow_id}", params={"wait_ms": 20_000})
            answers.append(reply.status_code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    in_work = "orbit_http_requests_in_work 2"
    while in_work not in httpx.get(f"{light.url}/metrics").text:
        pass
    assert light.stop() == 0
    waiting.join()
    assert answers == [200]
    assert '"message":"stopped"' in light.log


async def test_a_stopping_server_tells_its_workers_to_come_back(light: ServerProcess) -> None:
    worker = Worker(light.url, light.token, [safe])
    working = asyncio.ensure_future(worker.run(signals=False))
    try:
        async with httpx.AsyncClient(base_url=light.url, headers=light.headers) as http_client:

            async def connected() -> bool:
                reply = await http_client.get("/v1/workers?connected=true")
                return len(reply.json()["data"]["items"]) == 1

            await until(connected)
            assert await asyncio.to_thread(light.stop) == 0
            await asyncio.to_thread(light.restart)
            await until(connected)
    finally:
        worker.halt()
        await working


async def test_revoking_a_credential_ends_the_sessions_of_its_workers(light: ServerProcess) -> None:
    async with httpx.AsyncClient(base_url=light.url, headers=light.headers, timeout=30) as http_client:

        async def connected(count: int) -> bool:
            reply = await http_client.get("/v1/workers?connected=true")
            return len(reply.json()["data"]["items"]) == count

        made = await http_client.post(
            "/v1/credentials",
            json={"name": "worker", "permissions": ["workers:connect"], "consume_queues": ["jobs"]},
            headers={"Idempotency-Key": "worker"},
        )
        credential = made.json()["data"]
        worker = Worker(light.url, credential["token"], [safe])
        working = asyncio.ensure_future(worker.run(signals=False))
        try:
            await until(lambda: connected(1))
            path = f"/v1/credentials/{credential['id']}/revoke"
            assert (await http_client.post(path, json={"reason": "lost"})).status_code == 200
            await until(lambda: connected(0))
        finally:
            worker.halt()
            with contextlib.suppress(OrbitError):
                await working


def test_a_second_server_on_one_file_refuses_to_start(light: ServerProcess, tmp_path: Path) -> None:
    done = _run("--database", light.database, "--port", "0")
    assert done.returncode == 3
    assert "use" in done.stderr


def test_a_server_refuses_a_database_without_schema(sqlite_url: str) -> None:
    done = _run("--database", sqlite_url, "--port", "0")
    assert done.returncode == 3
    assert "orbit migrate" in done.stderr


def test_off_loopback_a_server_wants_tls_or_to_be_told_of_a_proxy(sqlite_url: str) -> None:
    migrate(sqlite_url)
    done = _run("--database", sqlite_url, "--port", "0", "--host", "0.0.0.0")
    assert done.returncode == 2
    for way_out in ("--certfile", "--behind-proxy", "127.0.0.1"):
        assert way_out in done.stderr


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "orbit_server", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def raw(server: ServerProcess, data: bytes) -> bytes:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(data)
        found = b""
        while part := connection.recv(65536):
            found += part
        return found


def test_raw_requests_are_answered_in_the_envelope(light: ServerProcess) -> None:
    token = light.token.encode()
    head = b"Host: x\r\nConnection: close\r\nAuthorization: Bearer " + token + b"\r\n"
    json_head = head + b"Content-Type: application/json\r\nIdempotency-Key: k\r\n"
    cases = {
        b"GET //v1/tasks HTTP/1.1\r\n" + head + b"\r\n": 404,
        b"GET /v1/tasks?limit=%ff HTTP/1.1\r\n" + head + b"\r\n": 400,
        b"GET /v1/tasks HTTP/1.1\r\n" + head + b"Authorization: Bearer x\r\n\r\n": 401,
        b"POST /v1/tasks HTTP/1.1\r\n"
        + json_head
        + b"Idempotency-Key: l\r\nContent-Length: 2\r\n\r\n{}": 400,
        b"POST /v1/tasks HTTP/1.1\r\n" + json_head + b"Content-Length: 99999999\r\n\r\n": 413,
        b"POST /v1/tasks HTTP/1.1\r\n"
        + json_head
        + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n": 400,
    }
    for request, status in cases.items():
        answer = raw(light, request)
        start, _, body = answer.partition(b"\r\n\r\n")
        assert start.startswith(b"HTTP/1.1 %d " % status), (request[:80], answer[:300])
        assert "error" in json.loads(body), body
        assert b"server:" not in start.lower()
    assert httpx.get(f"{light.url}/healthz").status_code == 200


def test_an_endless_chunked_body_is_cut_off(light: ServerProcess) -> None:
    address = urlsplit(light.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port or 0, timeout=30)
    connection.putrequest("POST", "/v1/tasks/batch")
    for name, value in {**light.headers, "Content-Type": "application/json"}.items():
        connection.putheader(name, value)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    try:
        for _ in range(200):
            connection.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
    except OSError:
        pass  # told to stop while sending, which is as good
    else:
        assert connection.getresponse().status == 413
    connection.close()
    assert httpx.get(f"{light.url}/healthz").status_code == 200


def test_a_body_that_never_ends_is_given_up(sqlite_url: str, tmp_path: Path) -> None:
    with server_process(sqlite_url, tmp_path, "--body-timeout-ms", "200") as server:
        head = (
            "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Authorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\n{"
        )
        answer = raw(server, head.encode())
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"did not arrive in time" in answer


def test_many_clients_at_once_lose_nothing(light: ServerProcess) -> None:
    async def run() -> set[str]:
        async with httpx.AsyncClient(base_url=light.url, headers=light.headers, timeout=60) as http_client:

            async def submit(number: int) -> str:
                key = {"Idempotency-Key": f"n-{number % 100}"}
                reply = await http_client.post("/v1/tasks", json=TASK, headers=key)
                assert reply.status_code == 200, reply.text
                found: str = reply.json()["data"]["id"]
                return found

            return set(await asyncio.gather(*[submit(number) for number in range(300)]))

    assert len(asyncio.run(run())) == 100
