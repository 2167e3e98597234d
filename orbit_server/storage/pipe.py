"""Statements of one transaction on their way to the database, in few round trips.

What is only written need not be waited for, and several questions can be asked at once. On MySQL statements
therefore queue until an answer is needed; they then travel as one query, which the database ends at the first
statement that fails. On SQLite a statement is a call, and runs at once.

Finished texts go straight to the driver: what Core does around each statement costs as much again.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only

from orbit_server.storage.dialects import DISCONNECT_CODES, driver_code, is_sqlite
from orbit_server.storage.faults import FAULTS, Faults, LostRow
from orbit_server.storage.mysql_wire import Answer, WireConnection, literal

Values = Sequence[Any]

PIPE: Final = "orbit.pipe"
"""Where a connection keeps the pipe of the transaction that it is in."""
QUEUED_MAX: Final = 1_000_000
"""Characters after which queued statements are sent, far below the `max_allowed_packet` that is required."""


@dataclass(slots=True)
class Reply:
    """The answer to a question; `rows` holds once the pipe was flushed."""

    rows: Sequence[tuple[Any, ...]] = ()


class Pipe(Protocol):
    """How a transaction speaks to its database. Texts hold `?` for values on SQLite and `%s` on MySQL."""

    def write(self, text: str, values: Values, expected: int | None = None) -> None:
        """A statement that gives no rows. `expected`: how many rows it must find, or LostRow is raised."""

    def write_rows(self, text: str, rows: Sequence[Values], expected: int | None = None) -> None:
        """On SQLite one statement for each row; on MySQL one insert whose text ends before the first row."""

    def ask(self, text: str, values: Values) -> Reply:
        """A question."""
        ...

    def flush(self) -> None:
        """Send what waits and hear the answers. Raises DBAPIError, and LostRow."""


@contextmanager
def piped(conn: Connection) -> Generator[Pipe]:
    """The pipe of the transaction that this connection is in, or one for this block, flushed at its end."""
    known: Pipe | None = conn.info.get(PIPE)
    if known is not None:
        yield known
        return
    pipe = _new_pipe(conn)
    yield pipe
    pipe.flush()


@contextmanager
def piping(conn: Connection) -> Generator[Pipe]:
    """A pipe for a whole transaction. What still waits at the end of the block is sent, unless it raises."""
    info = conn.info  # kept, because a lost connection no longer gives it
    pipe = info[PIPE] = _new_pipe(conn)
    try:
        yield pipe
        pipe.flush()
    finally:
        info.pop(PIPE, None)


def flush_before_core(engine: Engine) -> None:
    """A statement that goes through Core must not overtake those that wait."""

    @event.listens_for(engine, "before_cursor_execute")
    def before(conn: Connection, *_: object) -> None:
        pipe: Pipe | None = conn.info.get(PIPE)
        if pipe is not None:
            pipe.flush()


def _new_pipe(conn: Connection) -> Pipe:
    return SqlitePipe(conn) if is_sqlite(conn) else MySqlPipe(conn)


class SqlitePipe:
    """No queue: on SQLite a statement is a call."""

    __slots__ = ("_conn", "_faults", "_send", "_send_many")

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._faults: Faults | None = conn.info.get(FAULTS)
        driver: Any = conn.connection.driver_connection
        self._send = driver.execute
        self._send_many = driver.executemany

    def write(self, text: str, values: Values, expected: int | None = None) -> None:
        """Run a statement."""
        _must_match(self._run(self._send, text, values).rowcount, expected, text)

    def write_rows(self, text: str, rows: Sequence[Values], expected: int | None = None) -> None:
        """Run one prepared statement for each row."""
        _must_match(self._run(self._send_many, text, rows).rowcount, expected, text)

    def ask(self, text: str, values: Values) -> Reply:
        """Run a question."""
        return Reply(self._run(self._send, text, values).fetchall())

    def flush(self) -> None:
        """Nothing waits."""

    def _run(self, send: Any, text: str, values: Any) -> Any:
        if self._faults is not None:
            self._faults.statement(text)
        try:
            return send(text, values)
        except Exception as error:
            raise _as_core(self._conn, error, text) from error


def _must_match(found: int, expected: int | None, text: str) -> None:
    if expected is not None and found != expected:
        raise LostRow(f"{expected} rows to change, {found} found: {text[:60]}")


@dataclass(slots=True)
class _Queued:
    text: str
    reply: Reply | None = None
    expected: int | None = None


@dataclass(slots=True)
class MySqlPipe:
    """Statements wait for the next flush; COMMIT does not flush."""

    conn: Connection
    _queued: list[_Queued] = field(default_factory=list)
    _chars: int = 0

    def write(self, text: str, values: Values, expected: int | None = None) -> None:
        """Queue a statement."""
        self._note(text)
        self._add(_Queued(text % tuple([literal(value) for value in values]), None, expected))

    def write_rows(self, text: str, rows: Sequence[Values], expected: int | None = None) -> None:
        """Queue one insert of many rows."""
        self._note(text)
        marks = ",".join([f"({','.join([literal(value) for value in row])})" for row in rows])
        self._add(_Queued(text + marks, None, expected))

    def ask(self, text: str, values: Values) -> Reply:
        """Queue a question."""
        self._note(text)
        reply = Reply()
        self._add(_Queued(text % tuple([literal(value) for value in values]), reply))
        return reply

    def flush(self) -> None:
        """One round trip."""
        queued, self._queued, self._chars = self._queued, [], 0
        if not queued:
            return
        answers = _run(self.conn, [one.text for one in queued])
        for one, answer in zip(queued, answers, strict=True):
            if one.reply is not None:
                one.reply.rows = answer.rows
            else:
                _must_match(answer.affected, one.expected, one.text)

    def _note(self, text: str) -> None:
        faults: Faults | None = self.conn.info.get(FAULTS)
        if faults is not None:
            faults.statement(text)

    def _add(self, one: _Queued) -> None:
        self._queued.append(one)
        self._chars += len(one.text)
        if self._chars > QUEUED_MAX:
            self.flush()


def _run(conn: Connection, texts: Sequence[str]) -> list[Answer]:
    driver = conn.connection.driver_connection
    assert isinstance(driver, WireConnection)
    try:
        return await_only(driver.run(texts))
    except Exception as error:
        text = texts[min(getattr(error, "failed", 0), len(texts) - 1)]
        raise _as_core(conn, error, text) from error


def _as_core(conn: Connection, error: Exception, text: str) -> Exception:
    """A driver's error as Core would raise it; any other as it is."""
    base = conn.dialect.loaded_dbapi.Error
    if not isinstance(error, base):
        return error
    lost = conn.dialect.is_disconnect(error, conn.connection.dbapi_connection, None) or (
        not is_sqlite(conn) and driver_code(error) in DISCONNECT_CODES
    )
    if lost:
        conn.invalidate(error)
    return DBAPIError.instance(text, None, error, base, connection_invalidated=lost, dialect=conn.dialect)
