"""Claiming in the transaction that makes a task ready: result, advance, next task and its start in one
commit.

Before BEGIN slots are reserved on lanes without a backlog (where there is one, order and fairness decide, so
the ordinary claim does); inside, tasks that became ready are claimed for them; afterwards offers are pushed
and what was not needed is given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.pulse.dispatch.claim import ClaimTasks, Ticket, claim_one
from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.dispatch.slots import Lane, Slot, Slots
from orbit_server.pulse.tasks.attempts import KeepProgress, MarkEffect, RenewLeases, StartAttempt
from orbit_server.pulse.tasks.hints import TaskReady
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.commands import NOTHING, Command, Needs

_NEVER_READY = (RenewLeases, StartAttempt, MarkEffect, KeepProgress, ClaimTasks)
"""Commands that make no task ready: a group of these alone reserves nothing."""
_PER_COMMAND = 4
_PER_LANE_MAX = 64


@dataclass(frozen=True, slots=True)
class TasksClaimed:
    """Hint: these tasks became ready and were claimed in the same transaction."""

    task_ids: frozenset[Id]


Deliver = Callable[[Sequence[tuple[Slot, Offer | None]], bool | None], None]
"""Gets every reserved slot with the offer it came to, and whether the transaction committed (None: unknown).
"""


class ClaimFinalizer:
    """Joined to every group of the committer.

    Args:
        slots: the node's slots.
        open_lanes: the lanes where claiming at once is fair now.
        seed: makes the seed of a group's attempt ids.
        deliver: takes the outcome on the event loop.
    """

    def __init__(
        self,
        slots: Slots,
        open_lanes: Callable[[], Iterable[Lane]],
        seed: Callable[[], IdSeed],
        deliver: Deliver,
        times: PulseTimes,
    ) -> None:
        self._slots = slots
        self._open_lanes = open_lanes
        self._seed = seed
        self._deliver = deliver
        self._times = times

    def open(self, commands: Sequence[Command[Any]]) -> ClaimRun | None:
        """Reserve slots for what this group may make ready."""
        making = sum(not isinstance(command, _NEVER_READY) for command in commands)
        if not making:
            return None
        most = min(making * _PER_COMMAND, _PER_LANE_MAX)
        reserved: dict[Lane, list[Slot]] = {}
        for lane in self._open_lanes():
            slots = self._slots.reserve_any(lane, most)
            if slots:
                reserved[lane] = slots
        return ClaimRun(reserved, self._seed(), self._deliver, self._times) if reserved else None


@dataclass(slots=True)
class ClaimRun:
    """One group's reservation."""

    reserved: dict[Lane, list[Slot]]
    seed: IdSeed
    deliver: Deliver
    times: PulseTimes
    offers: dict[int, Offer] = field(default_factory=dict)
    """By the identity of the slot they are for; made anew by every run of the transaction."""

    def needs(self) -> Needs:
        """Nothing that is not in the book already; limit rows will be named here."""
        return NOTHING

    def finish(self, book: Book) -> None:
        """Claim tasks of this transaction that are ready and have a slot, in the order they became ready."""
        self.offers = {}
        free = {lane: list(slots) for lane, slots in self.reserved.items()}
        claimed: set[Id] = set()
        for hint in tuple(book.hints):
            if isinstance(hint, TaskReady) and hint.task_id not in claimed:
                slots = free.get((hint.namespace_id, hint.queue))
                if slots and self._claim(book, hint, slots):
                    claimed.add(hint.task_id)
        if claimed:
            book.after_commit(TasksClaimed(frozenset(claimed)))

    def closed(self, committed: bool | None) -> None:
        """Push the offers, give back the rest."""
        slots = [slot for reserved in self.reserved.values() for slot in reserved]
        offers = self.offers if committed is not False else {}
        self.deliver([(slot, offers.get(id(slot))) for slot in slots], committed)

    def _claim(self, book: Book, hint: TaskReady, slots: list[Slot]) -> bool:
        key = (hint.handler, hint.handler_version)
        place = next((place for place, slot in enumerate(slots) if slot.takes(key, verify=hint.verify)), None)
        if place is None:
            return False
        slot = slots[place]
        attempt_id = IdSeed(self.seed.time_us, f"{self.seed.entropy}:{hint.task_id}").nth(0)
        ticket = Ticket(hint.task_id, attempt_id, slot.claimant(key), slot.number)
        try:
            offer = claim_one(book, ticket, self.times)
        except MissingRow:
            # Its parameters or attempts were not read here: the ordinary claim takes it.
            return False
        if offer is None:
            return False
        del slots[place]
        self.offers[id(slot)] = offer
        return True
