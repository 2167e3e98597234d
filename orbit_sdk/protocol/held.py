"""The attempts that a worker process holds, over all its connections: leases, repeats, open results. Pure.

Instants are milliseconds of a monotonic clock that the caller hands in. A lease is counted from when the
request that got it was *sent*, less a margin, so the worker always stops before the server could think so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from orbit_sdk.protocol.worker import Claim, InFlight, OfferItem, ResultItem

__all__ = ["Held", "HeldAttempts", "Phase"]

REMEMBERED_MAX = 200_000
MARGIN_MS_MAX = 1_000


class Phase(StrEnum):
    """ASKED: a start was asked for. RUNNING: the handler has it. FINISHED: its result is not settled yet."""

    ASKED = "ASKED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"


@dataclass(slots=True)
class Held:
    """One attempt. `lost` means that its lease is gone: nobody renews it, a result of it is evidence only."""

    offer: OfferItem
    phase: Phase
    lease_end_ms: int
    lost: bool = False
    result: ResultItem | None = None
    sent_ms: int | None = None

    @property
    def claim(self) -> Claim:
        """What requests about it say."""
        return Claim(attempt_id=self.offer.attempt_id, generation=self.offer.generation)


class HeldAttempts:
    """The book of a worker process. It outlives every connection; `Link` writes it, the worker reads it."""

    def __init__(self, lease_ms: int = 30_000) -> None:
        self.lease_ms = lease_ms
        self._held: dict[str, Held] = {}
        self._remembered: dict[str, int] = {}
        self._fresh: list[str] = []
        self._unsettled = 0
        self._asked = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, attempt_id: str) -> bool:
        return attempt_id in self._held

    def __iter__(self) -> Iterator[Held]:
        return iter(tuple(self._held.values()))

    def get(self, attempt_id: str) -> Held | None:
        """The attempt, if it is held."""
        return self._held.get(attempt_id)

    def knows(self, attempt_id: str, at_ms: int) -> bool:
        """Held now, or finished within the last two leases: a second offer of it is dropped."""
        return attempt_id in self._held or self._remembered.get(attempt_id, at_ms) > at_ms

    def lease_end(self, sent_ms: int, lease_ms: int) -> int:
        """When the worker stops under a lease whose request left at `sent_ms`."""
        return sent_ms + lease_ms - min(MARGIN_MS_MAX, lease_ms // 10)

    def take(self, offer: OfferItem, phase: Phase, lease_end_ms: int) -> Held:
        """Hold a new attempt."""
        held = Held(offer, phase, lease_end_ms)
        self._held[offer.attempt_id] = held
        self._asked += phase is Phase.ASKED
        return held

    def begin(self, held: Held, lease_end_ms: int) -> None:
        """The start that was asked for is granted."""
        self._asked -= held.phase is Phase.ASKED
        held.phase, held.lease_end_ms = Phase.RUNNING, lease_end_ms

    def extend(self, attempt_id: str, lease_end_ms: int) -> None:
        """A renewal was granted; an answer out of order never shortens a lease."""
        held = self._held.get(attempt_id)
        if held is not None and not held.lost:
            held.lease_end_ms = max(held.lease_end_ms, lease_end_ms)

    def finish(self, result: ResultItem) -> bool:
        """Keep a result until it is settled; False when the attempt is not held (any more)."""
        held = self._held.get(result.attempt_id)
        if held is None or held.result is not None:
            return False
        self._asked -= held.phase is Phase.ASKED
        held.phase, held.result, held.sent_ms = Phase.FINISHED, result, None
        self._fresh.append(result.attempt_id)
        self._unsettled += 1
        return True

    def forget(self, attempt_id: str, at_ms: int) -> Held | None:
        """It is over: settled, withdrawn or never begun. Remembered for two leases."""
        held = self._held.pop(attempt_id, None)
        if held is not None:
            self._unsettled -= held.phase is Phase.FINISHED
            self._asked -= held.phase is Phase.ASKED
            self._remembered[attempt_id] = at_ms + 2 * self.lease_ms
            self._prune(at_ms)
        return held

    def _prune(self, at_ms: int) -> None:
        over = len(self._remembered) - REMEMBERED_MAX
        for attempt_id, until in tuple(_first(self._remembered, max(over, 2))):
            if until > at_ms and over <= 0:
                break
            del self._remembered[attempt_id]
            over -= 1

    def lose(self, attempt_id: str) -> Held | None:
        """The lease is gone. Answers the attempt if its handler is still running under it."""
        held = self._held.get(attempt_id)
        if held is None or held.lost:
            return None
        held.lost = True
        return held if held.phase is Phase.RUNNING else None

    def to_renew(self) -> list[Claim]:
        """Everything with a lease worth keeping, unsettled results included."""
        return [held.claim for held in self._held.values() if not held.lost and held.phase is not Phase.ASKED]

    def overdue(self, at_ms: int) -> list[str]:
        """Attempts whose lease ended and that do not know it yet."""
        return [key for key, held in self._held.items() if not held.lost and held.lease_end_ms <= at_ms]

    def fresh_results(self, at_ms: int) -> list[ResultItem]:
        """Results never sent on this connection; from now on they count as sent."""
        keys, self._fresh = self._fresh, []
        return self._send(keys, at_ms)

    def stale_results(self, at_ms: int, again_after_ms: int) -> list[ResultItem]:
        """Results that were sent and not settled for `again_after_ms`; they count as sent again."""
        keys = [
            key
            for key, held in self._held.items()
            if held.sent_ms is not None and at_ms - held.sent_ms >= again_after_ms
        ]
        return self._send(keys, at_ms)

    def _send(self, keys: list[str], at_ms: int) -> list[ResultItem]:
        results: list[ResultItem] = []
        for key in keys:
            held = self._held.get(key)
            if held is not None and held.result is not None:
                held.sent_ms = at_ms
                results.append(held.result)
        return results

    @property
    def asked(self) -> int:
        """Offers whose start is asked for and not answered."""
        return self._asked

    @property
    def unsettled(self) -> int:
        """Results that the server has not settled yet."""
        return self._unsettled

    def in_flight(self) -> list[InFlight]:
        """What a new connection tells the server: everything that is held."""
        return [
            InFlight(
                attempt_id=held.offer.attempt_id,
                task_id=held.offer.task_id,
                generation=held.offer.generation,
                state=held.phase.value,
            )
            for held in self._held.values()
        ]

    def disconnected(self) -> None:
        """All results are sent again on the next connection."""
        self._fresh = [key for key, held in self._held.items() if held.result is not None]
        for key in self._fresh:
            self._held[key].sent_ms = None


def _first(mapping: dict[str, int], count: int) -> Iterator[tuple[str, int]]:
    for _, pair in zip(range(count), mapping.items(), strict=False):
        yield pair
