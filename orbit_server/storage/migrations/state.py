"""Where a database's schema stands, and how it is brought to the present."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from orbit_sdk.errors import Unavailable
from orbit_server.storage.mysql import mysql_url
from orbit_server.storage.sqlite import FileLock, sqlite_engine
from orbit_server.storage.tables import metadata

VERSION_TABLE: Final = "schema_version"
_BUSY_TIMEOUT_MS: Final = 5_000


class SchemaState(StrEnum):
    """What a server finds when it looks at the schema; it starts on CURRENT only."""

    CURRENT = "current"
    EMPTY = "empty"
    BEHIND = "behind"
    HALF_APPLIED = "half-applied"
    UNKNOWN = "unknown"


def sqlite_path(url: str) -> Path | None:
    """The file of a `sqlite:///` URL; None for another database."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return None
    if not parsed.database or parsed.database == ":memory:":
        raise ValueError("the database must be a file: sqlite:///path")
    return Path(parsed.database)


def migrate(url: str) -> None:
    """Bring the database to the present schema. Safe to run again, also after an interruption.

    Raises Unavailable when the file is in use, the server does not answer, or another release made it.
    """
    path = sqlite_path(url)
    lock = None if path is None else FileLock(path)
    if lock is not None:
        lock.acquire()
    engine = _engine(url)
    try:
        with engine.connect() as conn:
            if state_of(conn) is SchemaState.UNKNOWN:
                raise Unavailable("the database has the schema of another release")
            conn.rollback()
            _upgrade(conn)
            conn.commit()
    except DBAPIError as error:
        raise Unavailable(f"the database could not be migrated: {error.orig}") from error
    finally:
        engine.dispose()
        if lock is not None:
            lock.release()


def schema_state(url: str) -> SchemaState:
    """Where the database's schema stands. Raises Unavailable when it cannot be reached."""
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return SchemaState.EMPTY
    engine = _engine(url)
    try:
        with engine.connect() as conn:
            return state_of(conn)
    except DBAPIError as error:
        raise Unavailable(f"the database cannot be reached: {error.orig}") from error
    finally:
        engine.dispose()


def state_of(conn: Connection) -> SchemaState:
    """Where the schema behind a connection stands."""
    scripts = _scripts()
    present = set(inspect(conn).get_table_names())
    ours = present & set(metadata.tables)
    context = MigrationContext.configure(conn, opts={"version_table": VERSION_TABLE})
    version = context.get_current_revision()
    if version is None:
        return SchemaState.HALF_APPLIED if ours else SchemaState.EMPTY
    if version == scripts.get_current_head():
        return SchemaState.CURRENT if ours == set(metadata.tables) else SchemaState.HALF_APPLIED
    known = {script.revision for script in scripts.walk_revisions()}
    return SchemaState.BEHIND if version in known else SchemaState.UNKNOWN


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(__file__).parent))


def _upgrade(conn: Connection) -> None:
    scripts = _scripts()

    def steps(revision: object, _context: MigrationContext) -> list[object]:
        return list(scripts._upgrade_revs("head", revision))  # type: ignore[arg-type]  # noqa: SLF001

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=conn, target_metadata=metadata, version_table=VERSION_TABLE)
        with environment.begin_transaction():
            environment.run_migrations()


def _engine(url: str) -> Engine:
    path = sqlite_path(url)
    if path is not None:
        return sqlite_engine(path, busy_timeout_ms=_BUSY_TIMEOUT_MS)
    return create_engine(mysql_url(url, driver="pymysql"), poolclass=NullPool)
