"""Consuming the inbox: what Pulse stored about a task moves the workflow that waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from orbit_sdk.engine.commands import ApplyReport, ReportEngineError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.pulse.ids import inbox_id_of
from orbit_server.pulse.tasks import operations
from orbit_server.pulse.tasks.rows import INBOX, TASK_RESULTS, TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome
from orbit_server.weave.state.rows import CLOSED_STEPS, INSTANCES, STEPS
from orbit_server.weave.state.running import (
    Weave,
    advance_needs,
    base_needs,
    merged,
    move,
    report_of,
    signal_needs,
    task_needs,
)
from orbit_server.weave.state.signals import PENDING_SIGNALS


@dataclass(frozen=True, slots=True)
class ConsumeReport(Keyless):
    """Apply the newest stored fact of one task to its instance, and settle the inbox row that told of it.

    As a companion of the command that stores a result it runs in the same transaction; otherwise a loop
    sends it. It is idempotent: the step remembers the last source revision that it applied. The answer says
    whether the workflow took notice.
    """

    instance_id: Id
    task_id: Id
    inbox_id: Id | None
    seed: IdSeed
    weave: Weave

    asks_after: ClassVar[frozenset[str] | None] = frozenset(
        (STEPS.name, CLOSED_STEPS.name, PENDING_SIGNALS.name, TASKS.name)
    )

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        needs: dict[str, tuple[Id, ...]] = {
            **base_needs(self.instance_id),
            TASKS.name: (self.task_id,),
            TASK_RESULTS.name: (self.task_id,),
        }
        if self.inbox_id is not None:
            needs[INBOX.name] = (self.inbox_id,)
        return needs

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return {}
        steps = [step for step in book.members(STEPS, row.id) if step.live]
        compiled = self.weave.compiled(row.definition_key)
        mine = [step for step in steps if step.task_id == self.task_id]
        # A failure may stop other arms and cancel their tasks: these are touched with their attempts.
        siblings = [s.task_id for s in steps if s.task_id is not None and s.task_id != self.task_id]
        return merged(
            signal_needs(book, row),
            advance_needs(book, compiled.plan, row, mine),
            task_needs(siblings) if self._may_stop_others(book) else {},
        )

    def _may_stop_others(self, book: Book) -> bool:
        if book.missing(TASKS.name, [self.task_id]):
            return False
        task = book.get(TASKS, self.task_id)
        return task is not None and task.state.value in ("FAILED", "EXPIRED", "CANCELLED")

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        task = book.get(TASKS, self.task_id)
        # As a companion the row was written a moment ago, under an id that follows from the task's revision.
        # There is none when the task did not settle: reading it then drops the companion.
        inbox_id = self.inbox_id or inbox_id_of(self.task_id, task.revision if task is not None else 0)
        inbox = book.get(INBOX, inbox_id)
        if inbox is None or inbox.state != "PENDING":
            return Done(answer=False)
        if row is None or task is None:
            operations.mark_inbox(book, inbox_id, "STALE")
            return Done(answer=False)
        order = ApplyReport(report_of(book, task), self.seed)
        outcome = move(book, self.weave, row, order)
        if isinstance(outcome, Done):
            operations.mark_inbox(book, inbox_id, "APPLIED" if outcome.answer else "STALE")
        return outcome


@dataclass(frozen=True, slots=True)
class BlockOnError(Keyless):
    """A stored report could not be applied: the step goes to review (ENGINE_ERROR) instead of looping for
    ever.
    """

    instance_id: Id
    task_id: Id
    activation_id: Id
    inbox_id: Id
    message: str
    seed: IdSeed
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return {**base_needs(self.instance_id), INBOX.name: (self.inbox_id,)}

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        return {} if row is None else signal_needs(book, row)

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        inbox = book.get(INBOX, self.inbox_id)
        if row is None or inbox is None or inbox.state != "PENDING":
            return Done(answer=False)
        order = ReportEngineError(self.activation_id, self.message, self.seed)
        outcome = move(book, self.weave, row, order)
        if isinstance(outcome, Done):
            operations.mark_inbox(book, self.inbox_id, "ERROR")
            return Done(answer=True)
        return outcome
