"""A transaction's rows in memory, for commands that decide on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbit_server.platform.audit import AUDIT
from orbit_server.pulse.queues import rows as queue_rows
from orbit_server.pulse.tasks import rows as task_rows
from orbit_server.storage.book import Book
from orbit_server.storage.events import EVENTS
from orbit_server.storage.kinds import Kind
from tests.unit.pulse.making import NOW

KINDS: Mapping[str, Kind[Any]] = {
    kind.name: kind for kind in (*task_rows.KINDS, *queue_rows.KINDS, AUDIT, EVENTS)
}


def book_of(*stored: tuple[Kind[Any], Any], now: int = NOW) -> Book:
    """A book that has loaded these rows; members go with their owner."""
    book = Book(KINDS, now)
    members: dict[tuple[str, str], list[Any]] = {}
    for kind, row in stored:
        if kind.owner_kind is None:
            book.put(kind.name, [kind.key_of(row)], {kind.key_of(row): row})
        else:
            members.setdefault((kind.name, kind.owner_of(row)), []).append(row)
    for (name, owner_id), rows in members.items():
        book.put(name, [owner_id], {owner_id: tuple(rows)})
    return book


def run(book: Book, command: Any) -> Any:
    """Decide a command; every row it needs beyond those of the book is known to be absent. Its answer."""
    for asked in (command.needs, lambda: command.more(book)):
        for kind, ids in asked().items():
            book.put(kind, book.missing(kind, list(ids)), {})
    return command.decide(book).answer
