"""The rows of published definitions, and the ids that follow from what they name."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


def definition_key(namespace_id: Id, definition_id: str, version: int) -> Id:
    """The row id of one version: a second row of the same version cannot exist."""
    return derive_id("definition", namespace_id, definition_id, str(version))


def pointer_key(namespace_id: Id, definition_id: str) -> Id:
    """The row id of the pointers (current, latest) of one definition id."""
    return derive_id("definition pointer", namespace_id, definition_id)


def draft_key(namespace_id: Id, definition_id: str, digest: str) -> Id:
    """The row id of a draft: its content is its identity."""
    return derive_id("definition draft", namespace_id, definition_id, digest)


@dataclass(frozen=True, slots=True)
class DefinitionRow:
    """One published version; only `retired_at` ever changes."""

    id: Id
    namespace_id: Id
    definition_id: str
    version: int
    digest: str
    published_at: int
    published_by: str
    retired_at: int | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """The document's canonical text as published, its side table, and the queues and handlers that it names
    (JSON lists). Its id is that of a version, or of a draft.
    """

    id: Id
    document: str
    side_table: str | None
    queues: str
    handlers: str


@dataclass(frozen=True, slots=True)
class DraftRow:
    """A definition on trial: `version` is only what its document says, the digest is what it goes by.

    `used_at`: when it was first started; such a draft stays at least as long as its workflows are kept.
    """

    id: Id
    namespace_id: Id
    definition_id: str
    version: int
    digest: str
    made_at: int
    made_by: str
    used_at: int | None
    last: int


@dataclass(frozen=True, slots=True)
class PointerRow:
    """`current_version` is what a start without a version takes; null until somebody says so."""

    id: Id
    namespace_id: Id
    definition_id: str
    current_version: int | None
    latest_version: int
    revision: int
    last: int


# Starts read these two without a touch: many starts would otherwise wait for one another on one row.
DEFINITIONS: RowKind[DefinitionRow] = RowKind(
    "definitions", LockOrder.DEFINITIONS, tables.definitions, DefinitionRow
)
POINTER_READS: RowKind[PointerRow] = RowKind(
    "definition_pointer_reads", LockOrder.DEFINITIONS, tables.definition_pointers, PointerRow
)
POINTERS: RowKind[PointerRow] = RowKind(
    "definition_pointers", LockOrder.DEFINITIONS, tables.definition_pointers, PointerRow, touchable=True
)
DOCUMENTS: RowKind[DocumentRow] = RowKind(
    "definition_documents", LockOrder.COLD, tables.definition_documents, DocumentRow
)
DRAFTS: RowKind[DraftRow] = RowKind(
    "definition_drafts", LockOrder.DEFINITIONS, tables.definition_drafts, DraftRow, touchable=True
)

KINDS = (DEFINITIONS, POINTER_READS, POINTERS, DOCUMENTS, DRAFTS)
