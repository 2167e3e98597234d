"""How much a server may still push to one worker session: the server's reading of `ready`. Pure.

A `ready` says how many items the worker can take and how many it had seen when it wrote that. Whatever was
pushed beyond `seen` was on its way and is taken off again, so no slot is ever promised twice.
"""

from __future__ import annotations

from collections import Counter, deque

from orbit_sdk.protocol.worker import Ready

__all__ = ["Credit"]


class Credit:
    """Slots announced, minus items on their way, minus what the dispatcher has reserved."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.announced_ms = 0
        self.pushed = 0
        self._ready: Ready | None = None
        self._seen = 0
        self._on_their_way: deque[str] = deque()
        self._on_their_way_by: Counter[str] = Counter()
        self._reserved: Counter[str] = Counter()
        self._reserved_all = 0

    def refresh(self, ready: Ready, at_ms: int) -> str | None:
        """Take a new announcement; the text says why it is not a possible one."""
        if self.number is not None and ready.number <= self.number:
            return f"ready {ready.number} is not newer than {self.number}"
        if not self._seen <= ready.seen <= self.pushed:
            return f"ready says that {ready.seen} items arrived; {self._seen} to {self.pushed} are possible"
        for _ in range(ready.seen - self._seen):
            self._on_their_way_by[self._on_their_way.popleft()] -= 1
        self._seen, self._ready = ready.seen, ready
        self.number, self.announced_ms = ready.number, at_ms
        return None

    def close(self) -> None:
        """No more room, whatever was announced (draining)."""
        self._ready = None

    def room(self, queue: str | None = None) -> int:
        """Items that may be reserved now, of one queue or of all together."""
        ready = self._ready
        if ready is None:
            return 0
        room = ready.slots - len(self._on_their_way) - self._reserved_all
        if queue is not None and queue in ready.queues:
            taken = self._on_their_way_by[queue] + self._reserved[queue]
            room = min(room, ready.queues[queue] - taken)
        return max(room, 0)

    def answers(self, at_ms: int, lease_ms: int) -> int | None:
        """The number that a started push may answer; None when it is older than half a lease."""
        if self._ready is None or 2 * (at_ms - self.announced_ms) > lease_ms:
            return None
        return self.number

    def reserve(self, queue: str, count: int) -> int:
        """Set aside up to `count` slots; says how many."""
        granted = min(count, self.room(queue))
        self._reserved[queue] += granted
        self._reserved_all += granted
        return granted

    def release(self, queue: str, count: int) -> None:
        """Give back reserved slots that were not used."""
        count = min(count, self._reserved[queue])
        self._reserved[queue] -= count
        self._reserved_all -= count

    def push(self, queue: str, *, reserved: bool = True) -> None:
        """An item is being written to the socket; it uses a reserved slot, if there is one."""
        if reserved:
            self.release(queue, 1)
        self.pushed += 1
        self._on_their_way.append(queue)
        self._on_their_way_by[queue] += 1
