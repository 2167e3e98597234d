"""The dispatcher of one node: brings ready tasks to the free slots of the workers connected here.

It learns of work from hints of this node's commits, from the wake-up sequences that other nodes raise, and,
come what may, from looking at every lane it serves once in a while. Everything it believes may be stale: the
claim decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orbit_sdk.errors import Internal, OrbitError
from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock, new_seed
from orbit_server.pulse.dispatch.candidates import Look, Seen, look
from orbit_server.pulse.dispatch.claim import ClaimTasks, Ticket
from orbit_server.pulse.dispatch.finalizer import ClaimFinalizer, TasksClaimed
from orbit_server.pulse.dispatch.held import HeldLanes, VirtualTimes
from orbit_server.pulse.dispatch.sessions import Offer, WorkerSession
from orbit_server.pulse.dispatch.slots import Lane, Slot, Slots
from orbit_server.pulse.figures import DispatchFigures
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.limits.known import KnownLimits
from orbit_server.pulse.queues.commands import RaiseVirtualTime, WakeQueues
from orbit_server.pulse.queues.queries import signposts
from orbit_server.pulse.tasks.attempts import Held
from orbit_server.pulse.tasks.hints import AttemptEnded, CancelWanted, LimitsChanged, QueueChanged, TaskReady
from orbit_server.pulse.tasks.limits.operations import LaneHeld, LimitFreed
from orbit_server.pulse.tasks.reconnect import ReturnOffers
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.database import Database

log = logging.getLogger(__name__)

_SAFETY_LOOKS_US = 1_000_000
"""Every lane is looked at so often even when nothing was heard of it."""
_ERROR_PAUSE_S = 0.5
_SHUN_US = 60_000_000
_HELD_US = 1_000_000
"""A full limit is asked again after so long, even when nothing was heard of it."""
_LIMITS_US = 200_000
"""Limits that other nodes may have made are looked for so often."""
_VIRTUAL_US = 100_000


@dataclass(frozen=True, slots=True)
class DispatchReport:
    """One round: lanes looked at, slots asked for, offers pushed."""

    lanes: int = 0
    asked: int = 0
    pushed: int = 0


class Dispatcher:
    """One per node.

    Build it first, hand `finalizer` and `on_hints` to the storage settings, then `attach` the database and
    `run`.

    Args:
        clock: monotonic time, and the seed of attempt ids.
        cluster: other nodes share the database: poll and raise wake-up sequences.
    """

    def __init__(self, clock: Clock, times: PulseTimes = TIMES, *, cluster: bool = False) -> None:
        self._clock = clock
        self._times = times
        self._cluster = cluster
        self._slots = Slots(clock.monotonic_us, times.ready_fresh_ms)
        self._database: Database | None = None
        self._dirty: set[Lane] = set()
        self._paused: set[Lane] = set()
        self._sequences: dict[Lane, int] = {}
        self._elsewhere: set[Lane] = set()
        self._wake = asyncio.Event()
        self._looked_us = 0
        self._shunned: dict[Id, int] = {}
        self.limits = KnownLimits()
        self.figures = DispatchFigures()
        self._limits_read_us = 0
        self._held = HeldLanes()
        self._virtual = VirtualTimes()
        self._virtual_us = 0
        self._jobs: set[asyncio.Task[None]] = set()
        self.finalizer = ClaimFinalizer(
            self._slots, self._open_lanes, lambda: new_seed(clock), self._deliver, times
        )

    # --- for the gateway ---

    def add(self, session: WorkerSession) -> None:
        """A worker has connected. It gets nothing before it announces slots."""
        # What a lane holds, and whether its queue is paused, is not known before it was looked at once.
        self._dirty.update(self._slots.add(session))

    def remove(self, session_id: Id) -> None:
        """A worker has left. Its open offers are returned by the gateway (ReturnOffers)."""
        self._slots.remove(session_id)

    def announce(
        self, session_id: Id, number: int, slots: Mapping[str, int], total: int | None = None
    ) -> None:
        """The worker's numbered `ready`, net of what was pushed and it had not seen. Replaces the one before.

        With `total`, `slots` caps single queues and others may use it all; without, only named queues have
        slots.
        """
        lanes = self._slots.announce(session_id, number, slots, total)
        if any(lane in self._dirty for lane in lanes):
            self._wake.set()

    def wake(self, queue_id: Id) -> None:
        """There may be work in this queue."""
        self._mark(lane for lane in self._slots.served() if queue_id_of(*lane) == queue_id)

    # --- for the storage ---

    def on_hints(self, hints: Sequence[object]) -> None:
        """What the commits of this node tell; called on the event loop."""
        claimed: frozenset[Id] = frozenset()
        ready: list[TaskReady] = []
        for hint in hints:
            if isinstance(hint, TaskReady):
                ready.append(hint)
            elif isinstance(hint, AttemptEnded):
                self.figures.ended[hint.outcome] += 1
                self.figures.retries += hint.retried
            elif isinstance(hint, TasksClaimed):
                claimed |= hint.task_ids
            elif isinstance(hint, CancelWanted):
                self._tell_cancel(hint)
            elif isinstance(hint, QueueChanged):
                self.wake(hint.queue_id)
            elif isinstance(hint, LaneHeld | LimitFreed | LimitsChanged):
                self._heed(hint)
        lanes = {(hint.namespace_id, hint.queue) for hint in ready if hint.task_id not in claimed}
        if lanes:
            self._mark(lane for lane in lanes if self._slots.is_served(lane))
            if self._cluster:
                self._elsewhere |= lanes
                self._wake.set()

    def attach(self, database: Database) -> None:
        """The database to read and claim from."""
        self._database = database

    # --- the loop ---

    async def run(self) -> None:
        """Dispatch until cancelled. A fault costs a pause, never the loop."""
        while True:
            try:
                await self._rest()
                await self.run_once()
            except (OrbitError, OSError) as error:
                log.warning("dispatching rests: %s", error)
                await asyncio.sleep(_ERROR_PAUSE_S)
            except Exception:
                log.exception("a round of dispatching failed")
                await asyncio.sleep(_ERROR_PAUSE_S)

    async def run_once(self) -> DispatchReport:
        """One round over the lanes that may have work and have room."""
        database = self._attached()
        await self._know_limits(database)
        await self._other_nodes(database)
        await self._raise_virtual_time(database)
        if database.clock_is_suspect():
            return DispatchReport()
        looks = self._looks()
        if not looks:
            return DispatchReport()
        seen = await database.read(lambda conn: look(conn, looks))
        chosen: list[tuple[Slot, Ticket]] = []
        for one in seen:
            chosen += self._choose(one)
        pushed = 0
        bite = self._times.claim_bite
        bites = [chosen[start : start + bite] for start in range(0, len(chosen), bite)]
        for count in await asyncio.gather(*[self._claim(database, some) for some in bites]):
            pushed += count
        return DispatchReport(len(looks), len(chosen), pushed)

    async def close(self) -> None:
        """Wait for what was begun on the side (offers handed back)."""
        while self._jobs:
            await asyncio.gather(*self._jobs, return_exceptions=True)

    def _attached(self) -> Database:
        if self._database is None:
            raise RuntimeError("the dispatcher has no database yet")
        return self._database

    def _mark(self, lanes: Iterable[Lane]) -> None:
        self._dirty.update(lanes)
        self._wake.set()

    async def _rest(self) -> None:
        """Until something is heard, or the next poll."""
        if not self._wake.is_set():
            poll_us = self._times.wake_poll_ms * 1000
            held_us = self._held.next_us(self._clock.monotonic_us())
            try:
                async with asyncio.timeout((poll_us if held_us is None else min(poll_us, held_us)) / 1e6):
                    await self._wake.wait()
            except TimeoutError:
                pass
        self._wake.clear()
        if self._clock.monotonic_us() - self._looked_us >= _SAFETY_LOOKS_US:
            self._looked_us = self._clock.monotonic_us()
            self._dirty.update(self._slots.served())

    def _open_lanes(self) -> list[Lane]:
        """Where a task may be claimed at once: nothing older waits, as far as this node knows."""
        database = self._database
        if database is None or database.clock_is_suspect() or self.limits.stale:
            return []
        return [
            lane
            for lane in self._slots.served()
            if lane not in self._dirty and lane not in self._paused and not self.limits.of_claims(lane)
        ]

    def _looks(self) -> list[Look]:
        looks = []
        now_us = self._clock.monotonic_us()
        for lane in tuple(self._dirty):
            if self._held.holds(lane, now_us):
                continue
            room = self._slots.room(lane)
            if not room:
                if not self._slots.is_served(lane):
                    self._dirty.discard(lane)
                continue
            run, verify = self._slots.handlers(lane)
            self._dirty.discard(lane)
            most = min(room, 4 * self._times.claim_bite)
            limited = self.limits.most_running(lane)
            if limited is not None:
                most = min(most, max(1, limited))
            looks.append(Look(lane, frozenset(run), frozenset(verify), most))
        return looks

    def _choose(self, seen: Seen) -> list[tuple[Slot, Ticket]]:
        lane = seen.look.lane
        paused = seen.signpost is not None and seen.signpost.paused
        (self._paused.add if paused else self._paused.discard)(lane)
        seed = new_seed(self._clock)
        limits = self.limits.of_claims(lane)
        chosen: list[tuple[Slot, Ticket]] = []
        left = seen.more
        for place, candidate in enumerate(seen.candidates):
            if candidate.task_id in self._shunned:
                continue
            slot = self._slots.reserve(lane, candidate.key, verify=candidate.verify)
            if slot is None:
                left = True
                continue
            ticket = Ticket(
                candidate.task_id, seed.nth(place), slot.claimant(candidate.key), slot.number, limits
            )
            chosen.append((slot, ticket))
        if left:
            self._dirty.add(lane)
            if self._slots.room(lane):
                self._wake.set()
        return chosen

    async def _claim(self, database: Database, chosen: Sequence[tuple[Slot, Ticket]]) -> int:
        offers: Mapping[Id, Offer] = {}
        try:
            offers = await database.committer.submit(
                ClaimTasks(tuple(ticket for _, ticket in chosen), self._times), background=True
            )
        except OrbitError as error:
            if isinstance(error, Internal) and len(chosen) > 1:
                return sum([await self._claim(database, [one]) for one in chosen])
            # Perhaps applied: what was claimed shows up among the session's attempts that were never pushed.
            self._deliver([(slot, None) for slot, _ in chosen], committed=False)
            if not isinstance(error, Internal):
                self._mark({slot.lane for slot, _ in chosen})
                raise
            self._shun(chosen[0][1].task_id, error)
            return 0
        self._deliver([(slot, offers.get(ticket.attempt_id)) for slot, ticket in chosen], committed=True)
        return len(offers)

    def _deliver(self, outcome: Sequence[tuple[Slot, Offer | None]], committed: bool | None) -> None:
        """Push what was claimed, session by session; give back the other slots."""
        pushes: dict[Id, tuple[Slot, list[Offer]]] = {}
        for slot, offer in outcome:
            if offer is None or committed is None:
                self._slots.give_back(slot)
            else:
                slot.settle(used=True)
                self.figures.claims[offer.kind] += 1
                if not offer.fair:
                    self.figures.delay.observe(offer.waited_us)
                self._virtual.claimed(slot.lane, offer.virtual_start, fair=offer.fair)
                pushes.setdefault(slot.seat.facts.id, (slot, []))[1].append(offer)
        for slot, offers in pushes.values():
            if slot.seat.gone:
                self._send_back(slot, offers)
                continue
            try:
                slot.seat.session.push(offers)
            except Exception:
                # The gateway looks for claimed attempts that it never pushed; other sessions must not suffer.
                log.exception("offers could not be given to session %s", slot.seat.facts.id)

    def _shun(self, task_id: Id, error: OrbitError) -> None:
        """Leave a row that cannot be claimed aside for a while, so that it does not hold up its queue."""
        log.error("task %s cannot be claimed: %s", task_id, error)
        now = self._clock.monotonic_us()
        self._shunned = {one: until for one, until in self._shunned.items() if until > now}
        self._shunned[task_id] = now + _SHUN_US

    def _send_back(self, slot: Slot, offers: Sequence[Offer]) -> None:
        """The session left while its claim was on its way: nothing was sent, so nothing is charged."""
        held = [(offer.started, Held(offer.task_id, offer.attempt_id, offer.generation)) for offer in offers]
        command = ReturnOffers(
            slot.seat.facts.namespace_id,
            slot.seat.facts.id,
            offers=tuple(one for started, one in held if not started),
            undelivered=tuple(one for started, one in held if started),
            times=self._times,
        )
        job = asyncio.get_running_loop().create_task(self._submit_back(command))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    async def _submit_back(self, command: ReturnOffers) -> None:
        try:
            await self._attached().committer.submit(command, background=True)
        except OrbitError as error:
            log.warning("offers could not be handed back, their leases will end: %s", error)

    def _tell_cancel(self, hint: CancelWanted) -> None:
        seat = self._slots.seat(hint.session_id)
        if seat is not None:
            seat.session.tell_cancel([hint.attempt_id])

    def _heed(self, hint: LaneHeld | LimitFreed | LimitsChanged) -> None:
        """What claims found full, and what has room again."""
        if isinstance(hint, LimitsChanged):
            self.limits.stale = True
            for place in self._held.places():
                self._held.free(place)
            self._mark(lane for lane in self._slots.served() if lane[0] == hint.namespace_id)
            return
        place = (hint.namespace_id, hint.queue)
        self._dirty.update(lane for lane in self._slots.served() if place in (lane, (lane[0], None)))
        if isinstance(hint, LaneHeld):
            wait_us = _HELD_US if hint.wait_us is None else hint.wait_us
            self._held.hold(place, self._clock.monotonic_us() + wait_us)
        else:
            self._held.free(place)
            self._wake.set()

    async def _know_limits(self, database: Database) -> None:
        """Where limits are set; in a cluster also what other nodes have given back."""
        now_us = self._clock.monotonic_us()
        old = self._cluster and now_us - self._limits_read_us >= _LIMITS_US
        if not (self.limits.stale or old):
            return
        self._limits_read_us = now_us
        await self.limits.refresh(database)
        self._slots.blocked = self.limits.blocked_builds
        for place in self._held.places():
            if old and self.limits.gives_back(place):
                self._held.free(place)

    async def _raise_virtual_time(self, database: Database) -> None:
        now_us = self._clock.monotonic_us()
        if now_us - self._virtual_us >= _VIRTUAL_US and (come := self._virtual.taken()):
            self._virtual_us = now_us
            await database.committer.submit(RaiseVirtualTime(come), background=True)

    async def _other_nodes(self, database: Database) -> None:
        """Hear of what other nodes leave, and leave word of what this node cannot place."""
        if not self._cluster:
            return
        lanes = self._slots.served()
        if lanes:
            ids = {queue_id_of(*lane): lane for lane in lanes}
            posts = await database.read(lambda conn: signposts(conn, ids))
            for queue_id, post in posts.items():
                lane = ids[queue_id]
                if self._sequences.get(lane) != post.wake_seq:
                    self._sequences[lane] = post.wake_seq
                    self._dirty.add(lane)
        leave = tuple(sorted(lane for lane in self._elsewhere if not self._slots.room(lane)))
        self._elsewhere.clear()
        if leave:
            await database.committer.submit(WakeQueues(leave), background=True)
