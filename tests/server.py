"""Real servers for tests: inside the test process, or as a process of their own that may be killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orbit_server.bootstrap import Parts, open_database, running
from orbit_server.clock import Clock, SystemClock
from orbit_server.platform.credentials import Rights
from orbit_server.platform.offline import create_credential
from orbit_server.platform.permissions import PERMISSIONS
from orbit_server.settings import Settings
from orbit_server.storage.faults import Faults
from orbit_server.storage.migrations import migrate

ROOT: Final = Path(__file__).resolve().parents[1]
EVERYTHING: Final = Rights(tuple(sorted(PERMISSIONS)), ("*",), ("*",), ("*",))
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 60.0


# --- inside the test process -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the HTTP interface."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def data(self) -> Any:
        """What a successful answer carries."""
        assert "data" in self.body, self.body
        return self.body["data"]

    @property
    def code(self) -> str:
        """The code of a failed answer."""
        assert "error" in self.body, self.body
        code: str = self.body["error"]["code"]
        return code

    @property
    def fields(self) -> list[str]:
        """The fields that a failed answer names."""
        return [detail["field"] for detail in self.body["error"]["details"]]


class Api:
    """Calls of the HTTP interface of a node in this process, as one credential."""

    def __init__(self, parts: Parts, token: str | None) -> None:
        self.parts = parts
        self.token = token
        self._client = parts.app.test_client()
        self._keys = 0

    async def get(self, path: str, **query: object) -> Reply:
        """GET with query parameters."""
        return await self.send("GET", path, query={name: str(value) for name, value in query.items()})

    async def post(self, path: str, body: object, *, key: str | None = "") -> Reply:
        """POST a JSON body. `key`: the Idempotency-Key; a fresh one by default, None for none."""
        headers = {"Content-Type": "application/json"}
        if key == "":
            self._keys += 1
            key = f"{os.getpid()}-{id(self)}-{self._keys}"
        if key is not None:
            headers["Idempotency-Key"] = key
        return await self.send("POST", path, data=json.dumps(body).encode(), headers=headers)

    async def send(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Reply:
        """Any request at all."""
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        response = await self._client.open(
            path, method=method, headers=sent, data=data, query_string=dict(query) if query else None
        )
        raw = await response.get_data()
        kind = response.headers.get("Content-Type", "")
        return Reply(
            response.status_code,
            json.loads(raw) if kind.startswith("application/json") and raw else raw.decode(),
            response.headers,
        )

    async def with_rights(self, rights: Rights = EVERYTHING, **other: Any) -> Api:
        """The same interface as another, new credential."""
        made = await create_credential(
            self.parts.server.database, self.parts.server.clock, rights, name="other", **other
        )
        return Api(self.parts, made.token)


@asynccontextmanager
async def node(
    url: str,
    *,
    rights: Rights = EVERYTHING,
    clock: Clock | None = None,
    faults: Faults | None = None,
    **settings: Any,
) -> AsyncIterator[Api]:
    """A node over this database, which is brought to the present schema; no socket is opened."""
    await asyncio.to_thread(migrate, url)
    async with running(Settings(database=url, **settings), clock=clock, faults=faults) as parts:
        made = await create_credential(parts.server.database, parts.server.clock, rights, name="tests")
        yield Api(parts, made.token)


# --- a process of its own ----------------------------------------------------------------------------------


def new_token(url: str, rights: Rights = EVERYTHING) -> str:
    """Bring the database to the present schema and make a credential. No server may hold a SQLite file."""
    migrate(url)

    async def make() -> str:
        clock = SystemClock()
        async with open_database(Settings(database=url), clock) as database:
            return (await create_credential(database, clock, rights, name="tests")).token

    with ThreadPoolExecutor(1) as pool:  # the caller may be inside an event loop
        return pool.submit(asyncio.run, make()).result()


@dataclass
class ServerProcess:
    """A server as a process. It may be killed and started again; `url` is valid while it runs."""

    database: str
    token: str
    log_path: Path
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def headers(self) -> dict[str, str]:
        """What every request needs."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def log(self) -> str:
        """Everything the server has written to standard error, restarts included."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self, port: int = 0) -> None:
        """Start it (again) and wait until it answers requests."""
        assert self._process is None, "the server runs already"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "orbit_server",
                    "--database",
                    self.database,
                    "--port",
                    str(port),
                    *self.options,
                ],
                cwd=ROOT,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.url = json.loads(self._first_line())["url"]

    def restart(self) -> None:
        """Start it again on the port it had."""
        self.start(int(self.url.rpartition(":")[2]))

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it in an orderly way; answers its exit code."""
        return self._end(signal.SIGTERM)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it has ended by itself; answers its exit code."""
        process, self._process = self._process, None
        assert process is not None
        code = process.wait(seconds)
        self._close(process)
        return code

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        limit = time.monotonic() + START_SECONDS
        found = b""
        descriptor = self._process.stdout.fileno()
        while not found.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, limit - time.monotonic()))
            part = os.read(descriptor, 4096) if ready else b""
            if not part:
                self.kill()
                raise RuntimeError(f"the server did not start:\n{self.log[-4000:]}")
            found += part
        return found.decode()

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._close(process)
        return code

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> None:
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def server_process(
    url: str,
    folder: Path,
    *options: str,
    rights: Rights = EVERYTHING,
    environment: Mapping[str, str] | None = None,
) -> Iterator[ServerProcess]:
    """A server process over this database, with a token for it; ended with the block, however that ends."""
    server = ServerProcess(url, new_token(url, rights), folder / "server.log", options, environment or {})
    try:
        server.start()
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.kill()


async def until(holds: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Ask until the answer is true; answers it. Fails when the time is over."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.02)
