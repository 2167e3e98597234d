"""What the gateway stands on: handed in once, by bootstrap or by a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.dispatch.sessions import WorkerSession
from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.commands import Command
from orbit_server.storage.database import Database

__all__ = ["CompanionOf", "DispatchPort", "GatewayParts", "GatewaySettings"]

CompanionOf = Callable[[Id, Id], Command[Any] | None]
"""(task id, workflow id) -> what lets the workflow see the task's change in the same transaction."""


class DispatchPort(Protocol):
    """The dispatcher, as the gateway sees it. All calls return at once."""

    def add(self, session: WorkerSession) -> None:
        """A worker has greeted. It gets nothing before it announces slots."""

    def announce(
        self, session_id: Id, number: int, slots: Mapping[str, int], total: int | None = None
    ) -> None:
        """Room for `total` more attempts, of single queues at most `slots`; replaces what was said before.

        `number` is the worker's ready that a started push may answer.
        """

    def remove(self, session_id: Id) -> None:
        """The worker is gone."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Durations are milliseconds.

    Args:
        hello_ms: how long a connection may take to say hello.
        send_ms: how long one frame may take to leave; a slower reader is disconnected.
        frames_waiting_max, bytes_waiting_max: what may wait to be sent before the same happens.
        frames_in_work_max: frames of one session whose commands are not answered yet; then reading stops.
        frames_per_second, frames_burst: a worker that sends faster is read more slowly.
        sessions_max: sessions of this node.
        sweep_ms: how often attempts that were claimed but never pushed are looked for.
        validity_ms: how often the credentials of open sessions are checked again.
    """

    hello_ms: int = 10_000
    send_ms: int = 10_000
    frames_waiting_max: int = 1_024
    bytes_waiting_max: int = 8 * 1024 * 1024
    frames_in_work_max: int = 64
    frames_per_second: int = 5_000
    frames_burst: int = 10_000
    sessions_max: int = 10_000
    heartbeat_ms: int = DEFAULTS.heartbeat_ms
    silence_ms: int = DEFAULTS.session_silence_ms
    sweep_ms: int = 1_000
    validity_ms: int = 5_000


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """`authenticate` raises Unauthenticated; `is_valid` says whether a credential still is good."""

    database: Database
    dispatch: DispatchPort
    authenticate: Callable[[str], Awaitable[Principal]]
    is_valid: Callable[[Id], Awaitable[bool]]
    clock: Clock
    node_id: Id
    lines: KeyLines
    companion_of: CompanionOf | None = None
    times: PulseTimes = TIMES
    settings: GatewaySettings = field(default_factory=GatewaySettings)
