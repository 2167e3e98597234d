"""The states of a bulk and of its items, and every legal move between them.

A bulk is planned in bites (PLANNING), then frozen (PLANNED); a person starts it (APPLYING), and it ends
when every item is settled (DONE), when it is stopped (STOPPED) or when nobody has started it in time
(EXPIRED). What is kept long enough is purged in bites (PURGING; as good as absent).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class BulkState(StrEnum):
    PLANNING = "PLANNING"
    PLANNED = "PLANNED"
    APPLYING = "APPLYING"
    DONE = "DONE"
    STOPPED = "STOPPED"
    EXPIRED = "EXPIRED"
    PURGING = "PURGING"


MOVES: Final[Mapping[BulkState, frozenset[BulkState]]] = {
    BulkState.PLANNING: frozenset({BulkState.PLANNED, BulkState.STOPPED, BulkState.EXPIRED}),
    BulkState.PLANNED: frozenset({BulkState.APPLYING, BulkState.STOPPED, BulkState.EXPIRED}),
    BulkState.APPLYING: frozenset({BulkState.DONE, BulkState.STOPPED}),
    BulkState.DONE: frozenset({BulkState.PURGING}),
    BulkState.STOPPED: frozenset({BulkState.PURGING}),
    BulkState.EXPIRED: frozenset({BulkState.PURGING}),
    BulkState.PURGING: frozenset(),
}

ENDED: Final = frozenset({BulkState.DONE, BulkState.STOPPED, BulkState.EXPIRED, BulkState.PURGING})
"""Nothing is applied any more; an item that is still PENDING was not reached."""


class ItemState(StrEnum):
    """PENDING: it may be done, and has not been. REFUSED: by the plan, or when it came up."""

    PENDING = "PENDING"
    APPLIED = "APPLIED"
    SKIPPED_CHANGED = "SKIPPED_CHANGED"
    REFUSED = "REFUSED"


class StoppedBy(StrEnum):
    """Why a bulk was stopped."""

    PERSON = "PERSON"
    FAILURES = "FAILURES"
    FAILURE_SHARE = "FAILURE_SHARE"


class Target(StrEnum):
    """What the items of a bulk are."""

    STEPS = "STEPS"
    WORKFLOWS = "WORKFLOWS"
    TASKS = "TASKS"
