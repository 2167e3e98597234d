"""Servers, workers and the channel as processes that may be killed at any moment, over one database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import text

from orbit_sdk.client import ClientSettings, OrbitClient
from orbit_server.verify import snapshot, violations
from tests.crash.channel import Ledger, channel
from tests.server import ROOT, ServerProcess, new_token

SHORT = (
    "--lease-ms=2000",
    "--heartbeat-ms=500",
    "--session-silence-ms=2000",
    "--loop-ms=200",
    "--idle-loop-ms=1000",
)
"""The ordinary settings, made short."""
PATIENT = ClientSettings(timeout=10, retry_for=60, backoff=0.05, max_backoff=0.5, poll=5)


@dataclass
class WorkerProcess:
    """A worker as a process. `url` is of the server (or whatever stands before it) that it talks to."""

    url: str
    token: str
    name: str
    log_path: Path
    channel: str
    module: str = "tests.crash.flows"
    queues: tuple[str, ...] = ()
    grace_ms: int = 1_000
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the worker is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self) -> None:
        assert self._process is None
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.crash.worker",
                    *(self.url, self.token, self.name, self.module),
                    *self.queues,
                ],
                cwd=ROOT,
                env={**os.environ, "CHANNEL": self.channel, "GRACE_MS": str(self.grace_ms)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


@dataclass
class House:
    """What stands over one database. Everything it starts ends with it."""

    url: str
    folder: Path
    token: str
    ledger: Ledger
    channel: str
    other_token: str = ""
    """Of a second person, where a test makes one."""
    servers: list[ServerProcess] = field(default_factory=list)
    workers: list[WorkerProcess] = field(default_factory=list)

    def server(self, *options: str, url: str | None = None, **environment: str) -> ServerProcess:
        """A further server process, running. `url`: another way to the same database."""
        log = self.folder / f"server{len(self.servers)}.log"
        server = ServerProcess(url or self.url, self.token, log, (*SHORT, *options), environment)
        self.servers.append(server)
        server.start()
        return server

    def worker(
        self, url: str | None = None, module: str = "tests.crash.flows", queues: tuple[str, ...] = ()
    ) -> WorkerProcess:
        """A further worker process of the first server, or of what listens at `url`."""
        name = f"worker{len(self.workers)}"
        address = url or self.servers[0].url
        worker = WorkerProcess(
            address, self.token, name, self.folder / f"{name}.log", self.channel, module, queues
        )
        self.workers.append(worker)
        worker.start()
        return worker

    def client(self, url: str | None = None, token: str | None = None) -> OrbitClient:
        return OrbitClient(url or self.servers[0].url, token or self.token, settings=PATIENT)

    def rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """What a query of the test's own finds in the database now."""
        with snapshot(self.url) as conn:
            return [tuple(row) for row in conn.execute(text(sql), values)]

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        for server in self.servers:
            server.kill()

    def check(self) -> None:
        """Nothing that must be impossible is in the database."""
        with snapshot(self.url) as conn:
            found = violations(conn)
        assert not found, "\n".join(str(one) for one in found)


@contextmanager
def house(url: str, folder: Path, ledger: Ledger | None = None) -> Iterator[House]:
    """A house over a new database; no server or worker runs yet."""
    ledger = ledger or Ledger()
    with ExitStack() as stack:
        address = stack.enter_context(channel(ledger))
        # In a thread, so that a test with a running event loop may build a house too.
        token = stack.enter_context(ThreadPoolExecutor(1)).submit(new_token, url).result()
        built = House(url, folder, token, ledger, address)
        stack.callback(built.close)
        yield built
