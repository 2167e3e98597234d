"""Namespaces: the walls between tenants. Every id, key and name lives inside exactly one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.errors import FailedPrecondition
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome
from orbit_server.storage.kinds import LockOrder, RowKind

DEFAULT_NAMESPACE: Final = "default"
PRODUCTION: Final = "PRODUCTION"
DEVELOPMENT: Final = "DEVELOPMENT"


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """`kind` is PRODUCTION or DEVELOPMENT (where drafts are allowed); `settings` is canonical JSON."""

    id: Id
    name: str
    kind: str
    created_at: int
    settings: str


NAMESPACES: RowKind[NamespaceRow] = RowKind(
    "namespaces", LockOrder.NAMESPACES, tables.namespaces, NamespaceRow
)


def namespace_id(name: str) -> Id:
    """The id that a namespace of this name always has."""
    return derive_id("namespace", name)


@dataclass(frozen=True, slots=True)
class EnsureNamespace(Keyless):
    """Make the namespace unless it is there; one that is there keeps its kind."""

    name: str
    kind: str

    @property
    def lane(self) -> str:
        return namespace_id(self.name)

    def needs(self) -> Needs:
        return {NAMESPACES.name: (namespace_id(self.name),)}

    def decide(self, book: Book) -> Outcome[NamespaceRow]:
        row = book.get(NAMESPACES, namespace_id(self.name))
        if row is not None and row.name != self.name:
            raise FailedPrecondition(f"the namespace {self.name!r} is stored under another name")
        if row is None:
            row = book.insert(
                NAMESPACES, NamespaceRow(namespace_id(self.name), self.name, self.kind, book.now, "{}")
            )
        return Done(row)
