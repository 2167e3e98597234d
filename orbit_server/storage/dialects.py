"""How the two databases differ in clocks and errors. In what they are sent: `row_sql` and `pipe`."""

from __future__ import annotations

import sqlite3

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from orbit_server.storage.faults import Fault, LostRow


def is_sqlite(conn: Connection) -> bool:
    """Whether the connection speaks to SQLite."""
    return conn.dialect.name == "sqlite"


# --- clocks ------------------------------------------------------------------------------------------------

MYSQL_NOW = "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"
"""UTC microseconds; the session's time zone is +00:00."""


def mysql_now(conn: Connection) -> int:
    """The server's clock."""
    return int(conn.exec_driver_sql(MYSQL_NOW).scalar_one())


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
