"""The external channel, played by a small HTTP service of its own.

It accepts a job under an effect key, works for a moment, tells its status, can send a receipt, and can be
asked whether a key was used. It is not part of Orbit: it stands for the bank, the carrier or the registry
at the other end.

    POST /jobs                 {"effect_key", "generation", "content", "workflow_id"} -> {"operation_id"}; a
                               repeated key gets the first answer, a fenced attempt 409
    POST /keys/<key>/fence     {"generation"} -> {"operation_id": …} when the key was used; else null, and
                               attempts older than that generation are refused later
    GET  /jobs/<operation id>  -> {"state": "processing" | "done", "receipt"}
    GET  /journal              -> {"effects": {key: times}, "calls": n}

Environment: CHANNEL_PORT; CHANNEL_WORK_SECONDS (4); CHANNEL_HOLD_FIRST (seconds the first answer is held
back, 0); ORBIT_URL and ORBIT_TOKEN, when it is to send receipts.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orbit_sdk.client import Orbit
from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import derive_id


@dataclass
class Books:
    """What the channel remembers."""

    work_seconds: float
    hold_first: float
    done_at: dict[str, float] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    fenced: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, key: str, generation: int) -> tuple[str | None, bool]:
        """(operation id or None when the attempt is fenced, whether this call made the effect)."""
        with self.lock:
            self.calls += 1
            if key in self.used:
                return self.used[key], False
            if generation < self.fenced.get(key, 0):
                return None, False
            operation = derive_id("operation", key)
            self.used[key] = operation
            self.effects[key] = self.effects.get(key, 0) + 1
            self.done_at[operation] = time.monotonic() + self.work_seconds
            return operation, True

    def fence(self, key: str, generation: int) -> str | None:
        with self.lock:
            self.fenced[key] = max(generation, self.fenced.get(key, 0))
            return self.used.get(key)

    def state(self, operation: str) -> dict[str, Any] | None:
        with self.lock:
            done_at = self.done_at.get(operation)
        if done_at is None:
            return None
        if time.monotonic() < done_at:
            return {"state": "processing"}
        return {"state": "done", "receipt": f"R-{operation[:8]}"}

    def journal(self) -> dict[str, Any]:
        with self.lock:
            return {"effects": dict(self.effects), "calls": self.calls}


class Desk(BaseHTTPRequestHandler):
    """One request at the channel's desk."""

    books: Books

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        parts = self.path.strip("/").split("/")
        if parts == ["jobs"]:
            self._accept(body)
        elif len(parts) == 3 and parts[0] == "keys" and parts[2] == "fence":
            self._answer(200, {"operation_id": self.books.fence(parts[1], body["generation"])})
        else:
            self._answer(404, {})

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts == ["journal"]:
            self._answer(200, self.books.journal())
            return
        state = self.books.state(parts[1]) if len(parts) == 2 and parts[0] == "jobs" else None
        self._answer(404 if state is None else 200, state or {})

    def _accept(self, body: dict[str, Any]) -> None:
        operation, fresh = self.books.accept(body["effect_key"], body["generation"])
        if operation is None:
            self._answer(409, {})
            return
        if fresh:
            threading.Thread(
                target=send_receipt, args=(self.books, operation, body["workflow_id"]), daemon=True
            ).start()
            hold, self.books.hold_first = self.books.hold_first, 0
            time.sleep(hold)
        self._answer(200, {"operation_id": operation})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # the caller is gone; what was accepted stays accepted

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Silent."""


def send_receipt(books: Books, operation: str, workflow_id: str | None) -> None:
    """When the work is done, tell Orbit by a signal, under a key of its own: sending it twice is one
    signal.
    """
    time.sleep(books.work_seconds)
    if not workflow_id or "ORBIT_URL" not in os.environ:
        return
    with Orbit() as orbit:
        try:
            orbit.workflows.signal(
                workflow_id,
                "job.receipt",
                operation,
                books.state(operation),
                idempotency_key=f"receipt-{operation}",
            )
        except OrbitError as error:
            print(f"the receipt could not be delivered: {error}", flush=True)


def main() -> None:
    Desk.books = Books(
        work_seconds=float(os.environ.get("CHANNEL_WORK_SECONDS", "4")),
        hold_first=float(os.environ.get("CHANNEL_HOLD_FIRST", "0")),
    )
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("CHANNEL_PORT", "0"))), Desk)
    server.daemon_threads = True
    print(f"channel on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
