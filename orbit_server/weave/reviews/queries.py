"""What waits for a person: steps in review, across instances."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

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
    return [StepReview(*row) for row in conn.execute(query.order_by(s.id.desc()).limit(limit))]
