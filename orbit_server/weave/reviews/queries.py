"""What waits for a person: steps in review, across instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from orbit_sdk.values.ids import Id
from orbit_server.storage.tables import instances, steps


@dataclass(frozen=True, slots=True)
class StepReview:
    """A step in review. `since` is when its row last changed."""

    id: Id
    instance_id: Id
    definition_id: str
    definition_key: Id
    business_key: str | None
    step_key: str
    review_class: str | None
    reason: str | None
    revision: int
    task_id: Id | None
    effect_possible: bool
    since: int


def page(
    conn: Connection,
    namespace_id: Id,
    *,
    review_class: str | None,
    definition_id: str | None,
    before: Id | None,
    limit: int,
) -> list[StepReview]:
    """Newest activation first; `before` is the id of the last one seen."""
    s, i = steps.c, instances.c
    query = (
        select(
            s.id,
            s.instance_id,
            i.definition_id,
            i.definition_key,
            i.business_key,
            s.step_key,
            s.review_class,
            s.reason,
            s.revision,
            s.task_id,
            s.effect_possible,
            s.last,
        )
        .join(instances, i.id == s.instance_id)
        .where(s.namespace_id == namespace_id, s.state == "NEEDS_REVIEW")
    )
    if review_class is not None:
        query = query.where(s.review_class == review_class)
    if definition_id is not None:
        query = query.where(i.definition_id == definition_id)
    if before is not None:
        query = query.where(s.id < before)
    return [StepReview(*tuple(row)) for row in conn.execute(query.order_by(s.id.desc()).limit(limit))]


@dataclass(frozen=True, slots=True)
class StuckGroup:
    """Steps that are in review for one reason. `since` is when the oldest of them last changed."""

    definition_id: str
    definition_version: int
    step_key: str
    review_class: str | None
    reason: str | None
    count: int
    since: int


def stuck(conn: Connection, namespace_id: Id, definition_id: str | None, limit: int) -> list[StuckGroup]:
    """What is in review, counted by definition, version, step and reason; the largest groups first."""
    s, i = steps.c, instances.c
    count = func.count().label("found")
    groups = (i.definition_id, i.definition_version, s.step_key, s.review_class, s.reason)
    query = (
        select(*groups, count, func.min(s.last))
        .join(instances, i.id == s.instance_id)
        .where(s.namespace_id == namespace_id, s.state == "NEEDS_REVIEW")
        .group_by(*groups)
        .order_by(count.desc(), *groups)
        .limit(limit)
    )
    if definition_id is not None:
        query = query.where(i.definition_id == definition_id)
    rows: list[Any] = list(conn.execute(query))
    return [StuckGroup(*row) for row in rows]
