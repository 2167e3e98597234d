"""The worker's side of the conversation, between the pure link and the runner: what to do, what to send next.

Used on the uplink's thread only, and free of I/O: `take` and `receive` change what is held, `compose` says
what leaves now. Everything in here is bounded by the number of slots.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import (
    Action,
    Begin,
    CancelAsked,
    Close,
    Leaving,
    MarkDecided,
    Opened,
    ResultSettled,
    Stop,
    Told,
    Write,
)
from orbit_sdk.protocol.frames import in_parts
from orbit_sdk.protocol.held import HeldAttempts
from orbit_sdk.protocol.link import Link, Role, State
from orbit_sdk.protocol.worker import Message
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import handler_key
from orbit_sdk.worker.events import Ended, Event, MarkAsked, Progressed
from orbit_sdk.worker.report import Figures, LeftBehind
from orbit_sdk.worker.runner import Runner
from orbit_sdk.worker.settings import WorkerSettings
from orbit_sdk.worker.ways import Ways

__all__ = ["Desk"]

_LOG = logging.getLogger("orbit.worker")
# Results that nobody settles stop new work at this many beyond the slots.
_UNSETTLED_EXTRA = 64


class Desk:
    """The attempts of this process and one link at a time."""

    def __init__(
        self,
        settings: WorkerSettings,
        runner: Runner,
        patience: Mapping[str, int] | None = None,
        ways: Ways | None = None,
    ) -> None:
        """`patience`: handler key -> how long (ms) an attempt of it may go without a word."""
        self.held = HeldAttempts()
        self.link = Link(Role.CLIENT, self.held)
        self.draining = False
        self.welcome: wire.Welcome | None = None
        self.final_error: wire.Error | None = None
        self.close: Close | None = None
        self._settings = settings
        self._runner = runner
        self._busy: set[str] = set()
        self._ways = ways or Ways((), {})
        self._out: list[Message] = []
        self._marks: dict[str, None] = {}
        self._marks_sent: set[str] = set()
        self._progress: dict[str, Json] = {}
        self._announced: wire.Ready | None = None
        self._patience = patience or {}
        self._progress_every_ms = min(
            settings.progress_every_ms, *(ms // 5 for ms in self._patience.values()), 60_000
        )
        self.figures = Figures()
        self.stuck: dict[str, wire.OfferItem] = {}
        """Attempts that are over and whose handlers go on."""
        self._stopped: dict[str, tuple[int, wire.OfferItem]] = {}
        self._replaced: set[str] = set()
        self._renew_due_ms = self._beat_due_ms = self._progress_due_ms = 0

    # --- connections ---

    def connected(self, hello: wire.Hello, at_ms: int) -> wire.Hello:
        """A new connection: what to greet with. Everything held is listed, results will be sent again."""
        self.link.close()
        self.link = Link(Role.CLIENT, self.held)
        self.held.disconnected()
        self._out, self._announced, self.close = [], None, None
        self._marks_sent.clear()
        greeting = hello.model_copy(update={"in_flight": self.held.in_flight()})
        self.link.send(greeting, at_ms)
        return greeting

    @property
    def open(self) -> bool:
        """Greeted and not closed."""
        return self.link.state in (State.OPEN, State.DRAINING)

    @property
    def idle(self) -> bool:
        """Nothing runs and everything is settled."""
        return not self._busy and not self.held

    def silent(self, at_ms: int) -> bool:
        """The server has said nothing for longer than it promised."""
        heard = self.link.received_ms
        return self.welcome is not None and heard is not None and at_ms - heard > self.welcome.silence_ms

    # --- in ---

    def take(self, event: Event, at_ms: int) -> None:
        """Something from a handler."""
        match event:
            case Ended(attempt_id, result):
                self._free(attempt_id)
                if self._stopped.pop(attempt_id, None) is not None:
                    self._is_back(attempt_id)
                elif result is not None:
                    self.figures.outcomes[result.outcome] += 1
                self._marks.pop(attempt_id, None)
                self._progress.pop(attempt_id, None)
                if result is None or not self.held.finish(result):
                    held = self.held.get(attempt_id)
                    if held is not None and held.result is None:
                        self.held.forget(attempt_id, at_ms)
            case MarkAsked(attempt_id):
                if attempt_id in self.held:
                    self._marks[attempt_id] = None
            case Progressed(attempt_id, value):
                if attempt_id in self._busy:
                    self._progress[attempt_id] = value
            case _:
                pass

    def receive(self, data: object, at_ms: int) -> None:
        """A frame from the server."""
        self._act(self.link.receive_frame(data, at_ms), at_ms)

    def expire(self, at_ms: int) -> None:
        """Stop what has lost its lease by our own clock, connected or not; give up what does not stop."""
        self._act(self.link.expire(at_ms), at_ms)
        for attempt_id, (since_ms, offer) in self._stopped.items():
            if attempt_id not in self.stuck and at_ms - since_ms >= self._settings.stuck_after_ms:
                self._give_up(attempt_id, offer)

    def _give_up(self, attempt_id: str, offer: wire.OfferItem) -> None:
        self.stuck[attempt_id] = offer
        room = len(self._replaced) < self._settings.replaced_max
        freed = room and self._runner.replace(attempt_id)
        if freed:
            self._replaced.add(attempt_id)
            self._free(attempt_id)
            self.figures.replaced += 1
        what = "its thread is given up and replaced" if freed else "its slot cannot be given to another"
        name = handler_key(offer.handler, offer.handler_version)
        _LOG.error("%s of task %s goes on although its attempt is over; %s", name, offer.task_id, what)

    def _is_back(self, attempt_id: str) -> None:
        """A handler whose attempt was over has come to its end."""
        self._replaced.discard(attempt_id)
        if (offer := self.stuck.pop(attempt_id, None)) is not None:
            _LOG.warning("%s of task %s has come to its end after all", offer.handler, offer.task_id)

    def _free(self, attempt_id: str) -> None:
        self._busy.discard(attempt_id)
        self._ways.release(attempt_id)

    @property
    def busy(self) -> int:
        """Slots that are taken."""
        return len(self._busy)

    def left(self) -> tuple[LeftBehind, ...]:
        """What is not at its end now."""
        found = [
            (held.offer, "UNSETTLED" if held.result else "RUNNING") for held in self.held if not held.lost
        ]
        found += [(offer, "STUCK") for _, offer in self._stopped.values()]
        return tuple(
            LeftBehind(
                offer.task_id, offer.attempt_id, handler_key(offer.handler, offer.handler_version), how
            )
            for offer, how in found
        )

    def _act(self, actions: Iterable[Action], at_ms: int) -> None:
        for action in actions:
            match action:
                case Write(message):
                    self._out.append(message)
                case Begin(offer):
                    self._begin(offer, at_ms)
                case Opened(welcome):
                    self._opened(welcome, at_ms)
                case Told(error):
                    self._told(error)
                case Leaving(reason):
                    _LOG.info("the server is leaving: %s", reason or "no reason given")
                case Close():
                    _LOG.error("the server broke the protocol: %s", action.fault.message)
                    self._out.append(action.fault.error())
                    self.close = action
                case _:
                    self._about_attempt(action, at_ms)

    def _about_attempt(self, action: Action, at_ms: int) -> None:
        match action:
            case Stop(attempt_id, reason):
                _LOG.warning("attempt %s stops: %s", attempt_id, reason)
                self._marks.pop(attempt_id, None)
                self.figures.lost += 1
                held = self.held.get(attempt_id)
                if held is not None and attempt_id in self._busy:
                    self._stopped[attempt_id] = (at_ms, held.offer)
                self._runner.stop(attempt_id, reason)
            case CancelAsked(attempt_id):
                self._runner.ask_cancel(attempt_id)
            case MarkDecided(attempt_id, answer):
                if attempt_id in self._marks:
                    del self._marks[attempt_id]
                    self._runner.decide_mark(attempt_id, answer)
            case ResultSettled(attempt_id, answer, reason):
                if answer != "ACCEPTED":
                    _LOG.warning("result of attempt %s: %s (%s)", attempt_id, answer, reason or "no reason")
            case _:
                pass

    def _opened(self, welcome: wire.Welcome, at_ms: int) -> None:
        self.welcome = welcome
        self.figures.sessions += 1
        for refused in welcome.refused:
            _LOG.error("the server refused %s %s: %s", refused.kind.lower(), refused.name, refused.reason)
        self._renew_due_ms = at_ms + welcome.lease_ms // 3
        self._beat_due_ms = at_ms + welcome.heartbeat_ms
        if self.draining:
            self._out.extend(_written(self.link.send(wire.Drain(reason="the worker stops"), at_ms)))

    def _told(self, error: wire.Error) -> None:
        level = logging.ERROR if error.fatal else logging.WARNING
        _LOG.log(level, "the server refused %s: %s %s", error.about or "us", error.code, error.message)
        if error.fatal and error.code in ("UNAUTHENTICATED", "PERMISSION_DENIED", "FAILED_PRECONDITION"):
            self.final_error = error

    def _begin(self, offer: wire.OfferItem, at_ms: int) -> None:
        if self.draining:
            self.link.hand_back(offer.attempt_id, at_ms, "the worker stops")
        elif not self._runner.can_run(offer):
            _LOG.error("offered %s@%s, which is not here", offer.handler, offer.handler_version)
            self.link.hand_back(offer.attempt_id, at_ms, "no such handler in this worker")
        elif len(self._busy) >= self._settings.slots:
            self.link.hand_back(offer.attempt_id, at_ms, "no free slot")
        else:
            self._busy.add(offer.attempt_id)
            self._ways.take(offer)
            self._runner.begin(offer)

    # --- out ---

    def drain(self, at_ms: int) -> None:
        """Take nothing new from now on."""
        self.draining = True
        if self.open:
            self._out.extend(_written(self.link.send(wire.Drain(reason="the worker stops"), at_ms)))

    def due(self, at_ms: int) -> bool:
        """Whether a timed frame waits to be composed."""
        timed = at_ms >= min(self._renew_due_ms, self._beat_due_ms)
        return self.open and (timed or (bool(self._progress) and at_ms >= self._progress_due_ms))

    def compose(self, at_ms: int) -> list[Message]:
        """All frames that leave now, in order. A ready goes before the results that freed its slots."""
        messages, self._out = self._out, []
        if not self.open or self.welcome is None:
            return messages
        renew = at_ms >= self._renew_due_ms
        results = self.held.fresh_results(at_ms)
        new_marks = [key for key in self._marks if key not in self._marks_sent]
        self._marks_sent = set(self._marks)
        claims = [held.claim for key in new_marks if (held := self.held.get(key)) is not None]
        messages += [wire.Mark(items=part) for part in in_parts(claims)]
        if renew:
            results += self.held.stale_results(at_ms, self._settings.resend_ms)
        if (ready := self._ready(at_ms, force=renew)) is not None:
            messages.append(ready)
        messages += [wire.Result(items=part) for part in in_parts(results)]
        if renew:
            self._renew_due_ms = at_ms + self.welcome.lease_ms // 3
            messages += self.link.renewals(at_ms)
        if at_ms >= self._beat_due_ms:
            self._beat_due_ms = at_ms + self.welcome.heartbeat_ms
            messages.append(wire.Beat(number=self.link.next_number(at_ms), stuck=len(self.stuck)))
        messages += self._progress_frames(at_ms)
        return messages

    def _ready(self, at_ms: int, *, force: bool) -> wire.Ready | None:
        """An announcement, if the server would otherwise believe something else."""
        slots = self._settings.slots
        free = min(slots - len(self._busy) - self.held.asked, slots + _UNSETTLED_EXTRA - self.held.unsettled)
        free = 0 if self.draining or self.link.state is not State.OPEN else max(free, 0)
        last = self._announced
        believed = None if last is None else max(last.slots - (self.link.seen - last.seen), 0)
        caps = self._ways.caps(free, self._settings.queues)
        if believed == free and not force and (last is None or last.queues == caps):
            return None
        self._announced = self.link.ready(free, at_ms, caps)
        return self._announced

    def _progress_frames(self, at_ms: int) -> Iterator[wire.Progress]:
        if not self._progress or at_ms < self._progress_due_ms:
            return
        self._progress_due_ms = at_ms + self._progress_every_ms
        told, self._progress = self._progress, {}
        items: list[wire.ProgressItem] = []
        renews = False
        for key, value in told.items():
            held = self.held.get(key)
            if held is None:
                continue
            items.append(wire.ProgressItem(attempt_id=key, generation=held.offer.generation, value=value))
            renews = renews or handler_key(held.offer.handler, held.offer.handler_version) in self._patience
        for part in in_parts(items):
            yield wire.Progress(number=self.link.next_number(at_ms) if renews else None, items=part)


def _written(actions: Iterable[Action]) -> Iterator[Message]:
    return (action.message for action in actions if isinstance(action, Write))
