"""From a token to a principal. What was read is believed for a second: a revocation on another node is seen
after that, one on this node at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from orbit_sdk.errors import Unauthenticated, Unavailable
from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock
from orbit_server.platform.credentials import CredentialRow, find_by_hash, find_credential, principal_of
from orbit_server.platform.permissions import Principal
from orbit_server.platform.tokens import is_token, token_hash
from orbit_server.storage.database import Database

BELIEVED_US: Final = 1_000_000
_KEPT: Final = 10_000
_REFUSAL: Final = "the token is unknown, expired or revoked"


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal | None
    until_us: int
    """Monotonic time until which this is believed."""


class Authenticator:
    """Reads credentials and remembers them for a second; unknown tokens are remembered too."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._reading: dict[str, asyncio.Task[Principal | None]] = {}
        self._revoked: set[Id] = set()

    async def authenticate(self, token: str) -> Principal:
        """The principal of a token.

        Raises:
            Unauthenticated: unknown, expired or revoked; nobody can tell which.
            Unavailable: the database does not answer.
        """
        if not is_token(token):
            raise Unauthenticated(_REFUSAL)
        # The token itself is a key of memory only; nothing else of this process ever holds it.
        known = self._known.get(token)
        if known is None or known.until_us <= self._clock.monotonic_us():
            principal = await self._read(token)
        else:
            principal = known.principal
        if (
            principal is None
            or principal.credential_id in self._revoked
            or self._expired(principal.expires_at)
        ):
            raise Unauthenticated(_REFUSAL)
        return principal

    async def is_valid(self, credential_id: Id) -> bool:
        """Whether a credential that was good still is, for long-lived connections. Raises Unavailable."""
        if credential_id in self._revoked:
            return False
        row = await self._database.read(lambda conn: find_credential(conn, credential_id))
        return row is not None and row.revoked_at is None and not self._expired(row.expires_at)

    def forget(self, credential_id: Id) -> None:
        """A credential was revoked on this node: refuse it from now on."""
        self._revoked.add(credential_id)

    def _expired(self, expires_at: int | None) -> bool:
        return expires_at is not None and expires_at <= self._clock.wall_us()

    async def _read(self, token: str) -> Principal | None:
        """One read per token at a time, however many ask."""
        reading = self._reading.get(token)
        if reading is None:
            reading = asyncio.create_task(self._look_up(token))
            self._reading[token] = reading
            reading.add_done_callback(lambda done: self._read_ended(token, done))
        return await asyncio.shield(reading)

    def _read_ended(self, token: str, reading: asyncio.Task[Principal | None]) -> None:
        self._reading.pop(token, None)
        if not reading.cancelled():
            reading.exception()  # whoever asked may have gone; the error is nobody's then

    async def _look_up(self, token: str) -> Principal | None:
        asked_us = self._clock.monotonic_us()
        hashed = token_hash(token)
        row = await self._database.read(lambda conn: find_by_hash(conn, hashed))
        principal = None if row is None or row.revoked_at is not None else _principal(row)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[token] = _Known(principal, asked_us + BELIEVED_US)
        return principal


def _principal(row: CredentialRow) -> Principal:
    try:
        return principal_of(row)
    except ValueError as error:
        raise Unavailable(f"the stored credential {row.id} is damaged") from error
