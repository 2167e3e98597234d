from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from orbit_server.storage.database import Database
from orbit_server.storage.migrations import migrate
from orbit_server.storage.settings import StorageSettings
from tests.storage.ledger import KINDS

QUICK = StorageSettings(budget_ms=20_000, seed=1)


@pytest.fixture
async def open_database(database_url: str) -> AsyncIterator[Callable[..., Any]]:
    """Opens the migrated database with settings of a test's choice, and closes it afterwards."""
    migrate(database_url)
    async with AsyncExitStack() as stack:

        async def opener(**changes: Any) -> Database:
            kinds = changes.pop("kinds", KINDS)
            database = Database(database_url, kinds=kinds, settings=replace(QUICK, **changes))
            return await stack.enter_async_context(database)

        yield opener
