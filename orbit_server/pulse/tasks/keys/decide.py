"""What a task's state means for its key: pure. One table answers every command, whichever it was.

A task that is admitted or runs *holds* its key; a READY task whose only cause is KEY *waits* for it. A READY
task with another cause (its workflow is paused, it backs off) does neither: when that cause goes, it arrives
anew. A verification needs no key: it only asks.
"""

from __future__ import annotations

from enum import Enum

from orbit_sdk.engine.records import altered
from orbit_server.pulse.tasks.keys.records import KeyRow
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Block, TaskState
from orbit_server.pulse.tasks.records import Task

UNCLAIMED_US = 5_000_000
"""An admission that nobody claimed for so long is taken back while others wait."""


class Place(Enum):
    """What a task is to its key."""

    NONE = "NONE"
    HOLDS = "HOLDS"
    WAITS = "WAITS"


def place_of(task: Task | None) -> Place:
    """What this task, as it is stored, is to its key."""
    if task is None or task.concurrency_key is None:
        return Place.NONE
    if task.state is TaskState.READY:
        if not task.blocked:
            return Place.HOLDS
        return Place.WAITS if task.blocked == Block.KEY else Place.NONE
    return Place.HOLDS if runs(task) is AttemptKind.RUN else Place.NONE


def runs(task: Task) -> AttemptKind | None:
    """The kind of the task's open attempt. A cancelled verification keeps its time limit, a cancelled run has
    none.
    """
    if task.attempt_id is None:
        return None
    asks = task.state is TaskState.VERIFYING or (
        task.state is TaskState.CANCELLING and task.verify_deadline_at is not None
    )
    return AttemptKind.VERIFY if asks else AttemptKind.RUN


def arrives(before: Task | None, after: Task) -> bool:
    """Whether the task asks its key for admission: it is READY for nothing else, and was not before."""
    if after.concurrency_key is None or after.state is not TaskState.READY or after.blocked & ~Block.KEY:
        return False
    stayed = before is not None and before.state is TaskState.READY
    return not (stayed and place_of(before) is not Place.NONE)


def concerns(before: Task | None, after: Task) -> bool:
    """Whether this change has to be written on the key's row."""
    return after.concurrency_key is not None and (
        arrives(before, after) or place_of(before) is not place_of(normal(after))
    )


def normal(task: Task) -> Task:
    """The task with its KEY cause in order: set beside other causes, so that losing those admits nobody by
    accident; absent where the task is not READY.
    """
    blocked = task.blocked
    if task.state is TaskState.READY:
        if blocked & ~Block.KEY:
            blocked |= Block.KEY
    else:
        blocked &= ~Block.KEY
    return task if blocked == task.blocked else altered(task, blocked=int(blocked))


def left(row: KeyRow, place: Place) -> KeyRow:
    """The row without a task that had this place."""
    if place is Place.HOLDS:
        return altered(row, held=row.held - 1)
    if place is Place.WAITS:
        return altered(row, waiting=row.waiting - 1)
    return row


def joined(row: KeyRow, place: Place) -> KeyRow:
    """The row with a task that has this place."""
    if place is Place.HOLDS:
        return altered(row, held=row.held + 1)
    if place is Place.WAITS:
        return altered(row, waiting=row.waiting + 1)
    return row


def admits(row: KeyRow, most: int) -> bool:
    """Whether an arrival is admitted: there is room, and nobody waits (no overtaking)."""
    return row.held < most and row.waiting == 0


def looked_at_next(row: KeyRow, most: int, now: int) -> KeyRow:
    """The row with the instant at which it has to be looked at again."""
    if row.waiting == 0:
        at = None
    elif row.held < most:
        at = now
    elif row.admit_at is not None and row.admit_at > now:
        at = row.admit_at
    else:
        at = now + UNCLAIMED_US
    return row if at == row.admit_at else altered(row, admit_at=at)
