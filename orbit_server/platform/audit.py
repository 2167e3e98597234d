"""The audit trail: one row per management action, written in the transaction of the action."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


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
