"""The only place that knows how the two databases differ in SQL, in errors and in what they may be asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

_IN_MAX = 256
"""Ids in one IN list; longer lists are read in several statements."""
_ROWS_MAX = 500
_CHARS_MAX = 500_000
"""Bounds of one multi-row statement, far below any `max_allowed_packet` that the start-up check accepts."""
_SETS_MAX = 4
"""More different sets of changed columns than this are written as one statement over all of them."""

Values = tuple[Any, ...]


class LostRow(Exception):
    """An update by primary key matched fewer rows than it named: a racer took them, the group starts again."""


def is_sqlite(conn: Connection) -> bool:
    return conn.dialect.name == "sqlite"


class RowSql:
    """The statements of one table, their texts made once and kept: only values vary, so both caches hit."""

    def __init__(
        self, table: str, key: str, columns: Sequence[str], *, owner: str | None = None, live: str | None = None
    ) -> None:
        self._table = table
        self._key = key
        self._key_index = list(columns).index(key)
        self._columns = tuple(columns)
        self._where = owner or key
        self._live = f" AND {live} = 1" if live else ""
        self._texts: dict[object, str] = {}

    def touch(self, conn: Connection, ids: Sequence[str]) -> None:
        """Take the rows' locks by a write, which certifies on a cluster too.

        Differs because on SQLite one process writes, one transaction at a time: there is nothing to lock.
        """
        if is_sqlite(conn):
            return
        for chunk in _padded(sorted(ids)):
            text = self._text(
                ("touch", len(chunk)),
                lambda n=len(chunk): (
                    f"UPDATE {self._table} SET lock_seq = lock_seq + 1 "
                    f"WHERE {self._key} IN ({', '.join(['%s'] * n)})"
                ),
            )
            conn.exec_driver_sql(text, chunk)
