"""Tasks that do not move, counted by what they have in common: those in review, and those nobody takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.lifecycle import Block, TaskState
from orbit_server.storage.tables import tasks

_T = tasks.c
_WAITS = (int(Block.NONE), int(Block.KEY))


@dataclass(frozen=True, slots=True)
class StuckTasks:
    """So many tasks of one handler stand in one state for one reason. `since`: the oldest of them."""

    queue: str
    handler: str
    handler_version: int
    state: str
    review_class: str | None
    error_code: str | None
    blocked: int
    count: int
    since: int

    @property
    def reason(self) -> str | None:
        """The error code of a review; of a task that nobody takes, UNCLAIMED or KEY_FULL."""
        if self.state == TaskState.NEEDS_REVIEW:
            return self.error_code
        return "KEY_FULL" if self.blocked & Block.KEY else "UNCLAIMED"


def stuck_tasks(
    conn: Connection, namespace_id: Id, queue: str | None, ready_before: int, limit: int
) -> list[StuckTasks]:
    """Standalone tasks in review, and any that have been READY since before this instant and may be claimed,
    or wait for their concurrency key; the largest groups first.
    """
    groups = (_T.queue, _T.handler, _T.handler_version, _T.state, _T.review_class, _T.error_code, _T.blocked)
    count = func.count().label("found")
    in_review = and_(_T.state == TaskState.NEEDS_REVIEW.value, _T.instance_id.is_(None))
    unclaimed = and_(_T.state == TaskState.READY.value, _T.blocked.in_(_WAITS), _T.last < ready_before)
    query = (
        select(*groups, count, func.min(_T.last))
        .where(_T.namespace_id == namespace_id, or_(in_review, unclaimed))
        .group_by(*groups)
        .order_by(count.desc(), *groups)
        .limit(limit)
    )
    if queue is not None:
        query = query.where(_T.queue == queue)
    rows: list[Any] = list(conn.execute(query))
    return [StuckTasks(*row) for row in rows]
