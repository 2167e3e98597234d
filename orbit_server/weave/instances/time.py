"""What time itself does to instances: due steps, and checkpoints that a scan continues."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.commands import Advance, ReportEngineError, TimePassed
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Keyless, Needs, Outcome
from orbit_server.weave.state.rows import INSTANCES
from orbit_server.weave.state.running import (
    Weave,
    advance_needs,
    base_needs,
    live_steps,
    merged,
    move,
    report_of,
    signal_needs,
    task_needs,
)


@dataclass(frozen=True, slots=True)
class StepDue(Keyless):
    """A timer, a time-out, a round or a deadline is due. The live task is touched with the instance, so
    that a fact stored in time wins. The answer says whether the step moved.
    """

    instance_id: Id
    activation_id: Id
    seed: IdSeed
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return base_needs(self.instance_id)

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return {}
        steps = live_steps(book, row.id)
        mine = [step for step in steps.values() if step.id == self.activation_id]
        tasks = [step.task_id for step in steps.values() if step.task_id is not None]
        compiled = self.weave.compiled(row.definition_key)
        return merged(
            signal_needs(book, row), advance_needs(book, compiled.plan, row, mine), task_needs(tasks)
        )

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return Done(answer=False)
        step = next((s for s in live_steps(book, row.id).values() if s.id == self.activation_id), None)
        if step is None or step.due_at is None or step.due_at > book.now:
            return Done(answer=False)
        report = None
        if step.task_id is not None:
            task = book.get(TASKS, step.task_id)
            report = None if task is None else report_of(book, task)
        return move(book, self.weave, row, TimePassed(self.activation_id, self.seed, report))


@dataclass(frozen=True, slots=True)
class ContinueAdvance(Keyless):
    """Follow the exits of a stored checkpoint."""

    instance_id: Id
    seed: IdSeed
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return base_needs(self.instance_id)

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return {}
        steps = live_steps(book, row.id)
        compiled = self.weave.compiled(row.definition_key)
        tasks = [step.task_id for step in steps.values() if step.task_id is not None]
        return merged(signal_needs(book, row), advance_needs(book, compiled.plan, row, ()), task_needs(tasks))

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        if row is None or row.advance_due_at is None:
            return Done(answer=False)
        return move(book, self.weave, row, Advance(self.seed))


@dataclass(frozen=True, slots=True)
class BlockStep(Keyless):
    """Time or a checkpoint could not be followed: the step, or what the checkpoint leads to, goes to review
    (ENGINE_ERROR) instead of being met for ever. `activation_id` None: the checkpoint.
    """

    instance_id: Id
    activation_id: Id | None
    message: str
    seed: IdSeed
    weave: Weave

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        return base_needs(self.instance_id)

    def more(self, book: Book) -> Needs:
        row = book.get(INSTANCES, self.instance_id)
        return {} if row is None else signal_needs(book, row)

    def decide(self, book: Book) -> Outcome[bool]:
        row = book.get(INSTANCES, self.instance_id)
        if row is None:
            return Done(answer=False)
        order = ReportEngineError(self.activation_id or "", self.message, self.seed)
        return move(book, self.weave, row, order)
