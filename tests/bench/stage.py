"""The processes of one measurement: a database, a server, a worker; the client is the benchmark itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import uvloop

from orbit_sdk.client import OrbitClient
from orbit_server.platform.namespaces import DEFAULT_NAMESPACE, namespace_id
from tests.bench.flows import WORKFLOWS
from tests.bench.machine import Meter, peak_mib
from tests.bench.watch import Watch
from tests.databases import MariaDb, sqlite_url
from tests.server import ROOT, ServerProcess, new_token

T = TypeVar("T")
Dialect = Literal["sqlite", "mariadb"]
SLOTS: Final = 128
_QUIET: Final = ("--log-level", "WARNING")


@dataclass
class Stage:
    """One server over one new database, with a worker process. Everything runs until the block ends."""

    dialect: Dialect
    folder: Path
    database: str
    server: ServerProcess
    mariadb: MariaDb | None = None
    environment: dict[str, str] = field(default_factory=dict)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        """All processes that work for the client, the database server included."""
        found = [self.server.pid, *[worker.pid for worker in self.workers]]
        if self.mariadb is not None:
            found.append(self.mariadb.pid)
        return found

    def meter(self) -> Meter:
        return Meter(self.pids)

    def memory(self) -> dict[str, float]:
        """Peak resident memory of server and worker, MiB."""
        found = {"server_peak_mib": peak_mib(self.server.pid)}
        if self.workers:
            found["worker_peak_mib"] = max(peak_mib(worker.pid) for worker in self.workers)
        return found

    def watch(self) -> Watch:
        """Looks into the database itself, so that watching costs the server nothing."""
        return Watch(self.database, namespace_id(DEFAULT_NAMESPACE))

    def client(self) -> OrbitClient:
        return OrbitClient(self.server.url, self.server.token)

    def spawn(self, module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A Python process of this benchmark; ended with the block."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            **options,
        )
        self.workers.append(process)
        return process

    def work(self) -> None:
        """Start the worker process."""
        self.spawn("tests.bench.worker", self.server.url, self.server.token, str(SLOTS))

    def run(self, job: Callable[[OrbitClient], Awaitable[T]]) -> T:
        """Run the client's part, on the loop that the product itself uses."""

        async def body() -> T:
            async with self.client() as client:
                return await job(client)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(body())

    def prepare(self) -> None:
        """Publish the workflows and run one to its end, so that caches are warm and the worker is there."""

        self.publish()

        async def warm(client: OrbitClient) -> None:
            for workflow in WORKFLOWS[:3]:
                handle = await client.start(workflow, 1)
                await handle.result(timeout=60)

        self.run(warm)

    def publish(self) -> None:
        """Publish all workflows."""

        async def publish(client: OrbitClient) -> None:
            for workflow in WORKFLOWS:
                await client.definitions.publish(workflow.compile().definition.to_json(), current=True)

        self.run(publish)


@contextmanager
def stage(
    dialect: Dialect, mariadb: MariaDb | None, *, samples: Path | None = None, worker: bool = True
) -> Iterator[Stage]:
    """A ready stage. With `samples`, every process samples itself into that folder."""
    environment = {}
    if samples is not None:
        environment = {"PYTHONPATH": str(Path(__file__).parent / "sampler"), "ORBIT_SAMPLES": str(samples)}
    with tempfile.TemporaryDirectory(prefix="orbit-bench-", dir=os.environ.get("BENCH_TMP")) as name:
        folder = Path(name)
        url = sqlite_url(folder) if mariadb is None else mariadb.create_database()
        server = ServerProcess(url, new_token(url), folder / "server.log", _QUIET, environment)
        built = Stage(dialect, folder, url, server, mariadb, environment)
        try:
            server.start()
            if worker:
                built.work()
                built.prepare()
            yield built
        finally:
            _end(built)


def _end(built: Stage) -> None:
    for worker in built.workers:
        worker.terminate()
    for worker in built.workers:
        try:
            worker.wait(30)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        if worker.stdout is not None:
            worker.stdout.close()
    with contextlib.suppress(ProcessLookupError):
        built.server.stop()
    if built.mariadb is not None:
        built.mariadb.drop_database(built.database)
