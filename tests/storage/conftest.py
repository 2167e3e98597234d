from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from orbit_server.storage.database import Database
from orbit_server.storage.migrations import migrate
from orbit_server.storage.settings import StorageSettings
from orbit_server.storage.tables import metadata
from tests.databases import MariaDb
from tests.storage.ledger import KINDS

QUICK = StorageSettings(budget_ms=20_000, seed=1)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file that tests copy: making the tables anew costs more than most tests."""
    path = tmp_path_factory.mktemp("migrated") / "orbit.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_server(mariadb: MariaDb) -> str:
    """A migrated database that tests use one after the other."""
    url = mariadb.create_database()
    migrate(url)
    return url


@pytest.fixture
def migrated_sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    """A file with the present schema and no rows."""
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path / 'orbit.db')}"


@pytest.fixture
def migrated_mariadb_url(mariadb: MariaDb, migrated_server: str) -> Iterator[str]:
    """A MariaDB database with the present schema and no rows."""
    yield migrated_server
    empty(mariadb, migrated_server)


def empty(mariadb: MariaDb, url: str) -> None:
    """End the sessions of a database and delete all its rows."""
    name = urlsplit(url).path.lstrip("/")
    for (session,) in mariadb.execute("SELECT id FROM information_schema.processlist WHERE db = %s", name):
        mariadb._end_session(session)
    with closing(mariadb._connect()) as connection, connection.cursor() as cursor:
        for table in metadata.tables:
            cursor.execute(f"DELETE FROM {name}.{table}")


@pytest.fixture(params=["sqlite", "mariadb"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives a migrated database without rows each time it is called: for many histories in one test."""
    if request.param == "sqlite":
        file: Path = request.getfixturevalue("migrated_file")
        numbers = count()
        return lambda: f"sqlite:///{shutil.copy(file, tmp_path / f'{next(numbers)}.db')}"
    server: MariaDb = request.getfixturevalue("mariadb")
    url: str = request.getfixturevalue("migrated_mariadb_url")

    def emptied() -> str:
        empty(server, url)
        return url

    return emptied


@pytest.fixture(params=["sqlite", "mariadb"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    """A database with the present schema and no rows; the test runs once on each kind."""
    url: str = request.getfixturevalue(f"migrated_{request.param}_url")
    return url


@pytest.fixture
async def open_database(migrated_url: str) -> AsyncIterator[Callable[..., Any]]:
    """Opens the migrated database with settings of a test's choice, and closes it afterwards."""
    async with AsyncExitStack() as stack:

        async def opener(**changes: Any) -> Database:
            kinds = changes.pop("kinds", KINDS)
            database = Database(migrated_url, kinds=kinds, settings=replace(QUICK, **changes))
            return await stack.enter_async_context(database)

        yield opener
