"""Making, finding and ending subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, insert, select, update

from orbit_sdk.errors import Conflict, Detail, NotFound
from orbit_sdk.values.canonical import digest_of_text
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.storage.tables import readers, rosters, subscriptions

__all__ = [
    "EndOrder",
    "NewSubscription",
    "create",
    "end",
    "figures_of",
    "find",
    "page",
    "purge",
    "subscription_id_of",
]

_S = subscriptions.c


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """What a subscription is made of. `filter` is canonical JSON; `audit_id` is made before any try."""

    namespace_id: Id
    name: str
    filter: str
    when_full: str
    backlog_max: int
    visibility_ms: int
    retention_ms: int
    made_by: str
    audit_id: Id

    def same(self, row: Any) -> bool:
        """Whether a stored one means the same."""
        return (row.filter, row.when_full, row.backlog_max, row.visibility_ms, row.retention_ms) == (
            self.filter,
            self.when_full,
            self.backlog_max,
            self.visibility_ms,
            self.retention_ms,
        )


def subscription_id_of(namespace_id: Id, name: str, created_at: int) -> Id:
    """The id of a subscription: one that is made again under an old name is another."""
    return derive_id("subscription", namespace_id, name, str(created_at))


def find(conn: Connection, namespace_id: Id, name: str) -> Any:
    """The open subscription of this name, or None."""
    return conn.execute(
        select(subscriptions).where(_S.namespace_id == namespace_id, _S.name == name, _S.ended_at.is_(None))
    ).first()


def create(conn: Connection, new: NewSubscription, now: int) -> Id:
    """Make it, or find the same. Raises Conflict when the name means something else."""
    roster = conn.execute(
        update(rosters)
        .where(rosters.c.id == new.namespace_id)
        .values(lock_seq=rosters.c.lock_seq + 1, subscriptions=rosters.c.subscriptions + 1)
    )
    if roster.rowcount == 0:
        conn.execute(insert(rosters).values(id=new.namespace_id, subscriptions=1))
    known = find(conn, new.namespace_id, new.name)
    if known is not None:
        if not new.same(known):
            raise Conflict(
                f"there is a subscription {new.name!r} that says something else",
                [Detail("name", "is in use with another content")],
            )
        return Id(known.id)
    subscription_id = subscription_id_of(new.namespace_id, new.name, now)
    conn.execute(
        insert(subscriptions).values(
            id=subscription_id,
            namespace_id=new.namespace_id,
            name=new.name,
            filter=new.filter,
            when_full=new.when_full,
            backlog_max=new.backlog_max,
            visibility_ms=new.visibility_ms,
            retention_ms=new.retention_ms,
            added=0,
            dropped=0,
            made_by=new.made_by,
            created_at=now,
        )
    )
    conn.execute(
        insert(readers).values(
            id=subscription_id, acknowledged=0, expired=0, dropped=0, delivered=0, redelivered=0
        )
    )
    _audit(
        conn,
        AuditRow(
            id=new.audit_id,
            namespace_id=new.namespace_id,
            at=now,
            actor=new.made_by,
            action="subscription.create",
            subject_kind="subscription",
            subject_id=subscription_id,
            after_digest=digest_of_text(new.filter),
        ),
    )
    return subscription_id


@dataclass(frozen=True, slots=True)
class EndOrder:
    """Who ends which subscription, and why."""

    namespace_id: Id
    name: str
    actor: str
    reason: str
    audit_id: Id
    on_behalf_of: str | None = None


def end(conn: Connection, order: EndOrder, now: int) -> None:
    """Nothing is added any more and nothing can be pulled; its backlog goes in bites. Raises NotFound."""
    conn.execute(
        update(rosters).where(rosters.c.id == order.namespace_id).values(lock_seq=rosters.c.lock_seq + 1)
    )
    known = find(conn, order.namespace_id, order.name)
    if known is None:
        raise NotFound("no such subscription")
    conn.execute(update(subscriptions).where(_S.id == known.id).values(ended_at=now))
    _audit(
        conn,
        AuditRow(
            id=order.audit_id,
            namespace_id=order.namespace_id,
            at=now,
            actor=order.actor,
            action="subscription.end",
            subject_kind="subscription",
            subject_id=known.id,
            on_behalf_of=order.on_behalf_of,
            reason=order.reason,
        ),
    )


def figures_of(conn: Connection, namespace_id: Id, name: str) -> Any:
    """The open subscription of this name with its reader's figures, or None."""
    return conn.execute(_with_figures(namespace_id).where(_S.name == name)).first()


def page(conn: Connection, namespace_id: Id, before: Id | None, limit: int) -> Sequence[Any]:
    """Open subscriptions with their readers' figures, by id downwards."""
    query = _with_figures(namespace_id)
    if before is not None:
        query = query.where(_S.id < before)
    return conn.execute(query.order_by(_S.id.desc()).limit(limit)).all()


def _with_figures(namespace_id: Id) -> Select[Any]:
    return (
        select(subscriptions, readers.c.acknowledged, readers.c.expired, readers.c.redelivered)
        .add_columns(readers.c.dropped.label("dropped_old"), readers.c.pulled_at)
        .join(readers, readers.c.id == _S.id)
        .where(_S.namespace_id == namespace_id, _S.ended_at.is_(None))
    )


def purge(conn: Connection, subscription_id: Id) -> None:
    """Forget an ended subscription whose backlog is gone."""
    conn.execute(subscriptions.delete().where(_S.id == subscription_id, _S.ended_at.is_not(None)))
    conn.execute(readers.delete().where(readers.c.id == subscription_id))


def _audit(conn: Connection, row: AuditRow) -> None:
    AUDIT.save(conn, [row], ())
