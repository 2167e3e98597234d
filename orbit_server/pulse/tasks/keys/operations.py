"""Keys inside a transaction: every change of a task with a key passes here, and its key's row with it."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.keys.decide import (
    Place,
    admits,
    arrives,
    joined,
    left,
    looked_at_next,
    normal,
    place_of,
)
from orbit_server.pulse.tasks.keys.records import (
    DEFAULT_MOST,
    KeyRow,
    PlaceRow,
    class_id_of,
    class_of,
    key_id_of,
)
from orbit_server.pulse.tasks.keys.rows import CLASSES, KEYS, PLACES
from orbit_server.pulse.tasks.lifecycle import Block
from orbit_server.pulse.tasks.records import Task
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.commands import Needs


@dataclass(frozen=True, slots=True)
class KeyRoom:
    """Hint: a key has room and waiters: somebody has to be admitted."""

    key_id: Id


def rows_of(task: Task) -> Needs:
    """The rows that a change of this task may have to write or read for its key."""
    if task.concurrency_key is None:
        return {}
    return rows_for(task.namespace_id, task.queue, task.concurrency_key)


def rows_for(namespace_id: Id, queue: str, key: str) -> Needs:
    """As `rows_of`, from what names the key."""
    return {
        "key_classes": [class_id_of(namespace_id, queue, class_of(key))],
        "concurrency_keys": [key_id_of(namespace_id, queue, key)],
    }


def key_of(task: Task, key: str) -> tuple[Id, Id]:
    """The ids of the key and of its class."""
    namespace_id, queue = task.namespace_id, task.queue
    return key_id_of(namespace_id, queue, key), class_id_of(namespace_id, queue, class_of(key))


def settle(book: Book, before: Task | None, after: Task) -> Task:
    """The task with its KEY cause decided, and its key's row written.

    Raises:
        MissingRow: the key's row has to be written and is not held by this transaction; nothing is written.
    """
    key = after.concurrency_key
    if key is None:
        return after
    was = place_of(before)
    asks = arrives(before, after)
    settled = normal(after)
    if not asks and place_of(settled) is was:
        if was is Place.HOLDS and before is not None and before.attempt_id != settled.attempt_id:
            put(book, PlaceRow(settled.id, None))  # claimed
        return settled
    key_id = key_id_of(after.namespace_id, after.queue, key)
    known = book.get(KEYS, key_id)
    most = most_of(book, class_id_of(after.namespace_id, after.queue, class_of(key)))
    row = left(_new_row(after, key, key_id) if known is None else known, was)
    if asks:
        settled = altered(after, blocked=0 if admits(row, most) else int(Block.KEY))
    row = looked_at_next(joined(row, place_of(settled)), most, book.now)
    if known is None:
        book.insert(KEYS, row)
    elif row != known:
        book.change(KEYS, known, row)
    if row.waiting and row.held < most:
        book.after_commit(KeyRoom(key_id))
    if asks or _stood(before):
        put(book, place_row(settled, key_id, book.now))
    return settled


def most_of(book: Book, class_id: Id) -> int:
    """How many tasks of one key of this class may be under way. Needs "key_classes"."""
    row = book.get(CLASSES, class_id)
    return DEFAULT_MOST if row is None else row.running_max


def place_row(task: Task, key_id: Id, now: int) -> PlaceRow:
    """The place of a task as it stands now; one to remove where it is not READY, or not for its key."""
    if task.attempt_id is not None:
        return PlaceRow(task.id, None)
    match place_of(task):
        case Place.WAITS:
            return PlaceRow(task.id, key_id, None, task.priority, task.virtual_start)
        case Place.HOLDS:
            return PlaceRow(task.id, key_id, now, task.priority, task.virtual_start)
        case _:
            return PlaceRow(task.id, None)


def put(book: Book, place: PlaceRow) -> None:
    """Write a place, whatever stood there."""
    try:
        known = book.get(PLACES, place.id)
    except MissingRow:
        known = None
    if known is None:
        book.insert(PLACES, place)
    elif known != place:
        book.change(PLACES, known, place)


def _stood(before: Task | None) -> bool:
    """Whether the task has a row among the places."""
    return before is not None and before.attempt_id is None and place_of(before) is not Place.NONE


def _new_row(task: Task, key: str, key_id: Id) -> KeyRow:
    return KeyRow(
        id=key_id,
        namespace_id=task.namespace_id,
        queue_id=task.queue_id,
        class_id=class_id_of(task.namespace_id, task.queue, class_of(key)),
        name=key,
        held=0,
        waiting=0,
        admit_at=None,
        last=0,
    )
