"""Drafts: definitions on trial in a development namespace, named by their content instead of a version.

A draft never becomes current and takes no version number. The newest of a definition are kept; an older one
goes once no workflow needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, delete, or_, select, update

from orbit_sdk.engine.plan import compile_plan
from orbit_sdk.errors import Detail, FailedPrecondition
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.platform.namespaces import DEVELOPMENT, NAMESPACES
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome, Refused
from orbit_server.storage.database import Database
from orbit_server.storage.tables import definition_documents, definition_drafts, instances
from orbit_server.weave.definitions.catalog import Catalog, Compiled
from orbit_server.weave.definitions.publish import Checked, handlers_text, refuse_errors
from orbit_server.weave.definitions.rows import (
    DOCUMENTS,
    DRAFTS,
    DocumentRow,
    DraftRow,
    draft_key,
    pointer_key,
)

KEPT: Final = 20
"""So many drafts of one definition are kept whether they run or not."""
_AT_ONCE: Final = 5

_ROW = [definition_drafts.c[name] for name in DRAFTS.columns]


@dataclass(frozen=True, slots=True)
class KeepDraft(Keyless):
    """Store a checked document as a draft; the same content again is the same draft, made anew."""

    row: DraftRow
    document: str
    side_table: str | None
    queues: str
    handlers: str
    seed: IdSeed

    @property
    def lane(self) -> str:
        return self.row.id

    def needs(self) -> Needs:
        return {NAMESPACES.name: (self.row.namespace_id,), DRAFTS.name: (self.row.id,)}

    def decide(self, book: Book) -> Outcome[DraftRow]:
        namespace = book.get(NAMESPACES, self.row.namespace_id)
        if namespace is None or namespace.kind != DEVELOPMENT:
            reason = "is PRODUCTION, as it was made: publish a version instead"
            return Refused(
                FailedPrecondition(
                    "drafts exist only in a development namespace (`orbit dev` has one)",
                    [Detail("namespace", reason)],
                )
            )
        known = book.get(DRAFTS, self.row.id)
        if known is not None:
            return Done(
                book.change(DRAFTS, known, replace(known, made_at=book.now, made_by=self.row.made_by))
            )
        made = book.insert(DRAFTS, replace(self.row, made_at=book.now))
        book.insert(
            DOCUMENTS,
            DocumentRow(made.id, self.document, self.side_table, self.queues, self.handlers),
        )
        book.insert(
            AUDIT,
            AuditRow(
                id=self.seed.nth(0),
                namespace_id=made.namespace_id,
                at=book.now,
                actor=made.made_by,
                action="definition.drafted",
                subject_kind="definition",
                subject_id=made.id,
                after_digest=made.digest,
            ),
        )
        return Done(made)


async def keep_draft(  # noqa: PLR0913  # one keyword per part of the request
    database: Database,
    catalog: Catalog,
    checked: Checked,
    *,
    namespace_id: Id,
    side: Json,
    actor: str,
    seed: IdSeed,
) -> DraftRow:
    """Keep a checked document as a draft, and drop old ones that no workflow needs.

    Raises InvalidArgument with every error found, FailedPrecondition outside a development namespace.
    """
    refuse_errors(checked)
    definition = checked.definition
    plan = compile_plan(definition)
    key = draft_key(namespace_id, definition.id, checked.digest)
    row = DraftRow(key, namespace_id, definition.id, definition.version, checked.digest, 0, actor, None, 0)
    made = await database.committer.submit(
        KeepDraft(
            row,
            checked.text,
            None if side is None else canonical_json(side),
            canonical_json(list(plan.queues)),
            handlers_text(definition),
            seed,
        )
    )
    catalog.keep(Compiled(key, definition, checked.digest, plan, plan.queues))
    lane = pointer_key(namespace_id, definition.id)
    await database.write(lambda conn: drop_old(conn, namespace_id, definition.id), lane=lane)
    return made


def drop_old(conn: Connection, namespace_id: Id, definition_id: str) -> int:
    """Drop the oldest drafts of a definition beyond the limit that no workflow needs any more; how many went.

    At most a few are looked at each time: every new draft looks again.
    """
    d, i = definition_drafts.c, instances.c
    old = select(d.id).where(d.namespace_id == namespace_id, d.definition_id == definition_id)
    order = (d.made_at.desc(), d.id.desc())
    ids = [*conn.execute(old.order_by(*order).offset(KEPT).limit(_AT_ONCE)).scalars()]
    if not ids:
        return 0
    # A start touches its draft too: whoever comes second sees what the first one did.
    touch = update(definition_drafts).where(d.id.in_(sorted(ids))).values(lock_seq=d.lock_seq + 1)
    conn.execute(touch)
    runs = (
        select(i.id)
        .where(i.namespace_id == namespace_id, i.definition_id == definition_id, i.definition_key == d.id)
        .exists()
    )
    gone = sorted(conn.execute(select(d.id).where(d.id.in_(ids), or_(d.used_at.is_(None), ~runs))).scalars())
    conn.execute(delete(definition_drafts).where(d.id.in_(gone)))
    conn.execute(delete(definition_documents).where(definition_documents.c.id.in_(gone)))
    return len(gone)


def page(
    conn: Connection,
    namespace_id: Id,
    definition_id: str | None,
    before: tuple[str, int, Id] | None,
    limit: int,
) -> list[DraftRow]:
    """A page of drafts by (definition id, newest first); `before` is the last one seen."""
    table = definition_drafts.c
    query = select(*_ROW).where(table.namespace_id == namespace_id)
    if definition_id is not None:
        query = query.where(table.definition_id == definition_id)
    if before is not None:
        seen_id, made_at, row_id = before
        older = (table.made_at < made_at) | ((table.made_at == made_at) & (table.id < row_id))
        query = query.where((table.definition_id > seen_id) | ((table.definition_id == seen_id) & older))
    query = query.order_by(table.definition_id, table.made_at.desc(), table.id.desc()).limit(limit)
    return DRAFTS.rows([tuple(row) for row in conn.execute(query)])


def draft(conn: Connection, key: Id) -> DraftRow | None:
    """One draft."""
    rows = DRAFTS.rows(
        [tuple(row) for row in conn.execute(select(*_ROW).where(definition_drafts.c.id == key))]
    )
    return rows[0] if rows else None
