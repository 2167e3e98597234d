"""Fills a database with copies: a workflow of each kind is run, and its rows written again under new ids."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Final

from orbit_sdk.client import OrbitClient
from tests.bench.flows import chain3, timer
from tests.bench.stage import Stage
from tests.bench.watch import Watch, connect

_TABLES: Final = {
    "instances": "id",
    "instance_inputs": "instance_id",
    "instance_outputs": "instance_id",
    "steps": "instance_id",
    "events": "workflow_id",
    "tasks": "instance_id",
    "inbox": "instance_id",
    "idempotency": "subject_id",
    "attempts": "task_id",
    "task_specs": "task_id",
    "task_results": "task_id",
}
_YEAR_US: Final = 366 * 24 * 3600 * 1_000_000
_BITE: Final = 500

Template = dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]


def fill(built: Stage, *, waiting: int, finished: int) -> None:
    """So many more instances that wait for a timer of next year, and finished tasks of workflows of three."""

    async def run_one(client: OrbitClient) -> tuple[str, str]:
        done = await client.start(chain3, 1)
        await done.result(timeout=60)
        return done.id, (await client.start(timer, 1)).id

    done, waits = built.run(run_one)
    with built.watch() as watch:
        finished_rows, waiting_rows = _template(watch, done), _template(watch, waits)
    connection = connect(built.database)
    try:
        _copy(connection, finished_rows, finished // 3, later=False)
        _copy(connection, waiting_rows, waiting, later=True)
    finally:
        connection.close()


def _template(watch: Watch, instance_id: str) -> Template:
    found: Template = {}
    tasks = [key for (key,) in watch.rows("SELECT id FROM tasks WHERE instance_id = ?", instance_id)]
    for table, column in _TABLES.items():
        owners = tasks if column == "task_id" else [instance_id]
        rows: list[tuple[Any, ...]] = []
        for owner in owners:
            rows += watch.rows(f"SELECT * FROM {table} WHERE {column} = ?", owner)
        if rows:
            found[table] = (watch.columns(table), rows)
    return found


def _copy(connection: Any, template: Template, count: int, *, later: bool) -> None:
    cursor = connection.cursor()
    mark = "?" if type(connection).__module__.startswith("sqlite3") else "%s"
    own = _own_ids(template)
    for first in range(0, count, _BITE):
        names = [_new_names(own) for _ in range(min(_BITE, count - first))]
        cursor.execute("BEGIN")
        for table, (columns, rows) in template.items():
            names_of_columns = ", ".join(f"`{column}`" for column in columns)
            marks = ", ".join([mark] * len(columns))
            statement = f"INSERT INTO {table} ({names_of_columns}) VALUES ({marks})"
            cursor.executemany(statement, list(_copies(columns, rows, names, later=later)))
        connection.commit()
    cursor.close()


def _own_ids(template: Template) -> list[str]:
    """The ids that a copy must have anew: keys, and what refers to them."""
    found: dict[str, None] = {}
    for columns, rows in template.values():
        for row in rows:
            for column, value in zip(columns, row, strict=True):
                if column in ("id", "step_id", "activation_id", "effect_root"):
                    found[value] = None
    return [value for value in found if len(value or "") == 32]


def _new_names(own: list[str]) -> dict[str, str]:
    return {value: value[:12] + secrets.token_hex(10) for value in own}


def _copies(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]], names: list[dict[str, str]], *, later: bool
) -> Iterator[tuple[Any, ...]]:
    for new in names:
        for row in rows:
            values = []
            for column, value in zip(columns, row, strict=True):
                values.append(_anew(column, value, new, later=later))
            yield tuple(values)


def _anew(column: str, value: Any, new: dict[str, str], *, later: bool) -> Any:
    """A value of the copy: its own ids, also behind a prefix (`T:<id>`), and its own time."""
    if isinstance(value, str):
        head, colon, key = value.partition(":")
        return f"{head}:{new[key]}" if colon and key in new else new.get(value, value)
    if later and column == "due_at" and value is not None:
        return value + _YEAR_US
    return value
