"""Commands of keys: admit who waits, take back what nobody claims, set the limit of a class."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.hints import TaskReady
from orbit_server.pulse.tasks.keys.decide import UNCLAIMED_US, Place, looked_at_next, place_of
from orbit_server.pulse.tasks.keys.operations import KeyRoom, most_of, place_row, put
from orbit_server.pulse.tasks.keys.records import KeyRow, key_id_of
from orbit_server.pulse.tasks.keys.rows import KEYS, PLACES
from orbit_server.pulse.tasks.lifecycle import Block
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs


@dataclass(frozen=True, slots=True)
class Admit(Keyless):
    """Look at a key: while it has room, admit the best of the named waiters that still wait only for it.

    `unclaimed` are tasks that were admitted long ago: where the key is full and others wait, they are taken
    back and go to the end of the line. Both lists were read without a lock. Answers how many were admitted.

    `beside`: the lane of the command that makes the room, to be decided right after it.
    """

    key_id: Id
    class_id: Id
    waiters: tuple[Id, ...]
    unclaimed: tuple[Id, ...] = ()
    beside: str | None = None

    @property
    def lane(self) -> str:
        return self.beside or self.key_id

    def needs(self) -> Needs:
        ids = [*self.waiters, *self.unclaimed]
        return {
            "tasks": ids,
            "task_specs": self.waiters,
            "key_classes": [self.class_id],
            "concurrency_keys": [self.key_id],
            "key_places": ids,
        }

    def decide(self, book: Book) -> Done[int]:
        known = book.get(KEYS, self.key_id)
        if known is None:
            return Done(0)
        most = most_of(book, self.class_id)
        waiters = self._named(book, self.waiters, Place.WAITS)
        row = known
        if row.held >= most:
            for task in self._overdue(book)[: len(waiters)]:
                back = altered(task, blocked=int(Block.KEY), virtual_start=book.now)
                self._write(book, task, back)
                waiters.append(back)
                row = altered(row, held=row.held - 1, waiting=row.waiting + 1)
        chosen = sorted(waiters, key=lambda task: (-task.priority, task.virtual_start, task.id))
        chosen = chosen[: max(0, most - row.held)]
        for task in chosen:
            self._write(book, task, altered(task, blocked=0))
            book.after_commit(_ready(task))
        row = altered(row, held=row.held + len(chosen), waiting=row.waiting - len(chosen))
        self._store(book, known, looked_at_next(row, most, book.now), most)
        return Done(len(chosen))

    def _named(self, book: Book, ids: tuple[Id, ...], place: Place) -> list[Task]:
        found = [task for task in (book.get(TASKS, task_id) for task_id in ids) if task is not None]
        return [task for task in found if place_of(task) is place and self._mine(task)]

    def _mine(self, task: Task) -> bool:
        key = task.concurrency_key
        return key is not None and key_id_of(task.namespace_id, task.queue, key) == self.key_id

    def _overdue(self, book: Book) -> list[Task]:
        """Admitted, not claimed, and for so long."""
        found = []
        for task in self._named(book, self.unclaimed, Place.HOLDS):
            place = book.get(PLACES, task.id)
            if task.attempt_id is not None or place is None or place.admitted_at is None:
                continue
            if place.admitted_at + UNCLAIMED_US <= book.now:
                found.append(task)
        return found

    def _write(self, book: Book, before: Task, after: Task) -> None:
        book.change(TASKS, before, after)
        put(book, place_row(after, self.key_id, book.now))

    def _store(self, book: Book, before: KeyRow, after: KeyRow, most: int) -> None:
        if after != before:
            book.change(KEYS, before, after)
        # Those who were read may all have gone: others are read then.
        if after.waiting and after.held < most:
            book.after_commit(KeyRoom(self.key_id))


def _ready(task: Task) -> TaskReady:
    return TaskReady(
        task.id, task.namespace_id, task.queue_id, task.queue, task.handler, task.handler_version
    )
