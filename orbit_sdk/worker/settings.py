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
    what to take work from. `slots` is how many attempts run at once, in threads and coroutines together.
    `grace_ms` is how long a stop waits for what runs.
    """

    url: str
    token: str | Callable[[], str]
    queues: tuple[str, ...] = ()
    slots: int = 16
    name: str = "worker"
    build: str = ""
    grace_ms: int = 25_000
    connect_timeout_ms: int = 10_000
    backoff_ms: int = 1_000
    backoff_max_ms: int = 15_000
    resend_ms: int = 10_000
    progress_every_ms: int = 1_000

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= SLOTS_MAX:
            raise InvalidArgument.at("slots", f"is {self.slots}; it must be from 1 to {SLOTS_MAX}")
        if self.grace_ms < 0:
            raise InvalidArgument.at("grace_ms", "is negative")
        socket_url(self.url)

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
