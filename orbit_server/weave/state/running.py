"""What every command on an instance shares: which rows it needs, how the engine's state is built from them,
and how the engine's answer becomes an outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import orjson

from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine import decide
from orbit_sdk.engine.commands import (
    DEFAULT_ENGINE_LIMITS,
    Advance,
    Command,
    EngineLimits,
    TaskPhase,
    TaskReport,
)
from orbit_sdk.engine.decision import Decision, Missing, Refusal
from orbit_sdk.engine.needs import needed_facts
from orbit_sdk.engine.plan import Plan
from orbit_sdk.engine.state import ReviewClass, Signal, SignalBody, State, Step
from orbit_sdk.errors import NotFound, Unavailable, error_of
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.tasks.records import Task, TaskResult
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASK_RESULTS, TASKS
from orbit_server.storage import commands as storage
from orbit_server.storage.book import Book
from orbit_server.weave.definitions.catalog import Catalog, Compiled
from orbit_server.weave.state.apply import apply_decision
from orbit_server.weave.state.facts import BookFacts, fact_needs
from orbit_server.weave.state.rows import INSTANCES, STEPS, InstanceRow, StepRow, to_instance, to_step
from orbit_server.weave.state.signals import BODIES, PENDING_SIGNALS, to_body, to_signal

BODIES_AHEAD = 8
"""So many bodies of pending signals are loaded before anybody asks; usually there are none or one."""

_CONTINUE = Advance(IdSeed(0, "only asked what it would read"))
_NO_STEPS: Mapping[str, Step] = {}
_PHASES = {
    TaskState.SUCCEEDED: TaskPhase.SUCCEEDED,
    TaskState.FAILED: TaskPhase.FAILED,
    TaskState.EXPIRED: TaskPhase.EXPIRED,
    TaskState.CANCELLED: TaskPhase.CANCELLED,
    TaskState.NEEDS_REVIEW: TaskPhase.NEEDS_REVIEW,
}


class NotInMemory(Unavailable):
    """The definition of an instance is not compiled in this process yet: load it, then send the command
    again.
    """

    def __init__(self, key: Id) -> None:
        super().__init__("the definition is being loaded; try again")
        self.key = key


@dataclass(frozen=True, slots=True)
class Weave:
    """What commands on instances are given: compiled definitions and limits."""

    catalog: Catalog
    limits: EngineLimits = DEFAULT_ENGINE_LIMITS

    def compiled(self, key: Id) -> Compiled:
        """Raises NotInMemory."""
        found = self.catalog.peek(key)
        if found is None:
            raise NotInMemory(key)
        return found


def base_needs(instance_id: Id) -> dict[str, tuple[Id, ...]]:
    """The head and the live steps."""
    return {INSTANCES.name: (instance_id,), STEPS.name: (instance_id,)}


def head_of(book: Book, instance_id: Id, namespace_id: Id | None = None) -> InstanceRow:
    """The instance's row. Raises NotFound when it is absent or of another namespace."""
    row = book.get(INSTANCES, instance_id)
    if row is None or (namespace_id is not None and row.namespace_id != namespace_id):
        raise NotFound("no such workflow")
    return row


def live_steps(book: Book, instance_id: Id) -> dict[str, Step]:
    """The live steps by key."""
    return {row.step_key: to_step(row) for row in book.members(STEPS, instance_id) if row.live}


def signal_needs(book: Book, row: InstanceRow) -> dict[str, list[Id]]:
    """The pending signals, and once they are known the bodies of the oldest few."""
    if not row.pending_signals:
        return {}
    needs: dict[str, list[Id]] = {PENDING_SIGNALS.name: [row.id]}
    if not book.missing(PENDING_SIGNALS.name, [row.id]):
        pending = [found.id for found in book.members(PENDING_SIGNALS, row.id) if found.state == "PENDING"]
        needs[BODIES.name] = pending[:BODIES_AHEAD]
    return needs


def task_needs(task_ids: Iterable[Id]) -> dict[str, list[Id]]:
    """Tasks that a decision may cancel, gate or settle, with their attempts and what they left."""
    ids = list(task_ids)
    return {TASKS.name: ids, ATTEMPTS.name: ids, TASK_RESULTS.name: ids} if ids else {}


def merged(*needs: Mapping[str, Iterable[Id]]) -> dict[str, list[Id]]:
    """The union of several needs."""
    out: dict[str, list[Id]] = {}
    for part in needs:
        for name, ids in part.items():
            out.setdefault(name, []).extend(ids)
    return out


