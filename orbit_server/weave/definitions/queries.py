"""Reads of published definitions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.tables import definition_documents, definition_pointers, definitions
from orbit_server.weave.definitions.rows import DefinitionRow, DocumentRow, definition_key, pointer_key

_ROW = [definitions.c[name] for name in DefinitionRow.__dataclass_fields__]
_DOCUMENT = [definition_documents.c[name] for name in DocumentRow.__dataclass_fields__]


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version and whether it is the current one."""

    row: DefinitionRow
    current: bool


def current_version(conn: Connection, namespace_id: Id, definition_id: str) -> int | None:
    """The version that `current` points at now, or None."""
    table = definition_pointers
    found = conn.execute(
        select(table.c.current_version).where(table.c.id == pointer_key(namespace_id, definition_id))
    ).first()
    return None if found is None else found[0]


def pointer(conn: Connection, namespace_id: Id, definition_id: str) -> tuple[int | None, int] | None:
    """The current version (None: nobody said one) and the highest; None when nothing is published."""
    table = definition_pointers
    found = conn.execute(
        select(table.c.current_version, table.c.latest_version).where(
            table.c.id == pointer_key(namespace_id, definition_id)
        )
    ).first()
    return None if found is None else (found[0], found[1])


def document(conn: Connection, row_id: Id) -> DocumentRow | None:
    """The stored document of a version."""
    found = conn.execute(select(*_DOCUMENT).where(definition_documents.c.id == row_id)).first()
    return None if found is None else DocumentRow(*found)


def version(conn: Connection, namespace_id: Id, definition_id: str, number: int) -> VersionView | None:
    """One version by its number."""
    row_id = definition_key(namespace_id, definition_id, number)
    found = conn.execute(select(*_ROW).where(definitions.c.id == row_id)).first()
    if found is None:
        return None
    row = DefinitionRow(*found)
    return VersionView(row, current_version(conn, namespace_id, definition_id) == row.version)


def versions(
    conn: Connection, namespace_id: Id, definition_id: str | None, before: tuple[str, int] | None, limit: int
) -> list[VersionView]:
    """A page of versions by (definition id, newest version first); `before` is the last one seen."""
    table = definitions
    query = select(*_ROW).where(table.c.namespace_id == namespace_id)
    if definition_id is not None:
        query = query.where(table.c.definition_id == definition_id)
    if before is not None:
        seen_id, seen_version = before
        query = query.where(
            (table.c.definition_id > seen_id)
            | ((table.c.definition_id == seen_id) & (table.c.version < seen_version))
        )
    query = query.order_by(table.c.definition_id, table.c.version.desc()).limit(limit)
    rows = [DefinitionRow(*found) for found in conn.execute(query)]
    ids = {pointer_key(namespace_id, row.definition_id) for row in rows}
    pointers = definition_pointers
    current = {
        found[0]: found[1]
        for found in conn.execute(
            select(pointers.c.definition_id, pointers.c.current_version).where(pointers.c.id.in_(sorted(ids)))
        )
    }
    return [VersionView(row, current.get(row.definition_id) == row.version) for row in rows]
