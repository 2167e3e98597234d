"""What every request is handed: the parts of a running server, built once."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from orbit_sdk.values.ids import Id
from orbit_server.api.arrivals import Arrivals
from orbit_server.api.waiting import Movements
from orbit_server.clock import Clock
from orbit_server.platform.authenticator import Authenticator
from orbit_server.platform.hints import Hints
from orbit_server.pulse.limits.known import KnownLimits
from orbit_server.pulse.times import PulseTimes
from orbit_server.settings import Settings
from orbit_server.storage.database import Database
from orbit_server.weave.state.running import Weave

Sample = tuple[str, Mapping[str, str], float]
"""Name, labels and value of one figure."""


@dataclass(slots=True)
class Health:
    """What changes while a server runs. `ready` is set once everything has started."""

    ready: bool = False
    draining: bool = False
    requests: int = 0
    """In work at this moment."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no request is in work, once there was one."""

    def enter(self) -> None:
        """A request begins."""
        self.requests += 1
        self.idle.clear()

    def leave(self) -> None:
        """A request has ended."""
        self.requests -= 1
        if not self.requests:
            self.idle.set()


@dataclass(slots=True)
class HttpMetrics:
    """Answers by route and status, and the time they took together (microseconds)."""

    answers: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    took_us: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Server:
    """One node. `figures` are asked for more samples when metrics are read."""

    settings: Settings
    clock: Clock
    database: Database
    authenticator: Authenticator
    weave: Weave
    hints: Hints
    movements: Movements
    limits: KnownLimits
    times: PulseTimes
    arrivals: Arrivals
    node_id: Id
    secret: bytes
    """The same on every node of a database; it only makes cursors of one database unfit for another."""
    health: Health = field(default_factory=Health)
    http: HttpMetrics = field(default_factory=HttpMetrics)
    figures: tuple[Callable[[], Iterable[Sample]], ...] = ()

    def cursor_key(self, namespace_id: Id) -> bytes:
        """What cursors of a namespace are bound to."""
        return hashlib.blake2b(namespace_id.encode(), key=self.secret, digest_size=32).digest()
