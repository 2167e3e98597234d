"""A limit's row: what is allowed, and how much of it is in use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from orbit_sdk.values.ids import Id, derive_id


class Counted(IntFlag):
    """The backlogs in which a task counts (`tasks.counted`)."""

    NOWHERE = 0
    QUEUE = 1
    NAMESPACE = 2


@dataclass(frozen=True, slots=True)
class LimitRow:
    """Of one queue, or of the whole namespace where `queue` is None. A None among the maxima does not limit.

    `running` counts the open attempts that hold a permit of this row, `backlog` the accepted tasks that count
    here. Rate: `rate` tokens per `rate_per_ms`, at most `burst` at once; `level` is what was there at
    `level_at`, in `rate_per_ms * 1000` parts of a token, so that it stays whole.
    """

    id: Id
    namespace_id: Id
    queue: str | None
    running_max: int | None
    running: int
    backlog_max: int | None
    backlog: int
    rate: int | None
    rate_per_ms: int
    burst: int
    level: int
    level_at: int
    changed_at: int
    revision: int
    last: int


def limit_id_of(namespace_id: Id, queue: str | None = None) -> Id:
    """The id of the row of a queue or of the namespace, whether or not it exists."""
    return derive_id("limit", namespace_id) if queue is None else derive_id("limit", namespace_id, queue)
