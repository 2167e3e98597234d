"""One connected worker: its link, its outbox, and the way from its frames to commands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from orbit_sdk.errors import Code, OrbitError
from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import Action, Close, Deliver, Leaving, Told, Write
from orbit_sdk.protocol.frames import encode, in_parts
from orbit_sdk.protocol.link import Link, Role, State
from orbit_sdk.values.ids import Id
from orbit_server.clock import new_seed
from orbit_server.gateway.connection import FrameSocket, SlowReader
from orbit_server.gateway.greeting import greet
from orbit_server.gateway.offers import item_of
from orbit_server.gateway.outbox import Outbox
from orbit_server.gateway.pace import Pace
from orbit_server.gateway.parts import GatewayParts
from orbit_server.gateway.work import KnownAttempt, Work
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.dispatch.sessions import Offer, SessionFacts
from orbit_server.pulse.tasks.attempts import Held
from orbit_server.pulse.tasks.reconnect import ReturnOffers

__all__ = ["Session"]

_LOG = logging.getLogger("orbit.gateway")
_CLOSE_NORMAL, _CLOSE_POLICY, _CLOSE_ERROR, _CLOSE_LATER = 1000, 1008, 1011, 1013


class Session:
    """Implements `WorkerSession`. `run` serves the socket until either end has had enough."""

    def __init__(self, parts: GatewayParts, principal: Principal, socket: FrameSocket) -> None:
        self.id: Id = new_seed(parts.clock).nth(0)
        self.principal = principal
        self.link = Link(Role.SERVER)
        self.known: dict[Id, KnownAttempt] = {}
        self.stuck = self.stuck_told = 0
        """Handlers of the worker that go on although their attempts are over; and what the row says."""
        self.given_back: set[Id] = set()
        """Attempts that were handed back before a push of them came: such a push is dropped."""
        self._parts = parts
        self._socket = socket
        settings = parts.settings
        self._outbox = Outbox(settings.frames_waiting_max, settings.bytes_waiting_max, settings.send_ms)
        self._facts: SessionFacts | None = None
        self._work: Work | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._room_for_frames = asyncio.Semaphore(settings.frames_in_work_max)
        self._pace = Pace(settings.frames_per_second, settings.frames_burst)
        self._goodbye: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    # --- what the dispatcher sees ---

    @property
    def facts(self) -> SessionFacts:
        assert self._facts is not None, "a session is announced after its greeting"
        return self._facts

    @property
    def greeted(self) -> bool:
        """Its row is written."""
        return self._facts is not None

    @property
    def open(self) -> bool:
        """Greeted and not closed."""
        return self._facts is not None and self.link.state is not State.CLOSED

    def push(self, offers: Sequence[Offer]) -> None:
        """Queue committed offers; what cannot be delivered goes back to its queue."""
        wanted = [offer for offer in offers if offer.attempt_id not in self.given_back]
        if self.link.state is not State.OPEN:
            self._return(wanted)
            return
        for part in in_parts(wanted):
            size = sum(len(offer.parameters) for offer in part)
            for offer in part:
                held = Held(offer.task_id, offer.attempt_id, offer.generation)
                offered = not offer.started
                self.known[offer.attempt_id] = KnownAttempt(held, offer.workflow_id, offered, offer.key)
            if not self._send(wire.Offer(items=[item_of(offer) for offer in part]), size):
                self._return(part)

    def tell_cancel(self, attempt_ids: Sequence[Id]) -> None:
        """Somebody asked these running attempts to stop."""
        if self._work is not None:
            self._work.tell_cancel(attempt_ids)

    def offered(self) -> set[Id]:
        """Attempts that were pushed and have not begun."""
        return {key for key, known in self.known.items() if known.offered}

    def withdraw(self, attempt_ids: Sequence[Id]) -> None:
        """These offers were closed: those that were pushed must not begin, a push of others is dropped."""
        pushed = [key for key in attempt_ids if key in self.known]
        self.given_back.update(set(attempt_ids) - set(pushed))
        if self._work is not None:
            self._work.withdraw(pushed)

    def _return(self, offers: Sequence[Offer]) -> None:
        """Hand back what was not sent: nothing of it can have begun."""
        if not offers:
            return
        for offer in offers:
            self.known.pop(offer.attempt_id, None)
        held = [(Held(one.task_id, one.attempt_id, one.generation), one.started) for one in offers]
        self._spawn(
            self.hand_back(
                tuple(one for one, started in held if not started),
                tuple(one for one, started in held if started),
            )
        )

    async def hand_back(self, offers: tuple[Held, ...], undelivered: tuple[Held, ...]) -> None:
        """Give attempts of this session back to their queue. A failure leaves them to their leases."""
        command = ReturnOffers(
            self.principal.namespace_id,
            self.id,
            offers=offers,
            undelivered=undelivered,
            times=self._parts.times,
        )
        try:
            await self._parts.database.committer.submit(command)
        except OrbitError as error:
            _LOG.warning("attempts of session %s are left to their leases: %s", self.id, error.message)

    # --- the connection ---

    async def run(self) -> None:
        """Serve until the worker leaves, breaks a rule, falls silent or is told to go."""
        writer = asyncio.ensure_future(self._outbox.drain_to(self._socket))
        reader = asyncio.ensure_future(self._read())
        try:
            await asyncio.wait((writer, reader, self._goodbye), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.link.close()
            for task in (writer, reader):
                task.cancel()
            ended = await asyncio.gather(writer, reader, return_exceptions=True)
        for error in ended:
            if isinstance(error, SlowReader):
                self.end(_CLOSE_POLICY, str(error))
            elif isinstance(error, Exception):
                _LOG.error("session %s failed", self.id, exc_info=error)
                self.end(_CLOSE_ERROR, "internal error")
        self.end(_CLOSE_NORMAL, "")
        code, reason = self._goodbye.result()
        _LOG.info("session %s of worker %s ends: %s", self.id, self._name, reason or "the worker left")
        slow = any(isinstance(error, SlowReader) for error in ended)
        if slow or not await self._close(code, reason):
            self._socket.abort()

    async def _close(self, code: int, reason: str) -> bool:
        """Say goodbye; False when even that does not leave."""
        try:
            async with asyncio.timeout(self._parts.settings.send_ms / 1000):
                await self._socket.close(code, reason)
        except TimeoutError:
            return False
        return True

    @property
    def _name(self) -> str:
        return self._facts.worker if self._facts is not None else "(not greeted)"

    def end(self, code: int, reason: str) -> None:
        """Close the connection; the first reason counts."""
        if not self._goodbye.done():
            self._goodbye.set_result((code, reason))

    def drain(self, reason: str) -> None:
        """Tell the worker that this server leaves; it goes on with what it has."""
        if self.open:
            self._send(wire.Drain(reason=reason))
            self._take_nothing()

    def revoke(self, reason: str) -> None:
        """The credential is no longer good."""
        self._spawn(self._last_word(wire.Error(code=Code.UNAUTHENTICATED.value, message=reason, fatal=True)))

    async def _last_word(self, error: wire.Error, code: int = _CLOSE_POLICY) -> None:
        with suppress(Exception):
            async with asyncio.timeout(1):
                await self._socket.send(encode(error))
        self.end(code, error.message)

    def _send(self, message: wire.Message, size: int = 0) -> bool:
        """Queue a message if the link admits it and the reader keeps up."""
        sent = False
        for action in self.link.send(message, self._now_ms()):
            if isinstance(action, Write):
                sent = self._outbox.put(action.message, size)
        return sent

    def _now_ms(self) -> int:
        return self._parts.clock.monotonic_us() // 1_000

    async def _read(self) -> None:
        settings = self._parts.settings
        while not self._goodbye.done():
            patience_ms = settings.silence_ms if self._facts is not None else settings.hello_ms
            try:
                async with asyncio.timeout(patience_ms / 1000):
                    frame = await self._socket.receive()
            except TimeoutError:
                self.end(_CLOSE_POLICY, "silent for too long")
                return
            if wait_ms := self._pace.wait_ms(self._now_ms()):
                await asyncio.sleep(wait_ms / 1000)
            for action in self.link.receive_frame(frame, self._now_ms()):
                await self._act(action)

    async def _act(self, action: Action) -> None:
        match action:
            case Write(message):
                self._outbox.put(message)
            case Deliver(message):
                await self._deliver(message)
            case Close(code, fault):
                await self._last_word(fault.error(), code)
            case Leaving(reason):
                _LOG.info("worker %s drains: %s", self._name, reason)
                self._take_nothing()
            case Told(error):
                _LOG.warning("worker %s refused %s: %s", self._name, error.about, error.message)
            case _:
                pass

    async def _deliver(self, message: wire.AnyMessage) -> None:
        if isinstance(message, wire.Hello):
            await self._greet(message)
        elif isinstance(message, wire.Ready):
            self._announce(message)
        elif isinstance(message, wire.Beat):
            self.stuck = message.stuck
        elif self._work is not None:
            await self._room_for_frames.acquire()
            self._spawn(self._serve(self._work, message))

    async def _serve(self, work: Work, message: wire.AnyMessage) -> None:
        try:
            await work.serve(message)
        finally:
            self._room_for_frames.release()

    def _announce(self, ready: wire.Ready) -> None:
        if self.link.state is State.OPEN:
            credit = self.link.credit
            caps = {queue: credit.room(queue) for queue in ready.queues}
            self._parts.dispatch.announce(self.id, ready.number, caps, credit.room())

    def _take_nothing(self) -> None:
        """No room from now on; cancels still find the session."""
        if self._facts is not None:
            self._parts.dispatch.announce(self.id, self.link.credit.number or 0, {}, 0)

    async def _greet(self, hello: wire.Hello) -> None:
        try:
            greeting = await greet(self._parts, self.principal, self.id, hello)
        except OrbitError as error:
            await self._last_word(
                wire.Error(code=error.code.value, message=error.message[:1_000], about="hello")
            )
            self.end(_CLOSE_LATER, error.message)
            return
        self._facts = greeting.facts
        self.known.update(greeting.known)
        self._work = Work(self._parts, greeting.facts, self.principal.consume_queues, self.known, self._tell)
        self._send(greeting.welcome)
        self._parts.dispatch.add(self)
        self._work.tell_cancel(greeting.cancelled)
        _LOG.info("session %s: worker %s (%s) greeted", self.id, hello.worker, hello.build or "no build")

    def _tell(self, message: wire.Message) -> None:
        self._send(message)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("session %s failed", self.id, exc_info=error)
            self.end(_CLOSE_ERROR, "internal error")

    async def settle(self) -> None:
        """After the end: wait for commands in flight, and say which offers never left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def unsent(self) -> set[Id]:
        """Attempts whose offers were queued and never written."""
        return self._outbox.unsent_offers()
