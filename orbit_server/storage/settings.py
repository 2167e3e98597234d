"""What storage may be told: one frozen value with defaults that suit a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from orbit_server.clock import Clock, SystemClock
from orbit_server.storage.commands import Finalizer
from orbit_server.storage.faults import Faults


def _ignore_hints(hints: Sequence[object]) -> None:
    """Nobody waits for hints."""


def _ignore_fatal(reason: str) -> None:
    """Nobody ends the process: the database only refuses everything from then on."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Limits and seams of one `Database`.

    Args:
        clock: the machine's clock. On SQLite it is the database clock; on MySQL it only measures.
        group_max: commands in one transaction.
        queue_max: commands that may wait, for requests and for background work each.
        lanes, background_lanes: concurrent transactions on MySQL (SQLite has one writer).
        readers: read-only connections.
        deadline_ms: one transaction on MySQL; after it the connection is dropped.
        budget_ms: all tries of a group together; after it callers get UNAVAILABLE.
        retries: tries after a transient fault before the group is taken apart.
        busy_timeout_ms: how long a lock is waited for (SQLite busy, InnoDB lock wait).
        clock_skew_max_ms: a larger difference between the two machines' clocks stops the start.
        lease_ms: how long sweeping and claiming rest after the clock jumped.
        finalizers: work joined to every group.
        on_commit: gets the hints of a group after its commit, on the event loop.
        on_fatal: called when durability is no longer certain (I/O error at COMMIT): end the process.
        seed: of the retry jitter.
        faults: where tests put in failures.
    """

    clock: Clock = field(default_factory=SystemClock)
    group_max: int = 128
    queue_max: int = 10_000
    lanes: int = 2
    background_lanes: int = 2
    readers: int = 4
    deadline_ms: int = 10_000
    budget_ms: int = 30_000
    retries: int = 4
    busy_timeout_ms: int = 5_000
    clock_skew_max_ms: int = 2_000
    lease_ms: int = 30_000
    finalizers: Sequence[Finalizer] = ()
    on_commit: Callable[[Sequence[object]], None] = _ignore_hints
    on_fatal: Callable[[str], None] = _ignore_fatal
    seed: int | None = None
    faults: Faults | None = None
