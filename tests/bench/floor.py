"""The floor: the least durable SQL that does the job of chain3, as plain driver calls and nothing around it.

A start inserts instance, task and event; a step is two transitions: the task runs; the task is done, an event
and the next task (or the end of the instance). (i) one transaction per transition, (ii) 50 per transaction.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.bench.watch import connect
from tests.databases import MariaDb

STEPS: Final = 3
GROUP: Final = 50
_BODY: Final = json.dumps({"n": 1, "text": "x" * 60})
_TABLES: Final = (
    "CREATE TABLE instance (id CHAR(32) PRIMARY KEY, state VARCHAR(12), output TEXT)",
    "CREATE TABLE task (id CHAR(34) PRIMARY KEY, instance_id CHAR(32), state VARCHAR(12), body TEXT)",
    "CREATE INDEX ready ON task (state, id)",
    "CREATE TABLE event (id CHAR(34) PRIMARY KEY, instance_id CHAR(32), kind VARCHAR(20), body TEXT)",
)
_INSTANCE: Final = "INSERT INTO instance VALUES (?, 'RUNNING', NULL)"
_TASK: Final = "INSERT INTO task VALUES (?, ?, 'READY', ?)"
_EVENT: Final = "INSERT INTO event VALUES (?, ?, ?, ?)"
_RUNNING: Final = "UPDATE task SET state = 'RUNNING' WHERE id = ?"
_DONE: Final = "UPDATE task SET state = 'SUCCEEDED' WHERE id = ?"
_ENDED: Final = "UPDATE instance SET state = 'SUCCEEDED', output = ? WHERE id = ?"

Statement = tuple[str, tuple[str, ...]]


def _transitions(key: str) -> Iterator[list[Statement]]:
    yield [
        (_INSTANCE, (key,)),
        (_TASK, (f"{key}.0", key, _BODY)),
        (_EVENT, (f"{key}.0", key, "started", _BODY)),
    ]
    for step in range(STEPS):
        yield [(_RUNNING, (f"{key}.{step}",))]
        following = step + 1
        last: Statement = (_TASK, (f"{key}.{following}", key, _BODY))
        if following == STEPS:
            last = (_ENDED, (_BODY, key))
        yield [
            (_DONE, (f"{key}.{step}",)),
            (_EVENT, (f"{key}.{following}", key, "done", _BODY)),
            last,
        ]


def _keys(count: int) -> list[str]:
    return [secrets.token_hex(16) for _ in range(count)]


class _Plain:
    """A driver connection with the durability that the product asks for."""

    def __init__(self, url: str) -> None:
        self._connection = connect(url)
        self._cursor = self._connection.cursor()
        self._mark = "%s"
        if isinstance(self._connection, sqlite3.Connection):
            self._mark = "?"
            self._cursor.execute("PRAGMA journal_mode = WAL")
            self._cursor.execute("PRAGMA synchronous = FULL")
        for statement in _TABLES:
            self._cursor.execute(statement)

    def transact(self, work: dict[str, list[tuple[str, ...]]]) -> None:
        self._cursor.execute("BEGIN")
        for statement, rows in work.items():
            text = statement.replace("?", self._mark)
            if len(rows) == 1:
                self._cursor.execute(text, rows[0])
            else:
                self._cursor.executemany(text, rows)
        self._connection.commit()

    def close(self) -> None:
        self._connection.close()


def _grouped(parts: Sequence[list[Statement]]) -> dict[str, list[tuple[str, ...]]]:
    work: dict[str, list[tuple[str, ...]]] = {}
    for part in parts:
        for statement, values in part:
            work.setdefault(statement, []).append(values)
    return work


def _one_by_one(plain: _Plain, count: int) -> float:
    began = time.perf_counter()
    for key in _keys(count):
        for part in _transitions(key):
            plain.transact(_grouped([part]))
    return count * STEPS / (time.perf_counter() - began)


def _in_groups(plain: _Plain, count: int) -> float:
    keys = _keys(count)
    began = time.perf_counter()
    for first in range(0, count, GROUP):
        everyone = [list(_transitions(key)) for key in keys[first : first + GROUP]]
        for place in range(1 + 2 * STEPS):
            plain.transact(_grouped([one[place] for one in everyone]))
    return count * STEPS / (time.perf_counter() - began)


def floor(folder: Path, mariadb: MariaDb | None, count: int) -> dict[str, Any]:
    """Steps per second of both floors, on a new database of the same kind and on the same disk."""
    url = f"sqlite:///{folder / 'floor.db'}" if mariadb is None else mariadb.create_database()
    plain = _Plain(url)
    try:
        return {
            "floor_one_steps_per_s": _one_by_one(plain, max(1, count // 5)),
            "floor_grouped_steps_per_s": _in_groups(plain, count),
        }
    finally:
        plain.close()
        if mariadb is not None:
            mariadb.drop_database(url)
