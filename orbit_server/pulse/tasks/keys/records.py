"""The rows of concurrency keys as values: classes with their limits, keys, places of READY tasks."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id, derive_id

DEFAULT_CLASS = "default"
DEFAULT_MOST = 1
"""How many tasks of one key may be under way where nothing was said about its class."""


@dataclass(frozen=True, slots=True)
class ClassRow:
    """How many tasks of each key of this class may be under way in one queue."""

    id: Id
    namespace_id: Id
    queue: str
    name: str
    running_max: int
    revision: int
    last: int


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key. `held`: tasks that are admitted or run; `waiting`: READY tasks whose only cause is KEY.

    `admit_at` is set exactly while somebody waits: when the key has to be looked at again, because there is
    room, or because an admission may have to be taken back.
    """

    id: Id
    namespace_id: Id
    queue_id: Id
    class_id: Id
    name: str
    held: int
    waiting: int
    admit_at: int | None
    last: int


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A READY task with a key: it waits (`admitted_at` None), or is admitted and not claimed yet.

    `id` is the task's. A place without a key is given up: its row is removed.
    """

    id: Id
    key_id: Id | None
    admitted_at: int | None = None
    priority: int = 0
    virtual_start: int = 0


def class_of(key: str) -> str:
    """The class of a key: the part before the first colon."""
    name, colon, _ = key.partition(":")
    return name if colon and name else DEFAULT_CLASS


def class_id_of(namespace_id: Id, queue: str, name: str) -> Id:
    """The id of the row of a class in a queue, whether or not it exists."""
    return derive_id("class", namespace_id, queue, name)


def key_id_of(namespace_id: Id, queue: str, key: str) -> Id:
    """The id of a key's row, whether or not it exists."""
    return derive_id("key", namespace_id, queue, key)
