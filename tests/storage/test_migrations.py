from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.dialects import mysql, sqlite

from orbit_sdk.errors import Unavailable
from orbit_server.storage.database import Database
from orbit_server.storage.migrations import SchemaState, migrate, schema_state
from orbit_server.storage.migrations.frozen import frozen_text
from orbit_server.storage.migrations.state import VERSION_TABLE, sqlite_path
from orbit_server.storage.mysql import mysql_url
from orbit_server.storage.sqlite import FileLock
from orbit_server.storage.tables import metadata

VERSIONS = Path(__file__).parents[2] / "orbit_server" / "storage" / "migrations" / "versions"


def engine(url: str) -> Engine:
    return create_engine(url if url.startswith("sqlite") else mysql_url(url, driver="pymysql"))


def run(url: str, *statements: str) -> None:
    own = engine(url)
    with own.begin() as conn:
        for statement in statements:
            conn.execute(text(statement))
    own.dispose()


def shape(url: str) -> dict[str, Any]:
    """Everything the database knows of each table: columns, primary key, indexes."""
    own = engine(url)
    inspector = inspect(own)
    found = {
        name: (
            [
                (column["name"], str(column["type"]), column["nullable"], str(column["default"]))
                for column in inspector.get_columns(name)
            ],
            inspector.get_pk_constraint(name)["constrained_columns"],
            sorted(
                (str(index["name"]), tuple(index["column_names"]), bool(index["unique"]))
                for index in inspector.get_indexes(name)
            ),
        )
        for name in inspector.get_table_names()
        if name != VERSION_TABLE
    }
    own.dispose()
    return found


def test_migrating_gives_exactly_the_declared_tables(database_url: str) -> None:
    migrate(database_url)
    migrated = shape(database_url)
    assert set(migrated) == set(metadata.tables)
    own = engine(database_url)
    metadata.drop_all(own)
    metadata.create_all(own)
    own.dispose()
    assert shape(database_url) == migrated


def test_the_frozen_step_is_what_the_tables_declare() -> None:
    for dialect in (sqlite.dialect(), mysql.dialect()):
        frozen = (VERSIONS / f"v0001_first.{dialect.name}.sql").read_text()
        assert frozen == frozen_text(metadata, dialect), "run python tools/freeze_schema.py"


def test_sqlite_tables_are_strict(sqlite_url: str) -> None:
    migrate(sqlite_url)
    own = engine(sqlite_url)
    with own.connect() as conn:
        found = conn.execute(text("SELECT name, strict FROM pragma_table_list"))
        strict = {row[0]: row[1] for row in found}
    own.dispose()
    assert {strict[name] for name in metadata.tables} == {1}


def test_migrating_twice_changes_nothing(database_url: str) -> None:
    migrate(database_url)
    before = shape(database_url)
    migrate(database_url)
    assert shape(database_url) == before
    assert schema_state(database_url) is SchemaState.CURRENT


def test_an_interrupted_migration_is_seen_and_finished_by_running_it_again(database_url: str) -> None:
    assert schema_state(database_url) is SchemaState.EMPTY
    migrate(database_url)
    whole = shape(database_url)
    run(database_url, f"DELETE FROM {VERSION_TABLE}", "DROP TABLE tasks", "DROP TABLE events")
    assert schema_state(database_url) is SchemaState.HALF_APPLIED
    migrate(database_url)
    assert shape(database_url) == whole
    assert schema_state(database_url) is SchemaState.CURRENT


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        ("DROP TABLE tasks", "the table tasks is missing"),
        ("ALTER TABLE tasks DROP COLUMN can_verify", "the column tasks.can_verify is missing"),
        ("ALTER TABLE tasks ADD COLUMN colour INTEGER", "the column tasks.colour is unknown"),
    ],
)
def test_a_schema_that_is_not_what_its_version_names_is_told_and_not_called_migrated(
    database_url: str, break_it: str, said: str
) -> None:
    migrate(database_url)
    run(database_url, break_it)
    assert schema_state(database_url) is SchemaState.DIFFERENT
    with pytest.raises(Unavailable, match="cannot mend") as refused:
        migrate(database_url)
    assert [(detail.field, detail.reason) for detail in refused.value.details] == [("schema", said)]


def test_a_step_that_leaves_other_tables_than_declared_is_no_success(database_url: str) -> None:
    run(database_url, "CREATE TABLE instance_inputs (instance_id INTEGER PRIMARY KEY)")
    assert schema_state(database_url) is SchemaState.HALF_APPLIED
    with pytest.raises(Unavailable) as refused:
        migrate(database_url)
    assert refused.value.details


def test_the_schema_of_another_release_is_left_alone(database_url: str) -> None:
    migrate(database_url)
    run(database_url, f"UPDATE {VERSION_TABLE} SET version_num = 'zzzz'")
    assert schema_state(database_url) is SchemaState.UNKNOWN
    with pytest.raises(Unavailable, match="another release"):
        migrate(database_url)


@pytest.mark.parametrize(
    ("break_it", "reason"),
    [
        ([], "no schema yet"),
        ([f"UPDATE {VERSION_TABLE} SET version_num = 'zzzz'"], "does not know"),
        ([f"DELETE FROM {VERSION_TABLE}"], "interrupted; run orbit migrate"),
        (["DROP TABLE tasks"], "cannot mend"),
    ],
)
async def test_a_server_refuses_a_schema_that_is_not_the_present_one(
    database_url: str, break_it: list[str], reason: str
) -> None:
    if break_it:
        migrate(database_url)
        run(database_url, *break_it)
    with pytest.raises(Unavailable, match=reason):
        await Database(database_url).open()


def test_a_file_that_another_process_uses_is_not_migrated(sqlite_url: str) -> None:
    path = sqlite_path(sqlite_url)
    assert path is not None
    script = (
        "import sys, pathlib; from orbit_server.storage.sqlite import FileLock;"
        "FileLock(pathlib.Path(sys.argv[1])).acquire(); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable, match=f"in use by process {holder.pid}"):
            migrate(sqlite_url)
        holder.communicate()
    migrate(sqlite_url)


async def test_a_second_server_on_one_file_is_refused(sqlite_url: str) -> None:
    migrate(sqlite_url)
    async with Database(sqlite_url):
        with pytest.raises(Unavailable, match=f"in use by process {os.getpid()}"):
            await Database(sqlite_url).open()
    async with Database(sqlite_url):
        pass


def test_releasing_a_lock_twice_is_releasing_it_once(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "orbit.db")
    lock.acquire()
    lock.release()
    lock.release()
    lock.acquire()
    lock.release()


def test_only_files_are_sqlite_databases() -> None:
    for url in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(ValueError, match="must be a file"):
            sqlite_path(url)


def test_a_database_that_cannot_be_reached_is_unavailable(tmp_path: Path) -> None:
    nowhere = "mysql://orbit@127.0.0.1:1/orbit"
    for ask in (schema_state, migrate):
        with pytest.raises(Unavailable):
            ask(nowhere)
