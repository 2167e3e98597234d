"""Watches the database clock against this machine's monotonic clock: a jump makes time-driven work rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from orbit_server.storage.metrics import StorageMetrics

JUMP_US = 1_000_000
_SLOW_US = 500_000
"""A reading that took longer than this says nothing about the clock."""


@dataclass(slots=True)
class ClockGuard:
    """Compares every reading of the database clock with the last one."""

    lease_us: int
    metrics: StorageMetrics
    suspect_until: int = 0
    """Monotonic microseconds until which sweeping and claiming must rest."""
    _offset: int | None = field(default=None)

    def observe(self, database_us: int, before_us: int, after_us: int) -> None:
        """Take in one reading, with the monotonic time before and after it."""
        if after_us - before_us > _SLOW_US:
            return
        offset = database_us - after_us
        if self._offset is not None and abs(offset - self._offset) > JUMP_US:
            self.metrics.clock_jumps += 1
            self.suspect_until = after_us + self.lease_us
        self._offset = offset
