"""B6: start requests a second, against a bare JSON echo of the same framework under the same load."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import uvloop

from tests.bench.sizes import Size
from tests.bench.stage import Stage
from tests.server import ROOT

Figures = dict[str, Any]
_BODY: Final = json.dumps({"definition_id": "bench.chain3", "input": 1}).encode()


class _Caller(asyncio.Protocol):
    """One connection that asks again as soon as it was answered: next to no work on the client's side."""

    def __init__(self, make: Callable[[], bytes | None], ended: asyncio.Future[None]) -> None:
        self._make = make
        self._ended = ended
        self._seen = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        request = self._make()
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, found, body = self._seen.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        status = head[9:12]
        assert status in (b"200", b"201"), self._seen
        self._seen = body[length:]
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            if error is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(error)


def _rate(port: int, path: str, headers: dict[str, str], count: int, at_once: int) -> float:
    """Answered requests a second."""
    left = count

    def make() -> bytes | None:
        nonlocal left
        if not left:
            return None
        left -= 1
        lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{port}", f"content-length: {len(_BODY)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += ["content-type: application/json", f"idempotency-key: {secrets.token_hex(16)}", "", ""]
        return "\r\n".join(lines).encode() + _BODY

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        ends: list[asyncio.Future[None]] = [loop.create_future() for _ in range(at_once)]
        for ended in ends:
            await loop.create_connection(partial(_Caller, make, ended), "127.0.0.1", port)
        await asyncio.gather(*ends)
        return count / (time.perf_counter() - began)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def starts(built: Stage, size: Size) -> Figures:
    """No worker runs: a start stores the instance, its first task and its events, and no more happens."""
    built.publish()
    echo = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.echo"], cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        assert echo.stdout is not None
        port = int(echo.stdout.readline())
        _rate(port, "/echo", {}, size.concurrency * 2, size.concurrency)
        bare = _rate(port, "/echo", {}, size.requests, size.concurrency)
    finally:
        echo.terminate()
        echo.communicate()
    meter = built.meter()
    port = int(built.server.url.rpartition(":")[2])
    rate = _rate(port, "/v1/workflows", built.server.headers, size.requests, size.concurrency)
    spent = meter.stop()
    return {
        "starts_per_s": rate,
        "echo_per_s": bare,
        "ratio": rate / bare,
        "cpu_ms_per_start": spent.cpu_s * 1000 / size.requests,
        "fsyncs_per_start": spent.flushes / size.requests,
    }
