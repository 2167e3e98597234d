"""The only place that knows how the two databases differ in SQL, in errors and in what they may be asked."""

# ruff: noqa: S608  # statements are made of declared names; every value is a bind parameter

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from orbit_server.storage.faults import FAULTS, Fault, Faults

IN_MAX = 256
"""Ids in one IN list; longer lists are read in several statements."""
ROWS_MAX = 500
CHARS_MAX = 500_000
"""Bounds of one multi-row statement, far below any `max_allowed_packet` that the start-up check accepts."""
SETS_MAX = 4
"""More different sets of changed columns than this are written as one statement over all of them."""

Values = tuple[Any, ...]


class LostRow(Exception):
    """An update by key matched fewer rows than it named: a racer was there, the group runs again."""


def is_sqlite(conn: Connection) -> bool:
    """Whether the connection speaks to SQLite."""
    return conn.dialect.name == "sqlite"


def send(conn: Connection, text: str, values: Sequence[Any], *, many: bool = False) -> Any:
    """One statement on the driver's own cursor; answers the cursor.

    A group sends a dozen of these with finished texts and takes whole result sets: what Core does around each
    of them costs as much again. Errors are those that Core raises. `many`: `values` is a sequence of rows.
    """
    faults: Faults | None = conn.info.get(FAULTS)
    if faults is not None:
        faults.statement(text)
    cursor: Any = conn.connection.cursor()
    try:
        if many:
            cursor.executemany(text, values)
        else:
            cursor.execute(text, values)
    except Exception as error:
        driver = conn.dialect.loaded_dbapi.Error
        if not isinstance(error, driver):
            raise
        lost = conn.dialect.is_disconnect(error, conn.connection.dbapi_connection, cursor) or (
            not is_sqlite(conn) and driver_code(error) in DISCONNECT_CODES
        )
        if lost:
            conn.invalidate(error)
        raise DBAPIError.instance(
            text, None, error, driver, connection_invalidated=lost, dialect=conn.dialect
        ) from error
    return cursor


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
            text = self._text(self._touch_text, len(chunk))
            send(conn, text, chunk).close()

    def select(self, conn: Connection, ids: Sequence[str]) -> list[Values]:
        """The rows of these ids (of these owners), each as a tuple in the order of the columns."""
        mark = "?" if is_sqlite(conn) else "%s"
        rows: list[Values] = []
        for chunk in padded(ids):
            text = self._text(self._select_text, mark, len(chunk))
            cursor = send(conn, text, chunk)
            rows.extend(cursor.fetchall())
            cursor.close()
        return rows

    def insert(self, conn: Connection, rows: Sequence[Values]) -> None:
        """Insert rows; both drivers send many rows as one statement or one prepared one."""
        mark = "?" if is_sqlite(conn) else "%s"
        text = self._text(self._insert_text, mark)
        for chunk in chunked(rows):
            send(conn, text, chunk, many=True).close()

    def delete(self, conn: Connection, ids: Sequence[str]) -> None:
        """Delete rows by primary key."""
        mark = "?" if is_sqlite(conn) else "%s"
        for chunk in padded(sorted(ids)):
            send(conn, self._text(self._delete_text, mark, len(chunk)), chunk).close()

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
        cursor = send(conn, text, sent, many=True)
        _all_matched(cursor.rowcount, len(sent), self._table)
        cursor.close()

    def _update_mysql(self, conn: Connection, changed: tuple[int, ...], rows: Sequence[Values]) -> None:
        """Differs because each run is a round trip there: one statement joins all new values."""
        indexes = (self._key_index, *changed)
        for chunk in chunked([tuple([row[index] for index in indexes]) for row in rows]):
            text = self._text(self._join_text, changed, len(chunk))
            cursor = send(conn, text, tuple([value for row in chunk for value in row]))
            _all_matched(cursor.rowcount, len(chunk), self._table)
            cursor.close()

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

    def _insert_text(self, mark: str) -> str:
        columns = ", ".join(_quoted(mark, column) for column in self._columns)
        return f"INSERT INTO {self._table} ({columns}) VALUES ({_marks(mark, len(self._columns))})"

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


