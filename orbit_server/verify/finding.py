"""A violation that was found, and the shape of the queries that look for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from sqlalchemy import Connection, text

MOST: Final = 50
"""Findings of one query: a broken database is shown, not listed in full."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation: which of the ten rules, about what (a table's word for it and its id), and how."""

    rule: int
    kind: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.kind} {self.subject} {self.message}"


@dataclass(frozen=True, slots=True)
class Probe:
    """A query whose every row is a violation: the subject's id first, then what `message` shows of it.

    `rest` ends the query where several have the same end.
    """

    kind: str
    message: str
    sql: str
    rest: str = ""

    def run(self, conn: Connection, rule: int) -> Iterator[Finding]:
        rows = conn.execute(text(self.sql + self.rest)).fetchmany(MOST)
        for row in rows:
            subject, *shown = row
            yield Finding(rule, self.kind, subject, self.message.format(*shown))


Look: TypeAlias = Callable[[Connection], Iterator[tuple[str, str, str]]]
"""What a query alone cannot say: yields (kind, subject, message)."""
