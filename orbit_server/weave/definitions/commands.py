"""Publishing a definition, moving its current pointer, retiring a version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from orbit_sdk.errors import Conflict, Detail, FailedPrecondition, NotFound
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome, Refused
from orbit_server.weave.definitions.rows import (
    DEFINITIONS,
    DOCUMENTS,
    POINTERS,
    DefinitionRow,
    DocumentRow,
    PointerRow,
    definition_key,
    pointer_key,
)


@dataclass(frozen=True, slots=True)
class Published:
    """`created` is False when the same content was there already."""

    row: DefinitionRow
    current_version: int | None
    created: bool


@dataclass(frozen=True, slots=True)
class PublishDefinition(Keyless):
    """Store one version. Its identity is (id, version, digest), so it needs no other key.

    `document` is the canonical text and `document_digest` its digest; the caller has checked it.
    """

    namespace_id: Id
    definition_id: str
    version: int
    document: str
    document_digest: str
    side_table: str | None
    queues: str
    handlers: str
    current: bool
    actor: str
    seed: IdSeed

    @property
    def lane(self) -> str:
        return pointer_key(self.namespace_id, self.definition_id)

    def needs(self) -> Needs:
        return {
            DEFINITIONS.name: (definition_key(self.namespace_id, self.definition_id, self.version),),
            POINTERS.name: (pointer_key(self.namespace_id, self.definition_id),),
        }

    def decide(self, book: Book) -> Outcome[Published]:
        row_id = definition_key(self.namespace_id, self.definition_id, self.version)
        row = book.get(DEFINITIONS, row_id)
        pointer = book.get(POINTERS, pointer_key(self.namespace_id, self.definition_id))
        if row is not None and row.digest != self.document_digest:
            return Refused(self._conflict(pointer))
        created = row is None
        if row is None:
            row = book.insert(DEFINITIONS, self._row(row_id, book.now))
            book.insert(
                DOCUMENTS, DocumentRow(row_id, self.document, self.side_table, self.queues, self.handlers)
            )
        pointer = self._pointed(book, pointer)
        if created:
            published = _audit(
                self, "definition.published", row_id, book.now, after_digest=self.document_digest
            )
            book.insert(AUDIT, published)
        return Done(Published(row, pointer.current_version, created))

    def _conflict(self, pointer: PointerRow | None) -> Conflict:
        latest = max(self.version, pointer.latest_version if pointer else 0)
        return Conflict(
            f"{self.definition_id} version {self.version} is published with another content",
            [
                Detail(
                    "definition.version",
                    f"published versions never change; the next free one is {latest + 1}",
                )
            ],
        )

    def _row(self, row_id: Id, now: int) -> DefinitionRow:
        return DefinitionRow(
            row_id, self.namespace_id, self.definition_id, self.version, self.document_digest, now, self.actor
        )

    def _pointed(self, book: Book, pointer: PointerRow | None) -> PointerRow:
        current = self.version if self.current else None
        if pointer is None:
            key = pointer_key(self.namespace_id, self.definition_id)
            return book.insert(
                POINTERS,
                PointerRow(key, self.namespace_id, self.definition_id, current, self.version, 1, book.now),
            )
        after = replace(
            pointer,
            latest_version=max(pointer.latest_version, self.version),
            current_version=pointer.current_version if current is None else current,
        )
        if after == pointer:
            return pointer
        after = replace(after, revision=pointer.revision + 1)
        book.change(POINTERS, pointer, after)
        if after.current_version != pointer.current_version:
            moved = _audit(
                self,
                "definition.current",
                after.id,
                book.now,
                place=1,
                before_digest=digest({"current_version": pointer.current_version}),
                after_digest=digest({"current_version": after.current_version}),
            )
            book.insert(AUDIT, moved)
        return after


@dataclass(frozen=True, slots=True)
class SetCurrentVersion(Keyless):
    """Point `current` at a published version that is not retired; it may point back."""

    namespace_id: Id
    definition_id: str
    version: int
    actor: str
    reason: str | None
    seed: IdSeed
    on_behalf_of: str | None = None

    @property
    def lane(self) -> str:
        return pointer_key(self.namespace_id, self.definition_id)

    def needs(self) -> Needs:
        return {
            DEFINITIONS.name: (definition_key(self.namespace_id, self.definition_id, self.version),),
            POINTERS.name: (pointer_key(self.namespace_id, self.definition_id),),
        }

    def decide(self, book: Book) -> Outcome[Published]:
        row = book.get(DEFINITIONS, definition_key(self.namespace_id, self.definition_id, self.version))
        pointer = book.get(POINTERS, pointer_key(self.namespace_id, self.definition_id))
        if row is None or pointer is None:
            return Refused(NotFound(f"{self.definition_id} version {self.version} is not published"))
        if row.retired_at is not None:
            return Refused(FailedPrecondition(f"{self.definition_id} version {self.version} is retired"))
        if pointer.current_version != self.version:
            after = replace(pointer, current_version=self.version, revision=pointer.revision + 1)
            book.change(POINTERS, pointer, after)
            audited = _audit(
                self,
                "definition.current",
                pointer.id,
                book.now,
                on_behalf_of=self.on_behalf_of,
                reason=self.reason,
                before_digest=digest({"current_version": pointer.current_version}),
                after_digest=digest({"current_version": self.version}),
            )
            book.insert(AUDIT, audited)
        return Done(Published(row, self.version, created=False))


@dataclass(frozen=True, slots=True)
class RetireVersion(Keyless):
    """A retired version takes no new starts; running instances go on. The current version cannot be
    retired.
    """

    namespace_id: Id
    definition_id: str
    version: int
    actor: str
    reason: str
    seed: IdSeed
    on_behalf_of: str | None = None

    @property
    def lane(self) -> str:
        return pointer_key(self.namespace_id, self.definition_id)

    def needs(self) -> Needs:
        return {
            DEFINITIONS.name: (definition_key(self.namespace_id, self.definition_id, self.version),),
            POINTERS.name: (pointer_key(self.namespace_id, self.definition_id),),
        }

    def decide(self, book: Book) -> Outcome[Published]:
        row = book.get(DEFINITIONS, definition_key(self.namespace_id, self.definition_id, self.version))
        pointer = book.get(POINTERS, pointer_key(self.namespace_id, self.definition_id))
        if row is None or pointer is None:
            return Refused(NotFound(f"{self.definition_id} version {self.version} is not published"))
        if pointer.current_version == self.version:
            return Refused(
                FailedPrecondition(
                    f"{self.definition_id} version {self.version} is the current version; "
                    "point current at another one first"
                )
            )
        if row.retired_at is None:
            row = book.change(DEFINITIONS, row, replace(row, retired_at=book.now, revision=row.revision + 1))
            retired = _audit(
                self,
                "definition.retired",
                row.id,
                book.now,
                on_behalf_of=self.on_behalf_of,
                reason=self.reason,
            )
            book.insert(AUDIT, retired)
        return Done(Published(row, pointer.current_version, created=False))


def _audit(
    command: PublishDefinition | SetCurrentVersion | RetireVersion,
    action: str,
    subject_id: Id,
    now: int,
    *,
    place: int = 0,
    **more: Any,
) -> AuditRow:
    """What a command did to a version or a pointer. `place`: of its id in the seed of the command."""
    return AuditRow(
        id=command.seed.nth(place),
        namespace_id=command.namespace_id,
        at=now,
        actor=command.actor,
        action=action,
        subject_kind="definition",
        subject_id=subject_id,
        **more,
    )
