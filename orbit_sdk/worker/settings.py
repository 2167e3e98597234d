"""What a worker is told once. Durations are milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.protocol.worker import SLOTS_MAX

__all__ = ["WorkerSettings", "socket_url"]

PATH = "/v1/worker"
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Where to connect and how much to run.

    `token` may be a function, asked before each connection, so that a rotated one is picked up. `queues`:
    what to take work from. `slots` is how many attempts run at once, in coroutines, threads and processes
    together; `threads` and `processes` are how many of them may be in threads and in processes
    (default: all).
    `grace_ms` is how long a stop waits for what runs. `health_port`: where `/healthz`, `/readyz` and
    `/metrics` are answered, on every address (0: any free port); without it nothing listens. A thread that
    goes on for `stuck_after_ms` after its attempt is over is given up for lost and replaced, at most
    `stuck_max` at a time (default: as many as there are slots).
    """

    url: str
    token: str | Callable[[], str]
    queues: tuple[str, ...] = ()
    slots: int = 16
    threads: int | None = None
    processes: int | None = None
    name: str = "worker"
    build: str = ""
    grace_ms: int = 25_000
    connect_timeout_ms: int = 10_000
    backoff_ms: int = 1_000
    backoff_max_ms: int = 15_000
    resend_ms: int = 10_000
    progress_every_ms: int = 1_000
    health_port: int | None = None
    health_host: str | None = None
    stuck_after_ms: int = 5_000
    stuck_max: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= SLOTS_MAX:
            raise InvalidArgument.at("slots", f"is {self.slots}; it must be from 1 to {SLOTS_MAX}")
        for name, most in (("threads", self.threads), ("processes", self.processes)):
            if most is not None and not 1 <= most <= self.slots:
                raise InvalidArgument.at(name, f"is {most}; it must be from 1 to the {self.slots} slots")
        if self.grace_ms < 0:
            raise InvalidArgument.at("grace_ms", "is negative")
        if self.health_port is not None and not 0 <= self.health_port <= 65_535:
            raise InvalidArgument.at("health_port", f"is {self.health_port}; it must be from 0 to 65535")
        if self.stuck_after_ms < 0 or (self.stuck_max is not None and self.stuck_max < 0):
            raise InvalidArgument.at(
                "stuck_after_ms" if self.stuck_after_ms < 0 else "stuck_max", "is negative"
            )
        socket_url(self.url)

    @property
    def replaced_max(self) -> int:
        """How many threads may be given up for lost at a time."""
        return self.slots if self.stuck_max is None else self.stuck_max

    @property
    def current_token(self) -> str:
        """The token to show now."""
        return self.token() if callable(self.token) else self.token


def socket_url(url: str) -> str:
    """`https://host/base` -> `wss://host/base/v1/worker`. InvalidArgument for what is no such address."""
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise InvalidArgument.at("url", f"is {url!r}; write http://host:port or https://host")
    path = parts.path.rstrip("/")
    if not path.endswith(PATH):
        path += PATH
    return urlunsplit((scheme, parts.netloc, path, "", ""))
