"""Who stands next in line for a key, as this node read it a moment ago: so that the transaction which frees
the key may admit them at once.

A line is a guess that the touched rows confirm. An old one is not used: somebody more urgent may have come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from orbit_sdk.values.ids import Id
from orbit_server.pulse.keys.commands import Admit

_FRESH_US: Final = 200_000
_LINES_MAX: Final = 10_000


class KeyLines:
    """One per node. `monotonic_us` tells how old a line is."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._now = monotonic_us
        self._lines: dict[Id, tuple[int, list[Id]]] = {}

    def read(self, key_id: Id, waiters: Sequence[Id]) -> None:
        """What a look at the key has just shown, first in line first, without those that were admitted."""
        if len(self._lines) >= _LINES_MAX:
            oldest = self._now() - _FRESH_US
            self._lines = {key: line for key, line in self._lines.items() if line[0] >= oldest}
        self._lines.pop(key_id, None)
        if waiters and len(self._lines) < _LINES_MAX:
            self._lines[key_id] = (self._now(), list(reversed(waiters)))

    def next_of(self, key_id: Id, class_id: Id, *, lane: str) -> Admit | None:
        """The command that admits the first in line, for this lane; each is named once."""
        found = self._lines.get(key_id)
        if found is None:
            return None
        at, waiters = found
        if not waiters or at < self._now() - _FRESH_US:
            del self._lines[key_id]
            return None
        return Admit(key_id, class_id, (waiters.pop(),), beside=lane)
