"""All sessions of this node: opening, the sweep, and leaving in good order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.errors import OrbitError, ResourceExhausted
from orbit_sdk.values.ids import Id
from orbit_server.gateway.connection import FrameSocket
from orbit_server.gateway.parts import GatewayParts
from orbit_server.gateway.rows import (
    OpenAttempt,
    close_session,
    close_stale,
    open_attempts,
    tell_stuck,
    touch_sessions,
)
from orbit_server.gateway.session import Session
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.tasks.hints import OfferWithdrawn

__all__ = ["Gateway"]

_LOG = logging.getLogger("orbit.gateway")
_CLOSE_RESTART = 1012
_TOUCH_EVERY_MS = 10_000
_GONE_AFTER = 10
"""So many silences after a session was last seen, its node must have died without saying so."""


class Gateway:
    """`serve` is called once per connection; `run` is the background work of them all."""

    def __init__(self, parts: GatewayParts) -> None:
        self.parts = parts
        self.sessions: dict[Id, Session] = {}
        self._connections = 0
        self._leaving = False
        self._suspects: set[Id] = set()
        self._endings: set[asyncio.Task[None]] = set()
        self._checked_ms = self._touched_ms = 0
        self._empty = asyncio.Event()
        self._empty.set()

    async def admit(self, token: str) -> Principal:
        """The principal of a connection. Raises Unauthenticated, PermissionDenied or ResourceExhausted."""
        principal = await self.parts.authenticate(token)
        principal.require("workers:connect")
        if self._leaving or self._connections >= self.parts.settings.sessions_max:
            raise ResourceExhausted("this server takes no more workers now", retry_after_ms=5_000)
        return principal

    async def serve(self, principal: Principal, socket: FrameSocket) -> None:
        """One connection, from its accept to its end. Cancelling it means that the worker is gone."""
        session = Session(self.parts, principal, socket)
        self.sessions[session.id] = session
        self._empty.clear()
        self._connections += 1
        try:
            await session.run()
        finally:
            self._connections -= 1
            self.parts.dispatch.remove(session.id)
            # A task of its own: a cancelled handler must not cut the cleaning up short.
            self._keep(self._end(session))

    async def _end(self, session: Session) -> None:
        """Give back what this session holds and never began; what runs keeps its lease."""
        try:
            await session.settle()
            if not session.greeted:
                return
            unsent = session.unsent()
            found = await self.parts.database.read(lambda conn: open_attempts(conn, [session.id]))
            offers = tuple(one.held for one in found if not one.started)
            undelivered = tuple(one.held for one in found if one.started and one.held.attempt_id in unsent)
            if offers or undelivered:
                await session.hand_back(offers, undelivered)
            now = await self.parts.database.now()
            await self.parts.database.write(
                lambda conn: close_session(conn, session.id, now), lane=session.id
            )
        except OrbitError as error:
            _LOG.warning("session %s could not be closed in the database: %s", session.id, error.message)
        finally:
            self.sessions.pop(session.id, None)
            if not self.sessions:
                self._empty.set()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    # --- background ---

    async def run(self) -> None:
        """Sweep for ever; a fault is reported and outlived."""
        while True:
            await asyncio.sleep(self.parts.settings.sweep_ms / 1000)
            try:
                await self.sweep()
            except OrbitError as error:
                _LOG.warning("the sweep of sessions failed: %s", error.message)
            except Exception:  # noqa: BLE001  # background work of all sessions must go on
                _LOG.exception("the sweep of sessions failed")

    async def sweep(self) -> int:
        """Give back attempts that were claimed for a session and not pushed for two sweeps; says how many.

        Such attempts are left by a commit whose outcome was unknown. An attempt that is given back is never
        pushed afterwards. Workers also hear here of what other servers stopped or withdrew.
        """
        live = {key: one for key, one in self.sessions.items() if one.open}
        if not live:
            self._suspects.clear()
            return 0
        offered = {key: one.offered() for key, one in live.items()}
        found = await self.parts.database.read(lambda conn: open_attempts(conn, list(live)))
        returned = await self._give_back(found)
        await self._tell_stuck(live)
        self._pass_on(live, offered, found)
        await self._look_after(live)
        return returned

    async def _give_back(self, found: Sequence[OpenAttempt]) -> int:
        suspects: set[Id] = set()
        lost: dict[Id, list[OpenAttempt]] = {}
        for one in found:
            session = self.sessions.get(one.session_id)
            key = one.held.attempt_id
            if session is None or key in session.known or key in session.given_back:
                continue
            if key in self._suspects:
                session.given_back.add(key)
                lost.setdefault(session.id, []).append(one)
            else:
                suspects.add(key)
        self._suspects = suspects
        for session_id, held in lost.items():
            await self.sessions[session_id].hand_back(
                tuple(one.held for one in held if not one.started),
                tuple(one.held for one in held if one.started),
            )
        return sum(map(len, lost.values()))

    @staticmethod
    def _pass_on(live: dict[Id, Session], offered: dict[Id, set[Id]], found: Sequence[OpenAttempt]) -> None:
        """Tell of cancels, and of offers that were pushed before the look and are not open any more."""
        still = {one.held.attempt_id for one in found}
        wanted: dict[Id, list[Id]] = {}
        for one in found:
            if one.cancel_requested and one.started:
                wanted.setdefault(one.session_id, []).append(one.held.attempt_id)
        for key, session in live.items():
            session.tell_cancel(wanted.get(key, ()))
            if gone := (offered[key] & session.offered()) - still:
                session.withdraw(sorted(gone))

    def withdraw(self, hint: OfferWithdrawn) -> None:
        """A commit of this node closed an offer."""
        session = self.sessions.get(hint.session_id)
        if session is not None:
            session.withdraw([hint.attempt_id])

    async def _tell_stuck(self, live: dict[Id, Session]) -> None:
        """Write down what has changed about handlers that do not stop."""
        changed = {key: one.stuck for key, one in live.items() if one.stuck != one.stuck_told}
        if not changed:
            return

        def write(conn: Connection) -> None:
            for key, stuck in changed.items():
                tell_stuck(conn, key, stuck)

        await self.parts.database.write(write)
        for key, stuck in changed.items():
            live[key].stuck_told = stuck

    async def _look_after(self, live: dict[Id, Session]) -> None:
        """Now and then: say that the sessions live, and whether their credentials still are good."""
        at_ms = self.parts.clock.monotonic_us() // 1_000
        if at_ms - self._touched_ms >= _TOUCH_EVERY_MS:
            self._touched_ms = at_ms
            now = await self.parts.database.now()
            gone = now - _GONE_AFTER * self.parts.settings.silence_ms * 1_000

            def write(conn: Connection) -> None:
                touch_sessions(conn, list(live), now)
                close_stale(conn, gone)

            await self.parts.database.write(write)
        if at_ms - self._checked_ms >= self.parts.settings.validity_ms:
            self._checked_ms = at_ms
            for credential_id in {one.principal.credential_id for one in live.values()}:
                if not await self.parts.is_valid(credential_id):
                    self.revoke(credential_id)

    def revoke(self, credential_id: Id) -> None:
        """End all sessions of a credential."""
        for session in tuple(self.sessions.values()):
            if session.principal.credential_id == credential_id:
                session.revoke("the credential was revoked or has expired")

    # --- leaving ---

    def drain(self, reason: str = "the server is leaving") -> None:
        """Take no more workers, offer nothing more; workers go on with what they have."""
        self._leaving = True
        for session in tuple(self.sessions.values()):
            session.drain(reason)

    async def close(self, patience_ms: int = 5_000) -> None:
        """Close every socket (1012: come back later) and wait, bounded, until all is written down."""
        self._leaving = True
        for session in tuple(self.sessions.values()):
            session.end(_CLOSE_RESTART, "the server is leaving")
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_ms / 1000):
                await self._empty.wait()
