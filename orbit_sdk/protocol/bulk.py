"""A bulk plan: many decisions or controls, frozen before anything is done. A file that people pass on."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from orbit_sdk.protocol.common import Answer, Counter, Id, Request

Action = Literal["review", "pause", "resume", "cancel"]


class BulkItem(Request):
    """One item with the revision that was seen. `allowed` and `then` (the state that would follow) are what
    the server said when it was asked; `why` says why not.
    """

    workflow_id: Id
    step_key: str | None = None
    business_key: str | None = None
    expected: Counter
    allowed: bool
    then: str | None = None
    why: str | None = None


class BulkPlan(Request):
    """`order` is what every item is told: the fields of a decision or of a control, without the revision.

    Every item's operation id follows from `id` and the item: a plan that is applied twice, or by two people
    at once, does each thing once.
    """

    id: Id
    action: Action
    order: dict[str, JsonValue]
    items: list[BulkItem]


class BulkOutcome(Answer):
    """What became of one item. SKIPPED: it is not as it was planned any more, or was not allowed then."""

    workflow_id: Id
    step_key: str | None = None
    outcome: Literal["DONE", "SKIPPED", "FAILED"]
    state: str | None = None
    why: str | None = None
