"""One run of `orbit dev`: start the server, publish the module, start the worker, watch over both."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbit_sdk.cli.dev.children import Child, Children
from orbit_sdk.cli.profile import FOLDER, Profile, read_profile, write_profile
from orbit_sdk.cli.publish import publish_one
from orbit_sdk.cli.sources import Loaded
from orbit_sdk.errors import Detail, Unavailable

__all__ = ["DevOptions", "Session", "data_folder"]

_START_S = 30.0
_LOOK_S = 0.2
_RESTARTS = 5
_SETTLED_S = 30.0
_WORKER_GRACE_S = 6.0


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What a run was told. `settings` are options of `orbit server`, passed on as they are."""

    targets: tuple[str, ...]
    port: int
    settings: tuple[str, ...]
    audit: bool
    ephemeral: bool
    log_level: str
    slots: int


@dataclass(frozen=True, slots=True)
class Data:
    """Where a run keeps what it keeps. `home` holds the profile, `database` the file."""

    home: Path
    database: Path
    token: str


@contextmanager
def data_folder(options: DevOptions) -> Generator[Data]:
    """`.orbit/` of the working folder; a temporary one for the database when nothing is to be kept."""
    home = Path.cwd() / FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    before = read_profile(home)
    same = before is not None and before.audit == options.audit
    token = before.token if before is not None and same else f"orbit_{secrets.token_hex(32)}"
    if not options.ephemeral:
        yield Data(home, home / "orbit.db", token)
        return
    folder = Path(tempfile.mkdtemp(prefix="orbit-dev-"))
    try:
        yield Data(home, folder / "orbit.db", token)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if before is not None:
            write_profile(home, before)
        else:
            (home / "profile.json").unlink(missing_ok=True)


class Session:
    """The children of one run, and what became of them."""

    def __init__(self, options: DevOptions, data: Data, children: Children) -> None:
        self.options = options
        self.data = data
        self._children = children
        self._server: Child | None = None
        self._worker: Child | None = None
        self._restarts = 0
        self.url = ""

    @property
    def pids(self) -> dict[str, int | None]:
        """Process ids by role."""
        return {
            role: None if child is None else child.pid
            for role, child in (("server", self._server), ("worker", self._worker))
        }

    def start_server(self) -> None:
        """Start it and return at once; `await_server` waits until it answers."""
        arguments = ["server", "--json", "--development", "--migrate", "--host", "127.0.0.1"]
        arguments += ["--database", f"sqlite:///{self.data.database}", "--port", str(self.options.port)]
        environment = {"ORBIT_DEVELOPMENT_TOKEN": self.data.token}
        if self.options.audit:
            environment["ORBIT_DEVELOPMENT_AUDIT"] = "1"
        log = self.data.home / "server.log"
        log.unlink(missing_ok=True)
        self._server = self._children.start(
            Child("server", [*arguments, *self.options.settings], environment, log=log, speaks=True)
        )

    def await_server(self) -> None:
        """Wait until it answers requests, and leave the profile. Raises Unavailable with its last words."""
        assert self._server is not None
        said = self._server.said(_START_S)
        if isinstance(said, dict) and "error" in said:
            raise self._refused(said["error"])
        if not isinstance(said, dict) or "url" not in said:
            raise Unavailable(self._why("the server did not start"))
        self.url = str(said["url"])
        write_profile(self.data.home, Profile(self.url, self.data.token, self.options.audit))

    def publish(self, loaded: Loaded) -> list[dict[str, Any]]:
        """Publish what was loaded as current. A version that holds other content is left as it is."""
        from orbit_sdk.client import Orbit

        with Orbit(self.url, self.data.token) as client:
            return [publish_one(client, source, current=True) for source in loaded.sources]

    def start_worker(self) -> None:
        """A worker for every handler of the targets."""
        arguments = ["worker", *self.options.targets, "--log-level", self.options.log_level]
        arguments += ["--slots", str(self.options.slots), "--name", "dev", "--grace", "5s"]
        environment = {"ORBIT_URL": self.url, "ORBIT_TOKEN": self.data.token}
        self._worker = self._children.start(Child("worker", arguments, environment))

    def restart_worker(self) -> None:
        """Let what runs come to its end (5 s), and start the worker with the files as they are now."""
        if self._worker is not None:
            self._worker.stop(_WORKER_GRACE_S, lambda: False)
            self._worker.start()
            self._restarts = 0

    def watch(self, between: Callable[[], Iterator[str]] | None = None) -> Iterator[str]:
        """Run until the server ends; says what people should know. A worker that dies is started again.

        `between` is asked again and again for more to say.

        Raises Unavailable when the server ends by itself, or the worker keeps dying.
        """
        began = time.monotonic()
        while True:
            time.sleep(_LOOK_S)
            if between is not None:
                yield from between()
            if self._server is not None and self._server.exit_code is not None:
                raise Unavailable(self._why(f"the server ended with code {self._server.exit_code}"))
            worker = self._worker
            if worker is None or worker.exit_code is None:
                continue
            if time.monotonic() - began > _SETTLED_S:
                self._restarts = 0
            self._restarts += 1
            if self._restarts > _RESTARTS:
                raise Unavailable(
                    f"the worker ended {self._restarts} times, the last with {worker.exit_code}"
                )
            yield f"the worker ended with code {worker.exit_code}; it is started again"
            began = time.monotonic()
            worker.stop(0, lambda: True)
            worker.start()

    def _refused(self, error: dict[str, Any]) -> Unavailable:
        message = f"the server did not start: {error['message']}"
        details = [Detail(item["field"], item["reason"]) for item in error.get("details", ())]
        if any(detail.field == "schema" for detail in details):
            message += f" (this folder's database is {self.data.database}: move it away to begin anew)"
        return Unavailable(message, details)

    def _why(self, what: str) -> str:
        words = self._server.last_words() if self._server is not None else ""
        return f"{what}\n{words}" if words else what
