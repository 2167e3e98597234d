"""Commands of time itself: a task is due, its time is over, its lease has ended. The loops of `sweeps.py`
send them.

Each concerns one task, so that one damaged row never stands in the way of another.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.attempts import ground
from orbit_server.pulse.tasks.decide import finish as finishing
from orbit_server.pulse.tasks.decide import start as starting
from orbit_server.pulse.tasks.decide import stop as stopping
from orbit_server.pulse.tasks.holdings import more_of, tried_before
from orbit_server.pulse.tasks.operations import apply, open_attempt
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs


@dataclass(frozen=True, slots=True)
class TaskDue(Keyless):
    """The task's `due_at` has come. Answers whether that moved it.

    Its parameters are read with it, so that it can be claimed in the same transaction.
    """

    task_id: Id

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        return {"tasks": [self.task_id], "task_specs": [self.task_id]}

    def more(self, book: Book) -> Needs:
        found = more_of(book, [self.task_id])
        if tried_before(book.get(TASKS, self.task_id)):
            found["task_progress"] = [self.task_id]
        return found

    def decide(self, book: Book) -> Done[bool]:
        task = book.get(TASKS, self.task_id)
        move = None if task is None else starting.due(task, book.now)
        if task is None or move is None:
            return Done(answer=False)
        apply(book, task, None, move)
        return Done(answer=True)


@dataclass(frozen=True, slots=True)
class TaskDeadline(Keyless):
    """The task's `deadline_at` has passed. Answers whether that moved it."""

    task_id: Id

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        return {"tasks": [self.task_id]}

    def more(self, book: Book) -> Needs:
        return more_of(book, [self.task_id])

    def decide(self, book: Book) -> Done[bool]:
        task = book.get(TASKS, self.task_id)
        move = None if task is None else stopping.deadline(task, book.now)
        if task is None or move is None:
            return Done(answer=False)
        apply(book, task, None, move)
        return Done(answer=True)


@dataclass(frozen=True, slots=True)
class LeaseEnded(Keyless):
    """The lease of the task's open attempt ended. Answers whether that moved it (a renewal may have come)."""

    task_id: Id
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        return {"tasks": [self.task_id], "attempts": [self.task_id], "task_specs": [self.task_id]}

    def more(self, book: Book) -> Needs:
        return more_of(book, [self.task_id])

    def decide(self, book: Book) -> Done[bool]:
        task = book.get(TASKS, self.task_id)
        attempt = None if task is None else open_attempt(book, task)
        if task is None or attempt is None:
            return Done(answer=False)
        move = finishing.lease_ended(task, attempt, ground(book, task, self.times))
        if move is None:
            return Done(answer=False)
        apply(book, task, attempt, move)
        return Done(answer=True)
