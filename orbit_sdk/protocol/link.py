"""The worker protocol as one pure object, the same for both ends.

    GREETING ──hello / welcome──► OPEN ──drain──► DRAINING ──► CLOSED (from anywhere)

`receive` takes what arrived and answers with actions; `send` admits what is about to leave. Which message may
come or go in which state is the table `_MAY_SEND` and nothing else. No sockets and no clock live here:
instants are milliseconds of the caller's monotonic clock. What breaks the protocol is an action (`Close`),
never an exception, and changes nothing but the state.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from orbit_sdk.errors import Code
from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import (
    Action,
    Begin,
    CancelAsked,
    Close,
    Deliver,
    Freed,
    Leaving,
    MarkDecided,
    Opened,
    ResultSettled,
    Stop,
    Told,
    Write,
)
from orbit_sdk.protocol.credit import Credit
from orbit_sdk.protocol.frames import Fault, Sender, decode, in_parts
from orbit_sdk.protocol.held import Held, HeldAttempts, Phase
from orbit_sdk.protocol.worker import AnyMessage, Error, Message

__all__ = ["Link", "Role", "State"]

FAULTS_MAX = 16
CLOSE_PROTOCOL = 1002
CLOSE_POLICY = 1008


class Role(StrEnum):
    """Which end we are."""

    CLIENT = "client"
    SERVER = "server"


class State(StrEnum):
    """How far the connection is."""

    GREETING = "greeting"
    OPEN = "open"
    DRAINING = "draining"
    CLOSED = "closed"


# --- who may say what, and when ----------------------------------------------------------------------------

_WORK: frozenset[type[Message]] = frozenset(
    {wire.Start, wire.Renew, wire.Mark, wire.Progress, wire.Result, wire.Beat, wire.Drain, Error}
)
_ANSWERS: frozenset[type[Message]] = frozenset(
    {
        wire.Offer, wire.Started, wire.Withdrawn, wire.Renewed, wire.Lost, wire.Marked,
        wire.Settled, wire.Cancel, wire.Beat, wire.Drain, Error,
    }
)  # fmt: skip
_NOTHING: frozenset[type[Message]] = frozenset()

#: What each role may send in each state. Offers and readies that cross a drain are legal and ignored.
_MAY_SEND: dict[Role, dict[State, frozenset[type[Message]]]] = {
    Role.CLIENT: {
        State.GREETING: frozenset({wire.Hello, Error}),
        State.OPEN: _WORK | {wire.Ready},
        State.DRAINING: _WORK | {wire.Ready},
        State.CLOSED: _NOTHING,
    },
    Role.SERVER: {
        State.GREETING: frozenset({wire.Welcome, Error}),
        State.OPEN: _ANSWERS,
        State.DRAINING: _ANSWERS,
        State.CLOSED: _NOTHING,
    },
}


class Link:
    """One connection. A client's link writes the `held` attempts of its process; a server's has `credit`."""

    def __init__(self, role: Role, held: HeldAttempts | None = None) -> None:
        self.role = role
        self.state = State.GREETING
        self.held = held if held is not None else HeldAttempts()
        self.credit = Credit()
        self.received_ms: int | None = None
        self.seen = 0
        self._greeted = False
        self._faults = 0
        self._number = 0
        self._sent_at: dict[int, int] = {}
        self._hello_sent_ms = 0

    @property
    def peer(self) -> Role:
        """The other end."""
        return Role.SERVER if self.role is Role.CLIENT else Role.CLIENT

    # --- out ---

    def next_number(self, at_ms: int) -> int:
        """A number for a ready, start, renew or beat that leaves now; forgotten when a lease has passed."""
        self._number += 1
        self._sent_at[self._number] = at_ms
        for number, sent_ms in tuple(self._sent_at.items())[:2]:
            if at_ms - sent_ms > self.held.lease_ms:
                del self._sent_at[number]
        return self._number

    def send(self, message: Message, at_ms: int) -> tuple[Action, ...]:
        """Admit a message of our own: `Write`, or nothing once it makes no sense (closed, wrong state)."""
        if type(message) not in _MAY_SEND[self.role][self.state]:
            return ()
        match message:
            case wire.Hello():
                if self._greeted:
                    return ()
                self._greeted, self._hello_sent_ms = True, at_ms
            case wire.Welcome():
                if not self._greeted:
                    return ()
                self.state = State.OPEN
            case wire.Drain():
                self.state = State.DRAINING
            case wire.Offer():
                for item in message.items:
                    self.credit.push(item.queue)
            case _:
                pass
        return (Write(message),)

    def close(self) -> None:
        """The socket is gone, or we are closing it."""
        self.state = State.CLOSED
        self.credit.close()

    # --- in ---

    def receive_frame(self, data: object, at_ms: int) -> tuple[Action, ...]:
        """`receive` for the raw text of a frame."""
        sender: Sender = "server" if self.role is Role.CLIENT else "worker"
        message = decode(data, sender)
        if isinstance(message, Fault):
            return self._fault(message)
        return self.receive(message, at_ms)

    def receive(self, message: AnyMessage, at_ms: int) -> tuple[Action, ...]:
        """What follows from a message of the other end."""
        if self.state is State.CLOSED:
            return ()
        self.received_ms = at_ms
        if type(message) not in _MAY_SEND[self.peer][self.state]:
            reason = f"{message.type} has no place in a connection that is {self.state.value}"
            return self._fault(Fault(Code.FAILED_PRECONDITION, reason, message.type))
        if isinstance(message, Error):
            return (Told(message),)
        if self.role is Role.SERVER:
            return self._from_worker(message, at_ms)
        return self._from_server(message, at_ms)

    def _fault(self, fault: Fault) -> tuple[Action, ...]:
        if self.state is State.CLOSED:
            return ()
        self._faults += 1
        if not fault.fatal and self._faults < FAULTS_MAX:
            return (Write(fault.error()),)
        self.close()
        return (Close(CLOSE_PROTOCOL if fault.fatal else CLOSE_POLICY, fault),)

    def _from_worker(self, message: AnyMessage, at_ms: int) -> tuple[Action, ...]:
        match message:
            case wire.Hello():
                if self._greeted:
                    return self._fault(Fault(Code.FAILED_PRECONDITION, "hello was said already", "hello"))
                if message.protocol != wire.PROTOCOL_VERSION:
                    reason = f"protocol {message.protocol} is unknown; this is {wire.PROTOCOL_VERSION}"
                    return self._fault(Fault(Code.FAILED_PRECONDITION, reason, "hello"))
                self._greeted = True
            case wire.Ready():
                problem = self.credit.refresh(message, at_ms)
                if problem is not None:
                    return self._fault(Fault(Code.INVALID_ARGUMENT, problem, "ready"))
                if self.state is State.DRAINING:
                    self.credit.close()
            case wire.Drain():
                self.state = State.DRAINING
                self.credit.close()
                return (Leaving(message.reason),)
            case wire.Beat():
                return (Write(message), Deliver(message))
            case _:
                pass
        return (Deliver(message),)

    def _from_server(self, message: AnyMessage, at_ms: int) -> tuple[Action, ...]:
        match message:
            case wire.Welcome():
                return self._welcomed(message, at_ms)
            case wire.Offer():
                return self._offered(message, at_ms)
            case wire.Started():
                return self._granted(message, at_ms)
            case wire.Withdrawn():
                return tuple(self._withdraw(message.items, at_ms))
            case wire.Drain():
                self.state = State.DRAINING
                return (Leaving(message.reason),)
            case _:
                return self._about_running(message, at_ms)

    def _about_running(self, message: AnyMessage, at_ms: int) -> tuple[Action, ...]:
        match message:
            case wire.Renewed():
                self._renewed(message)
                return ()
            case wire.Lost():
                losing = [item for item in message.items if self.held.lose(item.attempt_id) is not None]
                return tuple(Stop(item.attempt_id, item.reason) for item in losing)
            case wire.Marked():
                return tuple(MarkDecided(item.attempt_id, item.answer) for item in message.items)
            case wire.Settled():
                return tuple(self._settle(message, at_ms))
            case wire.Cancel():
                held = (item for item in message.items if item.attempt_id in self.held)
                return tuple(CancelAsked(item.attempt_id, item.reason) for item in held)
            case _:
                return ()

    def _renewed(self, renewed: wire.Renewed) -> None:
        sent_ms = self._sent_at.get(renewed.number)
        if sent_ms is not None:
            for item in renewed.items:
                self.held.extend(item.attempt_id, self.held.lease_end(sent_ms, item.lease_ms))

    # --- the client's attempts ---

    def _welcomed(self, welcome: wire.Welcome, at_ms: int) -> tuple[Action, ...]:
        if not self._greeted:
            return self._fault(Fault(Code.FAILED_PRECONDITION, "welcome before hello", "welcome"))
        self.state = State.OPEN
        self.held.lease_ms = welcome.lease_ms
        actions: list[Action] = [Opened(welcome)]
        for item in welcome.in_flight:
            held = self.held.get(item.attempt_id)
            if held is None:
                continue
            if held.phase is Phase.ASKED:
                actions.append(self._asked_before(held, item, at_ms))
                continue
            if item.answer == "CONTINUE":
                self.held.extend(item.attempt_id, self.held.lease_end(self._hello_sent_ms, item.lease_ms))
                continue
            if self.held.lose(item.attempt_id) is not None:
                actions.append(Stop(item.attempt_id, "the server says that it is no longer ours"))
            if item.answer == "SETTLED" and held.phase is Phase.FINISHED:
                self.held.forget(item.attempt_id, at_ms)
                actions.append(ResultSettled(item.attempt_id, "ACCEPTED", None))
        return tuple(actions)

    def _asked_before(self, held: Held, item: wire.Reconciled, at_ms: int) -> Action:
        """Its start was asked for on a connection that broke: granted to this process then, or never."""
        end_ms = self.held.lease_end(self._hello_sent_ms, item.lease_ms)
        if item.answer == "CONTINUE" and end_ms > at_ms:
            self.held.begin(held, end_ms)
            return Begin(held.offer)
        self.held.forget(item.attempt_id, at_ms)
        return Freed(item.attempt_id, "its start was not granted")

    def _offered(self, offer: wire.Offer, at_ms: int) -> tuple[Action, ...]:
        self.seen += len(offer.items)
        actions: list[Action] = []
        ask: list[wire.Claim] = []
        for item in offer.items:
            if self.held.knows(item.attempt_id, at_ms):
                continue
            if self.state is State.DRAINING:
                self._hand_back(item, at_ms, "HAND_BACK", "the worker is leaving")
            elif item.started:
                sent_ms = self._sent_at.get(item.ready) if item.ready is not None else None
                end_ms = at_ms if sent_ms is None else self.held.lease_end(sent_ms, item.lease_ms)
                if end_ms <= at_ms:
                    self._hand_back(item, at_ms, "DISCARDED", "the push is older than its lease")
                else:
                    self.held.take(item, Phase.RUNNING, end_ms)
                    actions.append(Begin(item))
            else:
                held = self.held.take(item, Phase.ASKED, at_ms + self.held.lease_ms)
                ask.append(held.claim)
        if ask:
            actions.append(Write(wire.Start(number=self.next_number(at_ms), items=ask)))
        return tuple(actions)

    def _hand_back(self, item: wire.OfferItem, at_ms: int, outcome: wire.Outcome, why: str) -> None:
        """Refuse an item: its result says so and is sent like any other, until settled."""
        if item.attempt_id in self.held:
            self.held.forget(item.attempt_id, at_ms)
        self.held.take(item, Phase.RUNNING, at_ms)
        self.held.lose(item.attempt_id)
        self.held.finish(
            wire.ResultItem(
                attempt_id=item.attempt_id,
                generation=item.generation,
                task_id=item.task_id,
                outcome=outcome,
                effect="NONE",
                message=why,
            )
        )

    def hand_back(self, attempt_id: str, at_ms: int, why: str) -> None:
        """The worker cannot run an attempt it was given (no slot, unknown handler): nothing was begun."""
        held = self.held.get(attempt_id)
        if held is not None and held.result is None:
            self._hand_back(held.offer, at_ms, "HAND_BACK", why)

    def _granted(self, started: wire.Started, at_ms: int) -> tuple[Action, ...]:
        sent_ms = self._sent_at.get(started.number)
        actions: list[Action] = []
        for item in started.items:
            held = self.held.get(item.attempt_id)
            if held is None or held.phase is not Phase.ASKED:
                continue
            end_ms = at_ms if sent_ms is None else self.held.lease_end(sent_ms, item.lease_ms)
            if end_ms <= at_ms:
                self._hand_back(held.offer, at_ms, "DISCARDED", "the grant is older than its lease")
                actions.append(Freed(item.attempt_id, "the grant is older than its lease"))
                continue
            self.held.begin(held, end_ms)
            actions.append(Begin(held.offer))
        return tuple(actions)

    def _withdraw(self, items: Iterable[wire.Gone], at_ms: int) -> Iterable[Action]:
        for item in items:
            held = self.held.get(item.attempt_id)
            if held is not None and held.phase is Phase.ASKED:
                self.held.forget(item.attempt_id, at_ms)
                yield Freed(item.attempt_id, item.reason)

    def _settle(self, settled: wire.Settled, at_ms: int) -> Iterable[Action]:
        for item in settled.items:
            held = self.held.get(item.attempt_id)
            if held is not None and held.phase is Phase.FINISHED:
                self.held.forget(item.attempt_id, at_ms)
                yield ResultSettled(item.attempt_id, item.answer, item.reason)

    def expire(self, at_ms: int) -> tuple[Action, ...]:
        """Leases that ended by the worker's own clock: handlers stop, unanswered asks are given up."""
        actions: list[Action] = []
        for attempt_id in self.held.overdue(at_ms):
            held = self.held.get(attempt_id)
            if held is not None and held.phase is Phase.ASKED:
                self.held.forget(attempt_id, at_ms)
                actions.append(Freed(attempt_id, "the start was not answered within a lease"))
            elif self.held.lose(attempt_id) is not None:
                actions.append(Stop(attempt_id, "its lease ended"))
        return tuple(actions)

    def renewals(self, at_ms: int) -> list[wire.Renew]:
        """One numbered renewal per ITEMS_MAX attempts that are worth keeping."""
        claims = in_parts(self.held.to_renew())
        return [wire.Renew(number=self.next_number(at_ms), items=part) for part in claims]

    def ready(self, slots: int, at_ms: int, queues: dict[str, int] | None = None) -> wire.Ready:
        """The announcement of free slots that leaves now; `queues` caps single ones."""
        return wire.Ready(number=self.next_number(at_ms), slots=slots, seen=self.seen, queues=queues or {})
