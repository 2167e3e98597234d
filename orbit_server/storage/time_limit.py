"""Reads that may take too long are given up."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection

from orbit_server.storage.dialects import driver_code, is_sqlite

_STEPS_BETWEEN_LOOKS: Final = 10_000
_OVER_CODES: Final = frozenset({9, 1969, 3024})
"""SQLite, MariaDB, MySQL."""


class TimeOver(Exception):
    """A read took longer than it may, and was given up."""


@contextmanager
def time_limit(conn: Connection, seconds: float) -> Generator[None]:
    """End the queries of the block when the time is over: all of them together on SQLite, each one elsewhere.

    Raises TimeOver.
    """
    _set(conn, seconds)
    try:
        yield
    except Exception as error:
        if driver_code(error) in _OVER_CODES:
            raise TimeOver from error
        raise
    finally:
        _set(conn, None)


def _set(conn: Connection, seconds: float | None) -> None:
    if is_sqlite(conn):
        raw: Any = conn.connection.driver_connection
        if seconds is None:
            raw.set_progress_handler(None, 0)
        else:
            until = time.monotonic() + seconds
            raw.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS_BETWEEN_LOOKS)
    elif getattr(conn.dialect, "is_mariadb", False):
        limit = "DEFAULT" if seconds is None else f"{seconds:.3f}"
        conn.exec_driver_sql(f"SET SESSION max_statement_time = {limit}")
    else:
        limit = "DEFAULT" if seconds is None else str(max(1, round(seconds * 1000)))
        conn.exec_driver_sql(f"SET SESSION max_execution_time = {limit}")