def advance_needs(
    book: Book, plan: Plan, row: InstanceRow, steps: Iterable[Step | StepRow]
) -> dict[str, list[Id]]:
    """The facts that an advance from these steps, or from the stored checkpoint, may read."""
    keys: set[FactKey] = set()
    if row.checkpoint:
        # A resume follows the checkpoint of an instance that is still paused when this is asked.
        keys |= needed_facts(plan, State(replace(to_instance(row), paused=False)), _CONTINUE)
    for step in steps:
        keys |= plan.reads_of(step.step_key)
    return fact_needs(book, row.id, keys)


def state_of(book: Book, row: InstanceRow, closed: Mapping[str, Step] = _NO_STEPS) -> State:
    """The engine's view of what is loaded."""
    signals: tuple[Signal, ...] = ()
    bodies: dict[str, SignalBody] = {}
    if not book.missing(PENDING_SIGNALS.name, [row.id]):
        pending = [found for found in book.members(PENDING_SIGNALS, row.id) if found.state == "PENDING"]
        pending.sort(key=lambda found: (found.accepted_at, found.id))
        signals = tuple(map(to_signal, pending))
        for found in pending:
            if not book.missing(BODIES.name, [found.id]):
                body = book.get(BODIES, found.id)
                if body is not None:
                    bodies[found.id] = to_body(body)
    elif row.pending_signals:
        book.members(PENDING_SIGNALS, row.id)
    return State(to_instance(row), live_steps(book, row.id), signals, closed, bodies)


def report_of(book: Book, task: Task, *, values: bool = True) -> TaskReport:
    """The newest stored fact about a task, as the engine sees it. Its result must be loaded.

    `values` False: without what it left, for decisions that only ask how it stands (a value that cannot be
    read must not keep a person from deciding).
    """
    phase = _PHASES.get(task.state, TaskPhase.OPEN)
    stored: TaskResult | None = None
    if values and phase is not TaskPhase.OPEN:
        stored = book.get(TASK_RESULTS, task.id)
    result = orjson.loads(stored.result) if stored is not None and stored.result is not None else None
    error = orjson.loads(stored.error) if stored is not None and stored.error is not None else {}
    return TaskReport(
        task_id=task.id,
        activation_id=task.activation_id or "",
        source_revision=task.revision,
        phase=phase,
        stored_at=task.settled_at or task.last,
        result=result,
        error_code=task.error_code,
        error_message=error.get("message"),
        review_class=None if task.review_class is None else ReviewClass(task.review_class.value),
        attempts_used=task.attempts_used,
        effect_possible=task.effect_possible or task.late_success,
        started=task.generation > 0,
    )


def reports_of(book: Book, steps: Iterable[Step]) -> tuple[TaskReport, ...]:
    """The newest stored fact of each step's task."""
    reports = []
    for step in steps:
        task = book.get(TASKS, step.task_id) if step.task_id is not None else None
        if task is not None:
            reports.append(report_of(book, task))
    return tuple(reports)


def engine_outcome(
    book: Book, weave: Weave, row: InstanceRow, command: Command, closed: Mapping[str, Step] = _NO_STEPS
) -> Decision | storage.Refused | storage.Missing:
    """Ask the engine about an instance that exists; refusals and missing facts in the words of storage.

    `closed`: the closed steps that the command looks at (`engine.state.State.closed`).
    """
    compiled = weave.compiled(row.definition_key)
    state = state_of(book, row, closed)
    answer = decide(compiled.plan, state, command, book.now, BookFacts(book, row), weave.limits)
    if isinstance(answer, Refusal):
        return storage.Refused(error_of(answer.code, answer.message, answer.details))
    if isinstance(answer, Missing):
        return missing_outcome(book, row.id, answer)
    return answer


def move(
    book: Book, weave: Weave, row: InstanceRow, command: Command, closed: Mapping[str, Step] = _NO_STEPS
) -> storage.Outcome[bool]:
    """Ask the engine about an instance that exists and write what it says. The answer is whether the command
    found what it is about; False when its cause was stale.
    """
    answer = engine_outcome(book, weave, row, command, closed)
    if not isinstance(answer, Decision):
        return answer
    apply_decision(book, answer, before=row)
    return storage.Done(answer.applied)


def missing_outcome(book: Book, instance_id: Id, answer: Missing) -> storage.Missing:
    """Which rows hold what the engine asked for."""
    needs = fact_needs(book, instance_id, answer.facts)
    if answer.signals:
        needs.setdefault(BODIES.name, []).extend(answer.signals)
    for kind, ids in list(needs.items()):
        needs[kind] = book.missing(kind, ids)
    if not any(needs.values()):
        raise LookupError(f"the engine asks for facts that do not exist: {sorted(map(str, answer.facts))}")
    return storage.Missing({kind: ids for kind, ids in needs.items() if ids})
