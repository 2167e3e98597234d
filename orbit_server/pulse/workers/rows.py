"""A build of which somebody said that its workers get no work."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


@dataclass(frozen=True, slots=True)
class BuildRow:
    """`blocked` False: it was blocked once."""

    id: Id
    namespace_id: Id
    build: str
    blocked: bool
    actor: str
    reason: str
    changed_at: int
    revision: int
    last: int


def build_id_of(namespace_id: Id, build: str) -> Id:
    """The id of a build's row, whether or not it exists."""
    return derive_id("build", namespace_id, build)


BUILDS: RowKind[BuildRow] = RowKind(
    "blocked_builds", LockOrder.SESSIONS, tables.blocked_builds, BuildRow, touchable=True
)
KINDS = (BUILDS,)
