"""What every test may ask for: a database URL on each kind of database, or a MariaDB server to mistreat."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.databases import MariaDb, may_do_without_mariadb, running_mariadb
from tests.databases import sqlite_url as new_sqlite_url

# Timing is never judged: a shared machine may stall for longer than any deadline.
settings.register_profile(
    "orbit", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("thorough", settings.get_profile("orbit"), max_examples=2000)
settings.load_profile(os.environ.get("ORBIT_HYPOTHESIS", "orbit"))


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    """A folder with a short path for servers: socket paths are limited to about 100 characters."""
    folder = Path(tempfile.mkdtemp(prefix="orbit-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb(server_folder: Path) -> Iterator[MariaDb]:
    """The fast private MariaDB server of this test process. Never kill it: see `new_mariadb`."""
    _skip_when_told_so()
    with running_mariadb(server_folder / "shared", durable=False) as server:
        yield server


@pytest.fixture
def new_mariadb(server_folder: Path) -> Iterator[Callable[..., MariaDb]]:
    """Starts durable private MariaDB servers that one test may kill, stop, freeze and start again."""
    _skip_when_told_so()
    with ExitStack() as servers:

        def start(*, durable: bool = True, options: tuple[str, ...] = ()) -> MariaDb:
            folder = Path(tempfile.mkdtemp(prefix="own-", dir=server_folder))
            return servers.enter_context(running_mariadb(folder, durable=durable, options=options))

        yield start


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """`sqlite:////…/file.db` of a file that does not exist yet."""
    return new_sqlite_url(tmp_path)


@pytest.fixture
def mariadb_url(mariadb: MariaDb) -> Iterator[str]:
    """`mysql://user@127.0.0.1:port/db` of a new, empty database."""
    url = mariadb.create_database()
    yield url
    mariadb.drop_database(url)


@pytest.fixture(params=["sqlite", "mariadb"])
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of a new, empty database; a test that asks for it runs once on SQLite and once on MariaDB."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def _skip_when_told_so() -> None:
    if may_do_without_mariadb():
        pytest.skip("no MariaDB on this machine, and ORBIT_TEST_WITHOUT_MARIADB=1")
