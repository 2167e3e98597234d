"""Pulse on a real database, with workers that only remember what they were offered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.migrations import migrate
from tests.storage.pulse.house import House

TIMES = PulseTimes(lease_ms=2_000)


@pytest.fixture
async def house(database_url: str) -> AsyncIterator[House]:
    """One server's Pulse over a fresh database."""
    migrate(database_url)
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(House(database_url, TIMES))


@pytest.fixture
async def two_houses(mariadb_url: str) -> AsyncIterator[tuple[House, House]]:
    """Two servers over one database (a SQLite file has one server only)."""
    migrate(mariadb_url)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(House(mariadb_url, TIMES, cluster=True))
        second = await stack.enter_async_context(House(mariadb_url, TIMES, cluster=True))
        yield first, second
