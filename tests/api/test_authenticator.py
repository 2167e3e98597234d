"""From a token to a principal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
from sqlalchemy import Connection, update

from orbit_sdk.errors import Unauthenticated, Unavailable
from orbit_server.clock import ManualClock, SystemClock
from orbit_server.platform.authenticator import BELIEVED_US, Authenticator
from orbit_server.platform.offline import create_credential
from orbit_server.platform.tokens import is_token, new_token, token_hash
from orbit_server.storage.database import Database
from orbit_server.storage.tables import credentials
from tests.server import EVERYTHING, Api, node


async def revoke_elsewhere(api: Api, credential_id: str) -> None:
    """As another node would: this one is told nothing."""

    def run(conn: Connection) -> None:
        conn.execute(update(credentials).where(credentials.c.id == credential_id).values(revoked_at=1))

    await api.parts.server.database.write(run)


def test_tokens_have_one_shape_and_never_repeat() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == len({token_hash(token) for token in tokens}) == 100
    assert all(map(is_token, tokens))
    token = tokens.pop()
    for bad in ("", token[:-1], token + "0", token.upper(), token + "\n", token.replace("orbit", "Orbit")):
        assert not is_token(bad)


async def test_a_revocation_elsewhere_is_seen_within_a_second(migrated_sqlite_url: str) -> None:
    clock = ManualClock(SystemClock().wall_us())
    async with node(migrated_sqlite_url, clock=clock) as api:
        server = api.parts.server
        made = await create_credential(server.database, clock, EVERYTHING, name="n")
        principal = await server.authenticator.authenticate(made.token)
        assert (principal.credential_id, principal.name) == (made.credential_id, "n")
        await revoke_elsewhere(api, made.credential_id)
        clock.advance(BELIEVED_US - 1)
        await server.authenticator.authenticate(made.token)
        clock.advance(1)
        with pytest.raises(Unauthenticated):
            await server.authenticator.authenticate(made.token)
        assert not await server.authenticator.is_valid(made.credential_id)


async def test_a_credential_ends_when_it_said_it_would(migrated_sqlite_url: str) -> None:
    clock = ManualClock(SystemClock().wall_us())
    async with node(migrated_sqlite_url, clock=clock) as api:
        server = api.parts.server
        expires_at = clock.wall_us() + 500_000
        made = await create_credential(server.database, clock, EVERYTHING, name="n", expires_at=expires_at)
        await server.authenticator.authenticate(made.token)
        assert await server.authenticator.is_valid(made.credential_id)
        clock.advance(500_000)
        with pytest.raises(Unauthenticated):
            await server.authenticator.authenticate(made.token)
        assert not await server.authenticator.is_valid(made.credential_id)


class Counted:
    """The database, with its reads counted."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.reads = 0

    async def read(self, fn: Callable[[Connection], object]) -> object:
        self.reads += 1
        return await self.database.read(fn)


async def test_many_requests_of_one_token_read_it_once(edge: Api) -> None:
    counted = Counted(edge.parts.server.database)
    authenticator = Authenticator(cast(Database, counted), edge.parts.server.clock)
    token = edge.token or ""
    found = await asyncio.gather(*[authenticator.authenticate(token) for _ in range(100)])
    assert len({principal.credential_id for principal in found}) == 1
    assert counted.reads == 1


async def test_a_damaged_credential_is_unavailable_and_not_unknown(edge: Api) -> None:
    server = edge.parts.server
    made = await create_credential(server.database, server.clock, EVERYTHING, name="n")

    def damage(conn: Connection) -> None:
        conn.execute(
            update(credentials).where(credentials.c.id == made.credential_id).values(permissions="{")
        )

    await server.database.write(damage)
    with pytest.raises(Unavailable, match="damaged"):
        await server.authenticator.authenticate(made.token)
    assert (await Api(edge.parts, made.token).get("/v1/tasks")).code == "UNAVAILABLE"
    assert (await edge.get("/v1/tasks")).status == 200


async def test_a_caller_who_goes_away_leaves_the_others_their_answer(edge: Api) -> None:
    authenticator = Authenticator(edge.parts.server.database, edge.parts.server.clock)
    first = asyncio.create_task(authenticator.authenticate(edge.token or ""))
    second = asyncio.create_task(authenticator.authenticate(edge.token or ""))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).name == "tests"
    with pytest.raises(asyncio.CancelledError):
        await first
