"""Which workers of this node can take how much: numbered `ready` slots, reserved before a claim.

Plain bookkeeping on the event loop. A slot is either free, reserved (a claim for it is on its way) or the
worker's: what was pushed no longer counts here, the worker's next `ready` speaks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.sessions import HandlerKey, SessionFacts, WorkerSession
from orbit_server.pulse.tasks.decide.start import Claimant

Lane = tuple[Id, str]
"""Namespace and queue."""


@dataclass(slots=True, eq=False)
class Seat:
    """One session and what its last `ready` said."""

    session: WorkerSession
    facts: SessionFacts
    number: int = 0
    at_us: int = 0
    free: int = 0
    caps: dict[str, int] = field(default_factory=dict)
    """Free slots of single queues, where the worker capped them."""
    reserved: int = 0
    reserved_of: dict[str, int] = field(default_factory=dict)
    gone: bool = False

    def room(self, queue: str) -> int:
        """Free slots for a queue."""
        return min(self.free, self.caps.get(queue, self.free))

    def takes(self, key: HandlerKey, *, verify: bool) -> bool:
        """Whether the worker can run (or verify) the handler."""
        return key in (self.facts.can_verify if verify else self.facts.handlers)

    def take(self, queue: str) -> None:
        """Reserve one slot."""
        self.free -= 1
        if queue in self.caps:
            self.caps[queue] -= 1
        self.reserved += 1
        self.reserved_of[queue] = self.reserved_of.get(queue, 0) + 1

    def settle(self, queue: str, *, used: bool) -> None:
        """End a reservation: the slot is the worker's now, or free again."""
        self.reserved -= 1
        self.reserved_of[queue] -= 1
        if not used:
            self.free += 1
            if queue in self.caps:
                self.caps[queue] += 1


@dataclass(frozen=True, slots=True)
class Slot:
    """A reserved slot. Every slot is settled exactly once."""

    seat: Seat
    queue: str
    number: int

    @property
    def lane(self) -> Lane:
        """Where it takes work from."""
        return self.seat.facts.namespace_id, self.queue

    def takes(self, key: HandlerKey, *, verify: bool) -> bool:
        """Whether its worker can run (or verify) the handler."""
        return self.seat.takes(key, verify=verify)

    def claimant(self, key: HandlerKey) -> Claimant:
        """Who would run a task of this handler here."""
        facts = self.seat.facts
        return Claimant(
            session_id=facts.id,
            namespace_id=facts.namespace_id,
            nonce=facts.nonce,
            worker=facts.worker,
            build=facts.build,
            recovery=facts.handlers[key],
            can_verify=key in facts.can_verify,
            one_step=True,
            progress_timeout_ms=facts.progress_timeouts.get(key),
        )

    def settle(self, *, used: bool) -> None:
        """End the reservation."""
        self.seat.settle(self.queue, used=used)


