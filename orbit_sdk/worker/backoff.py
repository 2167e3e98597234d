"""How long to wait before the next connection: full jitter, so that workers do not all return at once."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Backoff"]

_DOUBLINGS_MAX = 16


class Backoff:
    """`chance` gives a number in [0, 1)."""

    def __init__(self, base_ms: int, max_ms: int, chance: Callable[[], float]) -> None:
        self._base_ms = base_ms
        self._max_ms = max_ms
        self._chance = chance
        self._failures = 0

    def next_ms(self) -> int:
        """A random wait below a ceiling that doubles with every failure in a row."""
        ceiling = min(self._max_ms, self._base_ms * 2 ** min(self._failures, _DOUBLINGS_MAX))
        self._failures += 1
        return int(self._chance() * ceiling)

    def reset(self) -> None:
        """A connection lasted: begin again with short waits."""
        self._failures = 0
