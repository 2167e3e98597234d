"""Everything that runs: the database, servers, workers, and the proxies between them, each mendable."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.crash.channel import Ledger
from tests.crash.house import House, WorkerProcess, house
from tests.crash.proxy import Proxy, proxy
from tests.databases import MariaDb, running_mariadb, sqlite_url
from tests.server import ServerProcess
from tests.soak.settings import SoakSettings


class Killable(Protocol):
    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at a process: seconds since its start, resident memory (MiB), open descriptors."""

    age: float
    memory: float
    descriptors: int


@dataclass
class Site:
    """Proxies stand before every server and, with MariaDB, before the database."""

    settings: SoakSettings
    at: House
    ledger: Ledger
    fronts: list[Proxy]
    back: Proxy | None
    mariadb: MariaDb | None
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    born: dict[int, float] = field(default_factory=dict)

    @property
    def servers(self) -> list[ServerProcess]:
        return self.at.servers

    @property
    def workers(self) -> list[WorkerProcess]:
        return self.at.workers

    def front(self, number: int) -> str:
        """An address at which a server can be reached as long as the site stands."""
        return f"http://127.0.0.1:{self.fronts[number % len(self.fronts)].port}"

    # --- ending and mending; these block ---

    def revive_server(self, number: int) -> None:
        """Kill the server if it still runs, and start it on its port; patient while its database is away."""
        server = self.servers[number]
        for left in reversed(range(20)):
            server.kill()
            try:
                server.restart()
            except RuntimeError:
                if not left:
                    raise
                time.sleep(0.5)
            else:
                return

    def revive_worker(self, number: int) -> None:
        worker = self.workers[number]
        worker.kill()
        worker.start()

    def restart_database(self, away: float) -> None:
        assert self.mariadb is not None
        self.mariadb.kill()
        time.sleep(away)
        self.mariadb.start()

    def mend(self) -> None:
        """Everything runs and every way is open."""
        for between in (*self.fronts, *([self.back] if self.back else [])):
            between.flow()
        for process in (*self.servers, *self.workers):
            with contextlib.suppress(ProcessLookupError, AssertionError):
                os.kill(process.pid, signal.SIGCONT)
        for number in range(len(self.servers)):
            if not self.alive(self.servers[number]):
                self.revive_server(number)
        for number, worker in enumerate(self.workers):
            if not worker.running:
                self.revive_worker(number)

    @staticmethod
    def alive(server: ServerProcess) -> bool:
        process = server._process
        return process is not None and process.poll() is None

    # --- looking ---

    def sample(self) -> None:
        """Memory and descriptors of every process that runs."""
        for kind, processes in (("server", self.servers), ("worker", self.workers)):
            for number, process in enumerate(processes):
                with contextlib.suppress(OSError, AssertionError):
                    pid = process.pid
                    born = self.born.setdefault(pid, time.monotonic())
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    self.samples[f"{kind}{number}/{pid}"].append(
                        Sample(
                            time.monotonic() - born,
                            pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
                            sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
                        )
                    )

    def keep_database(self) -> str:
        """A copy (or the files) of the database as it is now, for whoever looks into a failure."""
        if self.mariadb is not None:
            self.mariadb.stop()
            target = self.settings.folder / "mariadb-data"
            shutil.copytree(self.mariadb.folder / "data", target, dirs_exist_ok=True)
            self.mariadb.start()
            return str(target)
        return self.at.url.removeprefix("sqlite:///")


@contextmanager
def site(settings: SoakSettings) -> Iterator[Site]:
    """Everything is up and has been told of nothing yet; all of it ends with the block."""
    folder = settings.folder
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(seed=settings.seed, linger_ms=250)
    with ExitStack() as stack:
        mariadb, back, url, way = None, None, sqlite_url(folder), None
        if settings.database == "mariadb":
            # Socket paths are short: the server's own folder cannot be below a long one.
            place = Path(stack.enter_context(_short_folder()))
            mariadb = stack.enter_context(running_mariadb(place / "db"))
            url = mariadb.create_database()
            back = stack.enter_context(proxy(("127.0.0.1", mariadb.port)))
            way = url.replace(f":{mariadb.port}/", f":{back.port}/")
        at = stack.enter_context(house(url, folder, ledger))
        fronts = []
        for _ in range(settings.servers):
            server = at.server("--log-level=WARNING", url=way)
            port = int(server.url.rpartition(":")[2])
            fronts.append(stack.enter_context(proxy(("127.0.0.1", port))))
        built = Site(settings, at, ledger, fronts, back, mariadb)
        for number in range(settings.workers):
            at.worker(built.front(number))
        yield built


@contextmanager
def _short_folder() -> Iterator[str]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="orbit-soak-", ignore_cleanup_errors=True) as name:
        yield name
