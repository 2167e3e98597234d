"""The statements of one table, as each of the two databases takes them best."""

# ruff: noqa: S608  # statements are made of declared names; every value is bound or written as a literal

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from orbit_server.storage.dialects import is_sqlite
from orbit_server.storage.pipe import Pipe, Reply, piped

IN_MAX = 256
"""Ids in one IN list; longer lists are read in several statements."""
ROWS_MAX = 500
CHARS_MAX = 500_000
"""Bounds of one multi-row statement, far below any `max_allowed_packet` that the start-up check accepts."""
SETS_MAX = 4
"""More different sets of changed columns than this are written as one statement over all of them."""

Values = tuple[Any, ...]


class RowSql:
    """The statements of one table. Their texts are made once and kept, so that every cache hits."""

    def __init__(
        self,
        table: str,
        key: str,
        columns: Sequence[str],
        *,
        owner: str | None = None,
        live: str | None = None,
    ) -> None:
        self._table = table
        self._key = key
        self._columns = tuple(columns)
        self._key_index = self._columns.index(key)
        self._where = owner or key
        self._live = f" AND {live}" if live else ""
        self._texts: dict[object, str] = {}

    def touch(self, conn: Connection, ids: Sequence[str]) -> None:
        """Take the rows' locks by a write, which is certified on a cluster too.

        Differs because on SQLite one process writes, one transaction at a time: there is nothing to lock.
        """
        if is_sqlite(conn):
            return
        for chunk in padded(sorted(ids)):
            with piped(conn) as pipe:
                pipe.write(self._text(self._touch_text, len(chunk)), chunk)

    def select(self, conn: Connection, ids: Sequence[str]) -> list[Values]:
        """The rows of these ids (of these owners), each as a tuple in the order of the columns."""
        with piped(conn) as pipe:
            replies = self.ask(pipe, conn, ids)
            pipe.flush()
        return [row for reply in replies for row in reply.rows]

    def ask(self, pipe: Pipe, conn: Connection, ids: Sequence[str]) -> list[Reply]:
        """As `select`, without waiting: the replies hold once the pipe was flushed."""
        mark = "?" if is_sqlite(conn) else "%s"
        return [pipe.ask(self._text(self._select_text, mark, len(chunk)), chunk) for chunk in padded(ids)]

    def insert(self, conn: Connection, rows: Sequence[Values]) -> None:
        """Insert rows: as one statement on MySQL, as one prepared statement run many times on SQLite."""
        text = self._text(self._insert_text, "?" if is_sqlite(conn) else "%s")
        with piped(conn) as pipe:
            for chunk in chunked(rows):
                pipe.write_rows(text, chunk)

    def delete(self, conn: Connection, ids: Sequence[str]) -> None:
        """Delete rows by primary key."""
        mark = "?" if is_sqlite(conn) else "%s"
        with piped(conn) as pipe:
            for chunk in padded(sorted(ids)):
                pipe.write(self._text(self._delete_text, mark, len(chunk)), chunk)

    def assign(self, conn: Connection, column: str, value: int, ids: Sequence[str]) -> None:
        """Give one column the same value in all rows of these ids."""
        mark = "?" if is_sqlite(conn) else "%s"
        with piped(conn) as pipe:
            for chunk in padded(ids):
                pipe.write(self._text(self._assign_text, mark, column, value, len(chunk)), chunk)

    def update(self, conn: Connection, pairs: Sequence[tuple[Values, Values]]) -> None:
        """Write the changed columns of (before, after) pairs by key. Raises LostRow when one is gone."""
        by_set: dict[tuple[int, ...], list[Values]] = {}
        for before, after in pairs:
            changed = tuple(
                [
                    index
                    for index, (old, new) in enumerate(zip(before, after, strict=True))
                    if old is not new and old != new
                ]
            )
            if changed:
                by_set.setdefault(changed, []).append(after)
        if len(by_set) > SETS_MAX:
            union = tuple(sorted({index for changed in by_set for index in changed}))
            by_set = {union: [after for rows in by_set.values() for after in rows]}
        write = self._update_sqlite if is_sqlite(conn) else self._update_mysql
        for changed, rows in by_set.items():
            write(conn, changed, rows)

    def _update_sqlite(self, conn: Connection, changed: tuple[int, ...], rows: Sequence[Values]) -> None:
        """Differs because SQLite runs one prepared statement many times at no cost per round trip."""
        text = self._text(self._update_text, changed)
        key = self._key_index
        sent = [(*[row[index] for index in changed], row[key]) for row in rows]
        with piped(conn) as pipe:
            pipe.write_rows(text, sent, expected=len(sent))

    def _update_mysql(self, conn: Connection, changed: tuple[int, ...], rows: Sequence[Values]) -> None:
        """Differs because each run is a round trip there: one statement joins all new values."""
        indexes = (self._key_index, *changed)
        for chunk in chunked([tuple([row[index] for index in indexes]) for row in rows]):
            text = self._text(self._join_text, changed, len(chunk))
            with piped(conn) as pipe:
                pipe.write(text, [value for row in chunk for value in row], expected=len(chunk))

    # --- texts ---

    def _text(self, make: Callable[..., str], *args: Any) -> str:
        key = (make.__name__, *args)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = make(*args)
        return text

    def _touch_text(self, count: int) -> str:
        return (
            f"UPDATE {self._table} SET lock_seq = lock_seq + 1 WHERE {self._key} IN ({_marks('%s', count)})"
        )

    def _select_text(self, mark: str, count: int) -> str:
        columns = ", ".join(_quoted(mark, column) for column in self._columns)
        where = _quoted(mark, self._where)
        return f"SELECT {columns} FROM {self._table} WHERE {where} IN ({_marks(mark, count)}){self._live}"

    def _delete_text(self, mark: str, count: int) -> str:
        return f"DELETE FROM {self._table} WHERE {self._key} IN ({_marks(mark, count)})"

    def _assign_text(self, mark: str, column: str, value: int, count: int) -> str:
        where = f"{self._key} IN ({_marks(mark, count)})"
        return f"UPDATE {self._table} SET {_quoted(mark, column)} = {value} WHERE {where}"

    def _insert_text(self, mark: str) -> str:
        columns = ", ".join(_quoted(mark, column) for column in self._columns)
        text = f"INSERT INTO {self._table} ({columns}) VALUES "
        return text + f"({_marks(mark, len(self._columns))})" if mark == "?" else text

    def _update_text(self, changed: tuple[int, ...]) -> str:
        sets = ", ".join(f'"{self._columns[index]}" = ?' for index in changed)
        return f"UPDATE {self._table} SET {sets} WHERE {self._key} = ?"

    def _join_text(self, changed: tuple[int, ...], count: int) -> str:
        """The key is sent as ASCII, or the join would convert the column and lose its index."""
        names = [f"c{place}" for place in range(len(changed))]
        first = ", ".join(["CONVERT(%s USING ascii) AS k", *[f"%s AS {name}" for name in names]])
        rest = ", ".join(["CONVERT(%s USING ascii)", *["%s"] * len(changed)])
        union = " UNION ALL ".join([f"SELECT {first}", *[f"SELECT {rest}"] * (count - 1)])
        sets = ", ".join(
            f"t.`{self._columns[index]}` = v.{name}" for index, name in zip(changed, names, strict=True)
        )
        return f"UPDATE {self._table} t JOIN ({union}) v ON t.{self._key} = v.k SET {sets}"


def _quoted(mark: str, column: str) -> str:
    return f'"{column}"' if mark == "?" else f"`{column}`"


def _marks(mark: str, count: int) -> str:
    return ", ".join([mark] * count)


def padded(ids: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """IN lists of few different lengths (powers of two, the last id repeated), so that texts repeat."""
    for start in range(0, len(ids), IN_MAX):
        chunk = tuple(ids[start : start + IN_MAX])
        size = 1 << (len(chunk) - 1).bit_length()
        yield chunk + (chunk[-1],) * (size - len(chunk))


def chunked(rows: Sequence[Values]) -> Iterator[list[Values]]:
    """Rows in pieces that fit a statement; a single large row is a piece of its own."""
    piece: list[Values] = []
    chars = 0
    for row in rows:
        size = sum([len(value) for value in row if isinstance(value, str)])
        if piece and (len(piece) >= ROWS_MAX or chars + size > CHARS_MAX):
            yield piece
            piece, chars = [], 0
        piece.append(row)
        chars += size
    if piece:
        yield piece
