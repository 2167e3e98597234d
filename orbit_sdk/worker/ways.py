"""Room per way of running: coroutines are cheap, threads less so, processes cost memory and cores. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from orbit_sdk.handlers import Handler
from orbit_sdk.protocol.worker import OfferItem
from orbit_sdk.values.names import handler_key

__all__ = ["Way", "Ways", "way_of"]

Way: TypeAlias = Literal["loop", "thread", "process"]
AnyHandler: TypeAlias = Handler[..., Any]


def way_of(handler: AnyHandler) -> Way:
    """Where attempts of the handler run."""
    return "loop" if handler.is_async else handler.run_in


class Ways:
    """What runs where, and how much more of each queue may come.

    The server knows queues, not ways: a queue is capped by the ways of the handlers that are declared for it.
    What comes beyond that all the same waits in this process for its turn, with its lease renewed.
    """

    def __init__(self, handlers: Iterable[AnyHandler], limits: Mapping[Way, int | None]) -> None:
        self._limits: dict[Way, int] = {way: most for way, most in limits.items() if most is not None}
        self._of: dict[str, Way] = {}
        self._queues: dict[str, set[Way]] = {}
        for one in handlers:
            way = way_of(one)
            if way in self._limits:
                self._of[one.key] = way
                self._queues.setdefault(one.queue, set()).add(way)
        self._held: dict[str, Way] = {}
        self._busy: Counter[Way] = Counter()

    def take(self, offer: OfferItem) -> None:
        """The attempt runs, or waits to."""
        way = self._of.get(handler_key(offer.handler, offer.handler_version))
        if way is not None:
            self._held[offer.attempt_id] = way
            self._busy[way] += 1

    def release(self, attempt_id: str) -> None:
        """Its place is free; harmless when it had none."""
        way = self._held.pop(attempt_id, None)
        if way is not None:
            self._busy[way] -= 1

    def caps(self, free: int, served: Iterable[str]) -> dict[str, int]:
        """Of `free` slots, how many each served queue may use; queues without such a limit are not named."""
        return {
            queue: max(0, min(free, *(self._limits[way] - self._busy[way] for way in self._queues[queue])))
            for queue in served
            if queue in self._queues
        }
