"""The world outside: applies effects when it is told to, and remembers every one of them.

It never forgives a repeat: what is applied twice is counted twice, so that the ledger shows what the recovery
levels really let through. One JSON line in, one JSON line out, over a connection of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import socketserver
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Applied:
    """One effect that happened."""

    key: str
    recovery: str
    step: str
    workflow: str
    attempt: str
    generation: int


@dataclass
class Ledger:
    """Everything that was asked of the channel. Safe to read from any thread through the methods."""

    seed: int = 0
    linger_ms: int = 60
    polls: int = 3
    """A job is done after it was asked about this often."""
    applied: list[Applied] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    """Places that were reached before an effect."""
    fences: dict[str, int] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    hold: set[str] = field(default_factory=set)
    """Steps and places that are answered only when `let_go` is called for them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _changed: threading.Condition = field(init=False)
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._changed = threading.Condition(self._lock)
        self._random = random.Random(self.seed)

    # --- what a worker may ask ---

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            match asked["do"]:
                case "apply":
                    return self._apply(asked)
                case "fence":
                    return self._fence(asked["key"], asked["generation"])
                case "pass":
                    self.passed.append(asked["step"])
                    self._changed.notify_all()
                    while asked["step"] in self.hold:
                        self._changed.wait()
                    return {}
                case "meet":
                    self.asked[asked["place"]] += 1
                    self._changed.notify_all()
                    while self.asked[asked["place"]] % asked["of"]:
                        self._changed.wait()
                    return {}
                case "status":
                    self.asked[asked["job"]] += 1
                    done = self.asked[asked["job"]] >= self.polls
                    return {"state": "done" if done else "pending"}
        raise ValueError(asked)

    def _apply(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["generation"] <= self.fences.get(asked["key"], 0):
            return {"refused": True}
        asked.pop("do")
        self.applied.append(Applied(**asked))
        self._changed.notify_all()
        while asked["step"] in self.hold:
            self._changed.wait()
        return {"receipt": f"r-{asked['key'][:12]}", "linger_ms": self._random.randrange(self.linger_ms + 1)}

    def _fence(self, key: str, generation: int) -> dict[str, Any]:
        """From now on an older attempt cannot have the effect; whether one had it already."""
        self.fences[key] = max(generation, self.fences.get(key, 0))
        used = any(one.key == key for one in self.applied)
        return {"receipt": f"r-{key[:12]}" if used else None}

    # --- what a test may ask ---

    def fence(self, key: str, generation: int) -> str | None:
        """The receipt of the effect, if it happened; if not it cannot happen any more up to `generation`."""
        with self._lock:
            receipt: str | None = self._fence(key, generation)["receipt"]
            return receipt

    def count(self) -> int:
        with self._lock:
            return len(self.applied)

    def by_key(self) -> dict[str, list[Applied]]:
        """Effects by effect key."""
        with self._lock:
            found: dict[str, list[Applied]] = defaultdict(list)
            for one in self.applied:
                found[one.key].append(one)
            return dict(found)

    def of_step(self, step: str) -> list[Applied]:
        with self._lock:
            return [one for one in self.applied if one.step == step]

    def of_workflow(self, workflow: str) -> list[Applied]:
        with self._lock:
            return [one for one in self.applied if one.workflow == workflow]

    def let_go(self, step: str) -> None:
        with self._changed:
            self.hold.discard(step)
            self._changed.notify_all()


class _Answering(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        try:
            line = self.rfile.readline()
            if line:
                self.wfile.write(json.dumps(self.server.ledger.answer(json.loads(line))).encode() + b"\n")
        except OSError:  # whoever asked was killed
            return


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(("127.0.0.1", 0), _Answering)


@contextmanager
def channel(ledger: Ledger) -> Iterator[str]:
    """The channel, open on a port of its own; gives its address."""
    with _Server(ledger) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


async def ask(address: str, **question: Any) -> dict[str, Any]:
    """What a handler does to reach the channel. Raises OSError when there is no answer."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(json.dumps(question).encode() + b"\n")
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise OSError("the channel gave no answer")
    answer: dict[str, Any] = json.loads(line)
    return answer
