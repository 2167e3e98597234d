"""What is stored about a bulk, as plain records."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_server.bulk.lifecycle import BulkState, ItemState, StoppedBy

__all__ = ["BulkRow", "ItemRow", "RestartRow", "SpecRow"]


@dataclass(frozen=True, slots=True)
class BulkRow:
    """The hot row.

    `place`: the last candidate that was looked at while planning. `items` were planned, `refused` of them
    not allowed; `applied`, `skipped` and `failed` (refused when they came up) are settled. `due_at`: when
    the loop looks at it again; while APPLYING the next item waits for it, which is the rate.
    """

    id: Id
    namespace_id: Id
    action: str
    state: BulkState
    place: Id | None
    most: int
    items: int
    refused: int
    truncated: bool
    applied: int
    skipped: int
    failed: int
    interval_us: int
    failures_max: int | None
    failures_percent: int | None
    stopped_by: StoppedBy | None
    revision: int
    made_by: str
    applied_by: str | None
    applied_for: str | None
    created_at: int
    planned_at: int | None
    started_at: int | None
    ended_at: int | None
    expires_at: int
    due_at: int
    last: int


@dataclass(frozen=True, slots=True)
class SpecRow:
    """What was asked, written once. `filter` and `orders` are canonical JSON."""

    id: Id
    filter: str
    orders: str
    reason: str


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item. `expected` is the revision that was seen (the control version, for a control).

    `allowed`, `then_state`, `code`, `why`: what the engine said to the plan; `code` and `why` of an item that
    was allowed say why it was not done. `evidence_id`: what the decision adopts.
    """

    id: Id
    bulk_id: Id
    number: int
    subject_id: Id
    step_key: str | None
    business_key: str | None
    expected: int
    state: ItemState
    allowed: bool
    then_state: str | None
    code: str | None
    why: str | None
    evidence_id: Id | None = None
    made_id: Id | None = None
    settled_at: int | None = None


@dataclass(frozen=True, slots=True)
class RestartRow:
    """A workflow was restarted by a bulk, as `made_id`."""

    id: Id
    bulk_id: Id
    made_id: Id
