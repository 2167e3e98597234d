"""Both clients against a server that misbehaves on purpose, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from orbit_sdk.client import ClientSettings, Orbit, OrbitClient
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.origin import origin_of
from orbit_sdk.client.wire import Call
from orbit_sdk.errors import Unavailable

TOKEN = "orbit_" + "0" * 64
IMPATIENT = ClientSettings(timeout=5, retry_for=0)
BODY = json.dumps({"request_id": "1" * 32, "data": {"status": "ok"}}).encode()
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
)


class Script:
    """What the server does with each connection in turn: the answers it gives before it hangs up."""

    def __init__(self, *connections: list[bytes]) -> None:
        self.left = list(connections)
        self.requests: list[bytes] = []

    def serve(self, listening: socket.socket) -> None:
        for answers in self.left:
            connection, _ = listening.accept()
            with connection:
                for answer in answers:
                    self.requests.append(_read_request(connection))
                    connection.sendall(answer)


def _read_request(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(script: Script) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=script.serve, args=(listening,))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def ask_both(url: str, script: Callable[[Any], Any], *, sync: bool) -> list[Any]:
    """Two health calls in a row by one client of either kind."""
    if sync:
        with Orbit(url, TOKEN, settings=IMPATIENT) as client:
            return [client.healthy(), script(client), client.healthy()]

    async def run() -> list[Any]:
        async with OrbitClient(url, TOKEN, settings=IMPATIENT) as client:
            return [await client.healthy(), script(client), await client.healthy()]

    return asyncio.run(run())


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("answer", [PLAIN, CHUNKED])
def test_a_connection_is_used_again(answer: bytes, sync: bool) -> None:
    script = Script([answer, answer])
    with serving(script) as url:
        assert ask_both(url, lambda _: None, sync=sync) == [True, None, True]
    assert len(script.requests) == 2


@pytest.mark.parametrize("sync", [False, True])
def test_a_connection_that_the_server_closed_is_replaced(sync: bool) -> None:
    script = Script([PLAIN], [PLAIN])
    with serving(script) as url:
        assert ask_both(url, lambda _: None, sync=sync) == [True, None, True]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nshort", b"not http at all\r\n\r\n"]
)
def test_what_is_no_answer_is_told_as_unavailable(answer: bytes, sync: bool) -> None:
    with serving(Script([answer])) as url, pytest.raises(Unavailable):
        ask_both(url, lambda _: None, sync=sync)


async def test_what_may_not_be_repeated_is_sent_once_when_the_connection_breaks() -> None:
    script = Script([PLAIN, b""])
    with serving(script) as url:
        transport = AsyncTransport(url, TOKEN, IMPATIENT)
        await transport.call(Call("GET", "/readyz"))
        with pytest.raises(Unavailable):
            await transport.call(Call("POST", "/v1/once", body={}, safe=False))
        await transport.close()
    assert [one.split(b" ")[1] for one in script.requests] == [b"/readyz", b"/v1/once"]


async def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with OrbitClient(url, TOKEN, settings=ClientSettings(timeout=0.05, retry_for=0)) as client:
            with pytest.raises(Unavailable):
                await client.healthy()


def test_a_proxy_of_the_environment_is_used_unless_the_host_is_exempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    assert origin_of("http://orbit.example/base/").proxy == "http://proxy.example:3128"
    assert origin_of("http://127.0.0.1:7400").proxy is None


@pytest.mark.parametrize("sync", [False, True])
def test_requests_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch, sync: bool) -> None:
    script = Script([PLAIN, PLAIN])
    with serving(script) as proxy:
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.delenv("no_proxy", raising=False)
        assert ask_both("http://orbit.example:7400", lambda _: None, sync=sync) == [True, None, True]
    assert all(one.startswith(b"GET http://orbit.example:7400/readyz ") for one in script.requests)


def test_the_parts_of_an_address_are_told_apart() -> None:
    found = origin_of("http://[::1]:7400/base/")
    assert (found.host, found.base, found.address.host, found.address.port) == (
        "[::1]:7400",
        "/base",
        "::1",
        7400,
    )
    assert origin_of("http://orbit.example").address.port == 80
    assert origin_of("https://orbit.example").address.port == 443
