"""The trace of management actions on what is not a task."""

from __future__ import annotations

from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.pulse.tasks.commands import By
from orbit_server.storage.book import Book


def write_audit(
    book: Book, namespace_id: Id, action: str, subject: tuple[str, Id], by: By, details: dict[str, Json]
) -> None:
    """Leave the trace of a management action; `details` has "before" and "after"."""
    kind, subject_id = subject
    book.insert(
        AUDIT,
        AuditRow(
            id=by.seed.nth(0),
            namespace_id=namespace_id,
            at=book.now,
            actor=by.actor,
            action=action,
            subject_kind=kind,
            subject_id=subject_id,
            on_behalf_of=by.on_behalf_of,
            reason=by.reason,
            before_digest=digest(details.get("before")),
            after_digest=digest(details.get("after")),
            details=canonical_json(details),
        ),
    )
