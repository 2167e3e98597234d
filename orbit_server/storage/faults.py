"""Faults: what can go wrong with a transaction, told apart by what it means for the group."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from sqlalchemy import Connection, Engine, event


class Fault(Enum):
    """What a failed transaction means."""

    TRANSIENT = "transient"
    """Nothing was applied; trying again may help (deadlock, lock wait, certification, server away)."""
    DUPLICATE = "duplicate"
    """Nothing was applied; a racer wrote a row of the same key: trying again finds it."""
    UNKNOWN = "unknown"
    """It failed at COMMIT: it may have been applied."""
    FATAL = "fatal"
    """The database file can no longer be trusted to keep what it says; the process must end."""
    BROKEN = "broken"
    """Trying again cannot help: a bug, or a value that the database refuses."""


class TransactionFailed(Exception):
    """One run of a transaction failed. `cause` is the driver's error."""

    def __init__(self, fault: Fault, cause: BaseException) -> None:
        super().__init__(f"{fault.value}: {cause}")
        self.fault = fault
        self.cause = cause


class LostRow(Exception):
    """An update by key matched fewer rows than it named: a racer was there, the group runs again."""


class Faults(Protocol):
    """The seam where tests put in failures: each call may raise what a driver would raise."""

    def statement(self, sql: str) -> None:
        """Before a statement of a write transaction is sent."""

    def before_commit(self) -> None:
        """Before COMMIT is sent: raising means that it never arrived."""

    def after_commit(self) -> None:
        """After COMMIT succeeded: raising means that its answer was lost."""


FAULTS = "orbit.faults"
"""Where a connection keeps the faults that its statements are shown to."""


def watch_statements(engine: Engine, faults: Faults) -> None:
    """Let a test's faults see every statement before it is sent."""

    @event.listens_for(engine, "before_cursor_execute")
    def before(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        faults.statement(statement)

    @event.listens_for(engine, "engine_connect")
    def mark(conn: Connection) -> None:
        conn.info[FAULTS] = faults
