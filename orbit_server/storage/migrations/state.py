"""Where a database's schema stands, and how it is brought to the present."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from orbit_sdk.errors import Detail, Unavailable
from orbit_server.storage.mysql import mysql_url
from orbit_server.storage.sqlite import FileLock, sqlite_engine
from orbit_server.storage.tables import metadata

VERSION_TABLE: Final = "schema_version"
_BUSY_TIMEOUT_MS: Final = 5_000
_TOLD: Final = 10
_COLUMNS: Final = {
    "sqlite": "SELECT t.name, c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c "
    "WHERE t.type = 'table'",
    "mysql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE()",
}


class SchemaState(StrEnum):
    """What a server finds when it looks at the schema; it starts on CURRENT only."""

    CURRENT = "current"
    EMPTY = "empty"
    BEHIND = "behind"
    HALF_APPLIED = "half-applied"
    DIFFERENT = "different"
    """Its version is the present one, its tables or columns are not: no step would run, none could help."""
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

    Raises Unavailable when the file is in use, the server does not answer, another release made it, or what
    is there is not what its version names.
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
            if state_of(conn) is not SchemaState.CURRENT:
                raise different(conn)
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
    context = MigrationContext.configure(conn, opts={"version_table": VERSION_TABLE})
    version = context.get_current_revision()
    if version is None:
        return SchemaState.HALF_APPLIED if columns_of(conn) else SchemaState.EMPTY
    if version == scripts.get_current_head():
        return SchemaState.DIFFERENT if differences(conn) else SchemaState.CURRENT
    known = {script.revision for script in scripts.walk_revisions()}
    return SchemaState.BEHIND if version in known else SchemaState.UNKNOWN


def different(conn: Connection) -> Unavailable:
    """Says how the schema differs from the declared one, and that running steps again would not help."""
    found = differences(conn)
    more = [f"and {len(found) - _TOLD} more"] if len(found) > _TOLD else []
    return Unavailable(
        "the database does not have the schema that its version names, and a migration cannot mend it: "
        "restore a backup, or begin with an empty database",
        [Detail("schema", said) for said in (*found[:_TOLD], *more)],
    )


def differences(conn: Connection) -> list[str]:
    """How the tables that are there differ from the declared ones, in sentences."""
    present = columns_of(conn)
    found = []
    for name, table in sorted(metadata.tables.items()):
        if name not in present:
            found.append(f"the table {name} is missing")
            continue
        declared = {column.name for column in table.columns}
        found += [f"the column {name}.{column} is missing" for column in sorted(declared - present[name])]
        found += [f"the column {name}.{column} is unknown" for column in sorted(present[name] - declared)]
    return found


def columns_of(conn: Connection) -> dict[str, set[str]]:
    """The names of the columns of every table of ours that is there, in one question."""
    dialect = "sqlite" if conn.dialect.name == "sqlite" else "mysql"
    found: dict[str, set[str]] = {}
    for table, column in conn.exec_driver_sql(_COLUMNS[dialect]):
        if table in metadata.tables:
            found.setdefault(str(table), set()).add(str(column))
    return found


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
