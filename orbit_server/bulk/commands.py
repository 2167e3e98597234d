"""What people order about bulks: plan, apply, stop. Each leaves an audit row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.errors import NotFound
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.bulk import decide as decisions
from orbit_server.bulk.decide import Terms
from orbit_server.bulk.lifecycle import BulkState
from orbit_server.bulk.records import BulkRow, SpecRow
from orbit_server.bulk.rows import BULKS, SPECS
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order

__all__ = ["ApplyBulk", "BulkDueAt", "By", "CreateBulk", "StopBulk", "answer_of"]

Answer = dict[str, Json]


@dataclass(frozen=True, slots=True)
class BulkDueAt:
    """Hint: a bulk has work at this instant."""

    at: int


def answer_of(row: BulkRow) -> Answer:
    """A bulk as the answer of a command."""
    return {"id": row.id, "state": row.state.value, "revision": str(row.revision)}


# --- what people order -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class By:
    """An order on a bulk: its identity, who gives it and why."""

    key: CommandKey
    bulk_id: Id
    namespace_id: Id
    actor: str
    reason: str | None
    seed: IdSeed
    on_behalf_of: str | None = None


class _OnBulk(Order):
    """What orders share."""

    __slots__ = ()
    by: By

    @property
    def key(self) -> CommandKey:
        return self.by.key

    @property
    def lane(self) -> str:
        return self.by.bulk_id

    def needs(self) -> Needs:
        return {BULKS.name: (self.by.bulk_id,)}


@dataclass(frozen=True, slots=True)
class CreateBulk(_OnBulk):
    """Ask for a plan; it is made in bites afterwards. `filter` and `orders` are canonical JSON."""

    by: By
    action: str
    filter: str
    orders: str
    most: int
    expires_in_us: int

    def decide(self, book: Book) -> Done[Answer]:
        by, now = self.by, book.now
        row = BulkRow(
            id=by.bulk_id,
            namespace_id=by.namespace_id,
            action=self.action,
            state=BulkState.PLANNING,
            place=None,
            most=self.most,
            items=0,
            refused=0,
            truncated=False,
            applied=0,
            skipped=0,
            failed=0,
            interval_us=0,
            failures_max=None,
            failures_percent=None,
            stopped_by=None,
            revision=1,
            made_by=by.actor,
            applied_by=None,
            applied_for=None,
            created_at=now,
            planned_at=None,
            started_at=None,
            ended_at=None,
            expires_at=now + self.expires_in_us,
            due_at=now,
            last=now,
        )
        book.insert(BULKS, row)
        book.insert(SPECS, SpecRow(row.id, self.filter, self.orders, by.reason or ""))
        _audit(book, by, "plan", None, row, {"kind": self.action})
        book.after_commit(BulkDueAt(now))
        return Done(answer_of(row), subject_id=row.id)


@dataclass(frozen=True, slots=True)
class ApplyBulk(_OnBulk):
    """Start a frozen plan."""

    by: By
    terms: Terms

    def decide(self, book: Book) -> Done[Answer]:
        row = _row(book, self.by)
        after = book.change(
            BULKS, row, decisions.began(row, self.terms, self.by.actor, book.now, self.by.on_behalf_of)
        )
        _audit(book, self.by, "apply", row, after, {"planned_by": row.made_by})
        book.after_commit(BulkDueAt(book.now))
        return Done(answer_of(after), subject_id=row.id)


@dataclass(frozen=True, slots=True)
class StopBulk(_OnBulk):
    """Stop it, or give the plan up. What is done stays done."""

    by: By

    def decide(self, book: Book) -> Done[Answer]:
        row = _row(book, self.by)
        after = book.change(BULKS, row, decisions.stopped(row, book.now))
        _audit(book, self.by, "stop", row, after, {})
        return Done(answer_of(after), subject_id=row.id)


def _row(book: Book, by: By) -> BulkRow:
    row = book.get(BULKS, by.bulk_id)
    if row is None or row.namespace_id != by.namespace_id or row.state is BulkState.PURGING:
        raise NotFound("no such bulk")
    return row


def _audit(
    book: Book, by: By, action: str, before: BulkRow | None, after: BulkRow, details: Mapping[str, Json]
) -> None:
    book.insert(
        AUDIT,
        AuditRow(
            id=by.seed.nth(0),
            namespace_id=by.namespace_id,
            at=book.now,
            actor=by.actor,
            on_behalf_of=by.on_behalf_of,
            action=f"bulk.{action}",
            subject_kind="bulk",
            subject_id=by.bulk_id,
            reason=by.reason,
            before_digest=None if before is None else digest(answer_of(before)),
            after_digest=digest(answer_of(after)),
            details=canonical_json({**details, "bulk_id": by.bulk_id}),
        ),
    )
