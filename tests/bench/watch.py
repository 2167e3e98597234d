"""Looking into the database beside the server: how much is left to do, and whether all went well."""

from __future__ import annotations

import asyncio
import sqlite3
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pymysql

_PAUSE_S = 0.02


class Watch:
    """A read-only connection of its own."""

    def __init__(self, url: str, namespace: str) -> None:
        self._namespace = namespace
        self._connection: Any = connect(url)
        self._mark = "?" if url.startswith("sqlite") else "%s"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query whose parameters are written as `?`."""
        cursor = self._connection.cursor()
        cursor.execute(statement.replace("?", self._mark), values)
        found = list(cursor.fetchall())
        cursor.close()
        return found

    def columns(self, table: str) -> tuple[str, ...]:
        """Names of a table's columns, in order."""
        cursor = self._connection.cursor()
        cursor.execute(f"SELECT * FROM {table} WHERE 1 = 0")
        found = tuple(column[0] for column in cursor.description)
        cursor.close()
        return found

    def count(self, table: str, *states: str) -> int:
        """Rows of the namespace in these states."""
        found = 0
        for state in states:
            ((number,),) = self.rows(
                f"SELECT COUNT(*) FROM {table} WHERE namespace_id = ? AND state = ?", self._namespace, state
            )
            found += number
        return found

    async def drained(self, table: str, *states: str) -> None:
        """Return once no row is in one of these states."""
        while self.count(table, *states):  # noqa: ASYNC110  # another process is watched
            await asyncio.sleep(_PAUSE_S)


def connect(url: str) -> Any:
    """A driver connection that commits each statement by itself."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "",
        port=parts.port or 3306,
        user=parts.username,
        database=parts.path.lstrip("/"),
        autocommit=True,
        charset="utf8mb4",
    )