class Slots:
    """All seats of this node.

    `monotonic_us` tells how old a `ready` is; one older than `fresh_ms` is absent.
    """

    def __init__(self, monotonic_us: Callable[[], int], fresh_ms: int) -> None:
        self._now = monotonic_us
        self._fresh_us = fresh_ms * 1000
        self._seats: dict[Id, Seat] = {}
        self._open: dict[Lane, dict[Id, Seat]] = {}
        self._served: dict[Lane, int] = {}
        self.blocked: frozenset[tuple[Id, str]] = frozenset()
        """(namespace, build) of workers whose slots count for nothing."""

    def add(self, session: WorkerSession) -> list[Lane]:
        """A session joins, without slots yet. Answers the lanes that nobody served before."""
        facts = session.facts
        self._seats[facts.id] = Seat(session, facts)
        lanes = [(facts.namespace_id, queue) for queue in facts.queues]
        new = [lane for lane in lanes if lane not in self._served]
        for lane in lanes:
            self._served[lane] = self._served.get(lane, 0) + 1
        return new

    def remove(self, session_id: Id) -> Seat | None:
        """A session leaves; claims for it that are on their way find it gone."""
        seat = self._seats.pop(session_id, None)
        if seat is None:
            return None
        seat.gone = True
        seat.free = 0
        for queue in seat.facts.queues:
            lane = (seat.facts.namespace_id, queue)
            self._open.get(lane, {}).pop(session_id, None)
            self._served[lane] -= 1
            if not self._served[lane]:
                del self._served[lane]
                self._open.pop(lane, None)
        return seat

    def announce(
        self, session_id: Id, number: int, slots: Mapping[str, int], total: int | None
    ) -> list[Lane]:
        """Replace what the session can take. Answers the lanes that have room now.

        With `total`, `slots` caps single queues and others may use it all; without, only named queues have
        slots.
        """
        seat = self._seats.get(session_id)
        if seat is None or number < seat.number:
            return []
        caps = dict(slots)
        if total is None:
            total = sum(slots.values())
            caps = {queue: slots.get(queue, 0) for queue in seat.facts.queues}
        seat.number = number
        seat.at_us = self._now()
        seat.free = max(0, total - seat.reserved)
        seat.caps = {queue: cap - seat.reserved_of.get(queue, 0) for queue, cap in caps.items()}
        lanes = []
        for queue in seat.facts.queues:
            lane = (seat.facts.namespace_id, queue)
            if seat.room(queue) > 0:
                self._open.setdefault(lane, {})[session_id] = seat
                lanes.append(lane)
        return lanes

    def seat(self, session_id: Id) -> Seat | None:
        """The seat of a session of this node."""
        return self._seats.get(session_id)

    def served(self) -> tuple[Lane, ...]:
        """Lanes that some session serves, with or without room."""
        return tuple(self._served)

    def is_served(self, lane: Lane) -> bool:
        """Whether any session of this node serves the lane."""
        return lane in self._served

    def room(self, lane: Lane) -> int:
        """Free slots of the lane."""
        return sum(seat.room(lane[1]) for seat in self._fresh(lane))

    def handlers(self, lane: Lane) -> tuple[set[HandlerKey], set[HandlerKey]]:
        """Handlers that a free slot of the lane can run, and can verify."""
        run: set[HandlerKey] = set()
        verify: set[HandlerKey] = set()
        for seat in self._fresh(lane):
            run.update(seat.facts.handlers)
            verify.update(seat.facts.can_verify)
        return run, verify

    def reserve(self, lane: Lane, key: HandlerKey, *, verify: bool = False) -> Slot | None:
        """One free slot that can run (or verify) the handler; sessions take turns."""
        for seat in self._fresh(lane):
            if seat.takes(key, verify=verify):
                return self._take(lane, seat)
        return None

    def reserve_any(self, lane: Lane, most: int) -> list[Slot]:
        """Up to so many free slots of the lane, whatever they can run, spread over sessions."""
        taken: list[Slot] = []
        while len(taken) < most:
            before = len(taken)
            for seat in self._fresh(lane):
                if len(taken) < most:
                    taken.append(self._take(lane, seat))
            if len(taken) == before:
                break
        return taken

    def _take(self, lane: Lane, seat: Seat) -> Slot:
        queue = lane[1]
        seat.take(queue)
        seats = self._open[lane]
        del seats[seat.facts.id]
        if seat.room(queue) > 0:
            seats[seat.facts.id] = seat
        return Slot(seat, queue, seat.number)

    def give_back(self, slot: Slot) -> None:
        """Settle a slot that was not used, and let it be found again."""
        slot.settle(used=False)
        if not slot.seat.gone and slot.seat.room(slot.queue) > 0:
            self._open.setdefault(slot.lane, {})[slot.seat.facts.id] = slot.seat

    def _fresh(self, lane: Lane) -> Iterator[Seat]:
        oldest = self._now() - self._fresh_us
        blocked = self.blocked
        for seat in tuple(self._open.get(lane, {}).values()):
            if blocked and (lane[0], seat.facts.build) in blocked:
                continue
            if seat.at_us >= oldest and seat.room(lane[1]) > 0:
                yield seat
            else:
                self._open[lane].pop(seat.facts.id, None)
