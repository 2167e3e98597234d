"""Keys of creating requests: one row per accepted request, with its digest and its answer.

A key is written in the transaction of what it created, so that a retry finds both or neither. When what was
created has been gone for long, the row keeps its bare digest: the same request is then GONE, not done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection

from orbit_sdk.errors import Conflict, Detail, Gone, OrbitError
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_server.storage import tables
from orbit_server.storage.commands import CommandKey, Done
from orbit_server.storage.kinds import LockOrder, RowKind
from orbit_server.storage.pipe import Pipe


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key. `answer` is canonical JSON, or None when only the digest is kept."""

    id: Id
    namespace_id: Id
    operation: str
    digest: str
    answer: str | None
    subject_id: Id | None
    created_at: int
    expires_at: int | None = None


class KeyStore(Protocol):
    """Where keys are kept. They are inserted last, sorted; one that only proves absence is removed again."""

    def ask(self, conn: Connection, pipe: Pipe, ids: Sequence[Id]) -> Callable[[], Mapping[Id, KeyRow]]: ...

    def save(
        self, conn: Connection, inserted: Sequence[KeyRow], changed: Sequence[tuple[KeyRow, KeyRow]]
    ) -> None: ...

    def remove(self, conn: Connection, ids: Sequence[Id]) -> None: ...


class KeyKind(RowKind[KeyRow]):
    """The stored keys; also a kind like any other, for what keeps or ends them."""

    def __init__(self) -> None:
        super().__init__("idempotency", LockOrder.RECORDS + 1, tables.idempotency, KeyRow)

    def remove(self, conn: Connection, ids: Sequence[Id]) -> None:
        """Delete keys by id."""
        self._sql.delete(conn, ids)


KEYS = KeyKind()


def key_row(key: CommandKey, done: Done[Any], now: int) -> KeyRow:
    """The row that binds an accepted request to its answer."""
    return KeyRow(
        key.id, key.namespace_id, key.operation, key.digest, canonical_json(done.answer), done.subject_id, now
    )


def probe_row(key: CommandKey, now: int) -> KeyRow:
    """A row inserted and removed in one transaction: it waits for, or meets, an old commit of its key."""
    return KeyRow(key.id, key.namespace_id, key.operation, key.digest, None, None, now)


def stored_answer(key: CommandKey, row: KeyRow, now: int) -> Any:
    """The answer that the same request got before.

    Raises:
        Conflict: the key was used for another request.
        Gone: it was used for this one, and what it created was purged long ago.
    """
    if row.digest != key.digest:
        raise Conflict(
            "this idempotency key was used for another request",
            [Detail("idempotency_key", "has another meaning")],
        )
    if row.answer is None or (row.expires_at is not None and row.expires_at < now):
        raise _gone(row)
    return json.loads(row.answer)


def _gone(row: KeyRow) -> OrbitError:
    details = [Detail("id", row.subject_id)] if row.subject_id else []
    return Gone("what this idempotency key created was purged; it is not done again", details)