def _all_matched(matched: int, sent: int, table: str) -> None:
    if matched != sent:
        raise LostRow(f"{table}: {sent} rows to change, {matched} found")


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


# --- clocks ------------------------------------------------------------------------------------------------

MYSQL_NOW = "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"
"""UTC microseconds; the session's time zone is +00:00."""


def mysql_now(conn: Connection) -> int:
    """The server's clock. SQLite has none finer than a millisecond: the machine's clock is its clock."""
    cursor = send(conn, MYSQL_NOW, ())
    ((now,),) = cursor.fetchall()
    cursor.close()
    return int(now)


# --- errors ------------------------------------------------------------------------------------------------

TRANSIENT_CODES = frozenset(
    {
        1020,  # the row has changed since it was read
        1047,  # a node of the cluster that is not ready
        1053,  # the server shuts down
        1180,  # an error during COMMIT
        1205,  # a lock was waited for too long
        1213,  # deadlock, or not certified by the cluster
        1290,  # the server was made read-only (--read-only)
        1317,  # the query was interrupted
        1836,  # the server runs read-only
        1927,  # the connection was killed
        1969,  # max_statement_time of MariaDB
        2003,  # no connection
        2006,  # the server has gone away
        2013,  # the connection was lost during the query
        2014,  # the connection is out of step
        2045,  # no connection, through shared memory
        2055,  # the connection was lost, with the system's error
        3024,  # max_execution_time of MySQL
        4031,  # the server closed an idle connection
        8002,  # TiDB: SELECT FOR UPDATE was not committed and cannot be retried
        8022,  # TiDB: the commit failed and was rolled back
        8028,  # TiDB: the schema changed meanwhile
        9007,  # TiDB: write conflict
    }
)
DISCONNECT_CODES = frozenset({1047, 1053, 1290, 1836})
"""Codes after which the connection is useless, though SQLAlchemy would keep it in the pool."""
NOT_APPLIED_AT_COMMIT = frozenset({1213, 1205, 1020, 9007})
DUPLICATE_CODES = frozenset({1062, 1586})

_SQLITE_TRANSIENT = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL})


def driver_code(error: BaseException) -> int | None:
    """The driver's number of an error: MySQL's error number, SQLite's primary result code."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        extended = getattr(cause, "sqlite_errorcode", None)
        return None if extended is None else extended & 0xFF
    first = cause.args[0] if cause is not None and cause.args else None
    return first if isinstance(first, int) else None


def code_name(error: BaseException) -> str:
    """How metrics call an error."""
    code = driver_code(error)
    return type(error).__name__ if code is None else str(code)


def classify_sqlite(error: BaseException, *, at_commit: bool) -> Fault:
    """What an error of the SQLite writer means. An I/O error at COMMIT leaves only one honest way: to end."""
    code = driver_code(error)
    if isinstance(error, LostRow) or code in _SQLITE_TRANSIENT:
        return Fault.TRANSIENT
    if at_commit:
        return Fault.FATAL
    if isinstance(error, IntegrityError) and _sqlite_duplicate(error):
        return Fault.DUPLICATE
    return Fault.TRANSIENT if code == sqlite3.SQLITE_IOERR else Fault.BROKEN


def _sqlite_duplicate(error: IntegrityError) -> bool:
    extended = getattr(error.orig, "sqlite_errorcode", None)
    return extended in {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE}


def classify_mysql(error: BaseException, *, at_commit: bool) -> Fault:
    """What an error of a MySQL connection means.

    At COMMIT only a few codes say that nothing was applied; every other error there, a lost answer or the
    deadline included, leaves the outcome unknown.
    """
    if isinstance(error, LostRow):
        return Fault.TRANSIENT
    code = driver_code(error)
    if code in DUPLICATE_CODES and not at_commit:
        return Fault.DUPLICATE
    if at_commit:
        return Fault.TRANSIENT if code in NOT_APPLIED_AT_COMMIT else Fault.UNKNOWN
    if code in TRANSIENT_CODES or isinstance(error, TimeoutError | OSError | EOFError):
        return Fault.TRANSIENT
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return Fault.TRANSIENT
    return Fault.BROKEN
