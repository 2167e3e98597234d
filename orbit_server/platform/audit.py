"""The audit trail: one row per management action, written in the transaction of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

_AUDIT_PLACE: Final = 1_000_000
"""Behind every id that a decision makes from the same seed."""


def audit_id_of(seed: IdSeed) -> Id:
    """The id of the one audit row of a command with this seed."""
    return seed.nth(_AUDIT_PLACE)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """Who did what to which thing, why, and how it stood before and after (digests of canonical JSON)."""

    id: Id
    namespace_id: Id
    at: int
    actor: str
    action: str
    subject_kind: str
    subject_id: Id
    on_behalf_of: str | None = None
    reason: str | None = None
    basis: str | None = None
    evidence: str | None = None
    before_digest: str | None = None
    after_digest: str | None = None
    details: str | None = None


AUDIT: RowKind[AuditRow] = RowKind("audit", LockOrder.RECORDS, tables.audit, AuditRow)
