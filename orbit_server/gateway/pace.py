"""How fast one worker may send frames. Pure: instants are handed in."""

from __future__ import annotations

__all__ = ["Pace"]


class Pace:
    """A bucket of `burst` frames that fills with `per_second`; says how long to wait before the next one."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._per_ms = per_second / 1_000
        self._burst = float(burst)
        self._left = float(burst)
        self._at_ms: int | None = None

    def wait_ms(self, at_ms: int) -> int:
        """Take one frame at `at_ms`; 0 while the worker keeps within its pace."""
        if self._at_ms is not None:
            self._left = min(self._burst, self._left + (at_ms - self._at_ms) * self._per_ms)
        self._at_ms = at_ms
        self._left -= 1
        return 0 if self._left >= 0 else int(-self._left / self._per_ms) + 1
