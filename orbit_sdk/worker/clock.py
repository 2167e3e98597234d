"""The clocks of a worker: one that measures leases, one that handlers see as a deadline."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

__all__ = ["deadline_after", "monotonic_ms"]

# Where it exists, the clock that also counts while the machine is suspended: a lease does not wait.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic_ms() -> int:
    """Milliseconds from an arbitrary start; never goes back."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def deadline_after(duration_ms: int) -> datetime:
    """The wall-clock instant `duration_ms` from now (UTC), for handlers to read; leases never use it."""
    return datetime.now(UTC) + timedelta(milliseconds=duration_ms)
