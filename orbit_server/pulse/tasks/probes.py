"""Making a probe: a new task that finds out something about a task in doubt, outside all its budgets."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.refs import effect_key
from orbit_sdk.errors import Detail, FailedPrecondition, NotFound
from orbit_sdk.values.canonical import canonical_json, digest_of_text
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.ids import evidence_id_of
from orbit_server.pulse.tasks.commands import By, TaskAnswer, answer_of, audit, standalone
from orbit_server.pulse.tasks.decide.evidence import PROBE
from orbit_server.pulse.tasks.decide.probe import refuse_open, refuse_verifying
from orbit_server.pulse.tasks.decide.submit import NewTask
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Recovery
from orbit_server.pulse.tasks.operations import create_task
from orbit_server.pulse.tasks.records import Evidence, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, EVIDENCE, TASK_SPECS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order


@dataclass(frozen=True, slots=True)
class Ask:
    """What a probe does. `handler` None: ask the verify handler, or run the task's own if that is READ_ONLY.
    `queue`, `parameters` (canonical JSON) None: those of the task. Times in ms.
    """

    task_id: Id
    by: By
    attempt_timeout_ms: int
    start_within_ms: int
    handler: tuple[str, int] | None = None
    queue: str | None = None
    parameters: str | None = None


def rows_for(task_id: Id) -> dict[str, list[Id]]:
    """What `create_probe` reads of the task that it is about."""
    return {"tasks": [task_id], "attempts": [task_id], "task_specs": [task_id]}


def create_probe(book: Book, task: Task, ask: Ask) -> Task:
    """Insert a probe of this task, and the evidence that somebody asked. Needs `rows_for`.

    Raises:
        FailedPrecondition: the task is open, or there is nobody to ask.
    """
    refuse_open(task)
    spec = book.get(TASK_SPECS, task.id)
    if spec is None:
        raise NotFound(f"task {task.id} has no parameters any more")
    started = [a.generation for a in book.members(ATTEMPTS, task.id) if a.kind is AttemptKind.RUN]
    asked = max(started, default=0)
    handler = ask.handler
    if handler is None and task.recovery is Recovery.READ_ONLY:
        handler = (task.handler, task.handler_version)
    verifies = handler is None
    if handler is None:
        refuse_verifying(task, asked)
        handler = (task.handler, task.handler_version)
    parameters = spec.parameters if ask.parameters is None or verifies else ask.parameters
    probe = create_task(
        book,
        NewTask(
            id=ask.task_id,
            namespace_id=task.namespace_id,
            queue=ask.queue or task.queue,
            handler=handler[0],
            handler_version=handler[1],
            parameters=parameters,
            parameters_digest=digest_of_text(parameters),
            effect_key=spec.effect_key if verifies else effect_key(ask.task_id, "", 0),
            recovery=Recovery.READ_ONLY,
            can_verify=verifies,
            attempts_max=1,
            attempt_timeout_ms=ask.attempt_timeout_ms,
            latest_start_at=book.now + ask.start_within_ms * 1000,
            priority=task.priority,
            generation=asked if verifies else 0,
            business_key=task.business_key,
            submitted_by=ask.by.actor,
            probe_of=task.id,
        ),
    )
    _tell(book, task, probe, verifies=verifies)
    return probe


def _tell(book: Book, task: Task, probe: Task, *, verifies: bool) -> None:
    said: Json = {
        "task_id": probe.id,
        "handler": f"{probe.handler}@{probe.handler_version}",
        "verify": verifies,
    }
    body = canonical_json(said)
    digest = digest_of_text(body)
    found = Evidence(
        id=evidence_id_of(probe.id, digest),
        task_id=task.id,
        attempt_id=None,
        namespace_id=task.namespace_id,
        kind=f"{PROBE}ASKED",
        body=body,
        digest=digest,
        contradiction=False,
        at=book.now,
    )
    book.insert(EVIDENCE, found)


@dataclass(frozen=True, slots=True)
class ProbeTask(Order):
    """Probe a standalone task in review. The answer is the probe as JSON."""

    key: CommandKey | None
    namespace_id: Id
    task_id: Id
    ask: Ask

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        return rows_for(self.task_id)

    def decide(self, book: Book) -> Done[TaskAnswer]:
        task = standalone(book, self.task_id, self.namespace_id, "probe")
        if task.state.value != "NEEDS_REVIEW":
            reason = f"the task is {task.state}, not in review"
            raise FailedPrecondition(reason, [Detail("task_id", reason)])
        probe = create_probe(book, task, self.ask)
        audit(book, "task.probe", task, task, self.ask.by)
        return Done(answer_of(probe), subject_id=probe.id)
