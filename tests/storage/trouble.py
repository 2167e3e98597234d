"""Faults that a test puts into transactions, each the error that the driver would raise."""

from __future__ import annotations

import sqlite3
from collections import deque

import pymysql

from orbit_server.storage.faults import Fault, TransactionFailed


def mysql_error(code: int) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(code, f"put in by a test: {code}")


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(f"put in by a test: {code}")
    error.sqlite_errorcode = code
    return error


def unknown() -> TransactionFailed:
    """What a lost answer to COMMIT means, on either database."""
    return TransactionFailed(Fault.UNKNOWN, ConnectionError("the answer was lost"))


class Script:
    """Raises planned errors: at the n-th statement that contains a text, before or after a COMMIT."""

    def __init__(self) -> None:
        self.at_statement: dict[int, BaseException] = {}
        self.at_text: list[tuple[str, BaseException]] = []
        self.always_at_text: list[tuple[str, BaseException]] = []
        self.before: deque[BaseException | None] = deque()
        self.after: deque[BaseException | None] = deque()
        self.statements: list[str] = []
        self.commits = 0

    def statement(self, sql: str) -> None:
        self.statements.append(sql)
        error = self.at_statement.pop(len(self.statements), None)
        for place, (text, planned) in enumerate(self.at_text):
            if error is None and text in sql:
                error = planned
                del self.at_text[place]
        for text, planned in self.always_at_text:
            if text in sql:
                raise planned
        if error is not None:
            raise error

    def before_commit(self) -> None:
        self._next(self.before)

    def after_commit(self) -> None:
        self.commits += 1
        self._next(self.after)

    def _next(self, plan: deque[BaseException | None]) -> None:
        error = plan.popleft() if plan else None
        if error is not None:
            raise error
