"""A server on paper: a real socket that answers from a script, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """`data` or `error` go into an envelope; `raw` is sent as it is. `hang_up` closes without a word."""

    data: Any = None
    status: int = 200
    error: Any = None
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False

    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        key, value = ("data", self.data) if self.error is None else ("error", self.error)
        return json.dumps({"request_id": "0" * 32, key: value}).encode()


def refused(code: str, status: int, *, message: str = "no", details: Any = (), **headers: str) -> Answer:
    error = {"code": code, "message": message, "details": list(details)}
    return Answer(
        status=status, error=error, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )


class Paper(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: list[Answer] | Callable[[Asked], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), Pen)
        self.script = script
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        if callable(self.script):
            return self.script(asked)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class Pen(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Paper

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.next(Asked(self.command, self.path, headers, body))
        if answer.hang_up:
            self.close_connection = True
            return
        content = answer.content()
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(content)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def paper(script: list[Answer] | Callable[[Asked], Answer]) -> Iterator[Paper]:
    with Paper(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
