"""A node of its own for every test of the HTTP interface."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server import Api, node
from tests.storage.conftest import (  # noqa: F401  # fixtures
    migrated_file,
    migrated_mariadb_url,
    migrated_server,
    migrated_sqlite_url,
    migrated_url,
)


@pytest.fixture
async def api(migrated_url: str) -> AsyncIterator[Api]:  # noqa: F811
    """A node over an empty database; the test runs once on SQLite and once on MariaDB."""
    async with node(migrated_url) as found:
        yield found


@pytest.fixture
async def edge(migrated_sqlite_url: str) -> AsyncIterator[Api]:  # noqa: F811
    """The same on SQLite alone, for what is decided before the database is asked."""
    async with node(migrated_sqlite_url) as found:
        yield found
