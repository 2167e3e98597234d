"""Starting what a fire is for: a task or a workflow, inside the transaction of the fire."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from orbit_sdk.engine.refs import effect_key
from orbit_sdk.errors import Code, Detail, OrbitError, PermissionDenied
from orbit_sdk.protocol.schedules import TaskTarget, WorkflowTarget
from orbit_sdk.values.canonical import canonical_json, digest, digest_of_text
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks.decide.policy import RetryPolicy
from orbit_server.pulse.tasks.decide.submit import NewTask
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.pulse.tasks.limits.operations import count_in
from orbit_server.pulse.tasks.limits.rows import LIMITS
from orbit_server.pulse.tasks.operations import create_task
from orbit_server.schedules.rows import FireRow
from orbit_server.schedules.specs import Spec
from orbit_server.schedules.templates import render
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Refused
from orbit_server.storage.needs import NOTHING
from orbit_server.weave.definitions.rows import DEFINITIONS, POINTER_READS, definition_key, pointer_key
from orbit_server.weave.instances import start
from orbit_server.weave.instances.start import StartWorkflow
from orbit_server.weave.state.running import NotInMemory, Weave

__all__ = ["Means", "Started", "require_priority", "start_target", "target_needs"]

_CURRENT = "CURRENT"
_LATER = frozenset({Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE})


def _no_limits(_lane: tuple[Id, str]) -> tuple[Id, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Means:
    """What starting a target takes: workflows, and the limits on the backlog of a (namespace, queue)."""

    weave: Weave
    backlog_of: Callable[[tuple[Id, str]], tuple[Id, ...]] = _no_limits


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a start: the target, or why there is none. `later`: it may work another time."""

    target_id: Id | None
    version: int | None = None
    error: OrbitError | None = None

    @property
    def later(self) -> bool:
        return self.error is not None and self.error.code in _LATER


def target_needs(book: Book, namespace_id: Id, specs: Iterable[Spec], means: Means) -> Needs:
    """The limits of a task's queue; the definition of a workflow, asked again with its pointer."""
    pointers: list[Id] = []
    definitions: list[Id] = []
    limits: list[Id] = []
    for spec in specs:
        target = spec.target
        if not isinstance(target, WorkflowTarget):
            limits += means.backlog_of((namespace_id, target.queue))
            continue
        if target.version != _CURRENT:
            definitions.append(definition_key(namespace_id, target.definition_id, int(target.version)))
            continue
        pointer_id = pointer_key(namespace_id, target.definition_id)
        pointers.append(pointer_id)
        if not book.missing(POINTER_READS.name, [pointer_id]):
            pointer = book.get(POINTER_READS, pointer_id)
            if pointer is not None and pointer.current_version is not None:
                version = pointer.current_version
                definitions.append(definition_key(namespace_id, target.definition_id, version))
    needs: dict[str, list[Id]] = {}
    if pointers:
        needs[POINTER_READS.name] = pointers
    if definitions:
        needs[DEFINITIONS.name] = definitions
    if limits:
        needs[LIMITS.name] = limits
    return needs or NOTHING


def start_target(book: Book, spec: Spec, fire: FireRow, seed: IdSeed, means: Means) -> Started:
    """Start what the fire is for. What is refused leaves nothing behind.

    Raises:
        NotInMemory, MissingRow: the whole command has to be run again.
    """
    mark = book.mark()
    try:
        if isinstance(spec.target, TaskTarget):
            return _start_task(book, spec, spec.target, fire, (seed, means))
        return _start_workflow(book, spec, spec.target, fire, (seed, means))
    except NotInMemory:
        raise
    except OrbitError as error:
        book.undo(mark)
        return Started(None, error=error)


def require_priority(book: Book, spec: Spec, namespace_id: Id, most: int | None, means: Means) -> None:
    """Raises PermissionDenied where the target has a higher priority than `most` (None: any will do)."""
    target = spec.target
    if most is None:
        return
    if isinstance(target, TaskTarget):
        if target.priority > most:
            reason = f"is {target.priority}; this credential starts work with a priority of at most {most}"
            raise PermissionDenied(f"target.priority {reason}", [Detail("target.priority", reason)])
        return
    version = None if target.version == _CURRENT else int(target.version)
    start.require_priority(
        start.resolved(book, means.weave, namespace_id, (target.definition_id, version)), most
    )


def _start_task(
    book: Book, spec: Spec, target: TaskTarget, fire: FireRow, how: tuple[IdSeed, Means]
) -> Started:
    seed, means = how
    task_id = seed.nth(0)
    parameters = canonical_json(render(cast("Json", target.parameters), _facts(spec, fire)))
    retry = target.retry
    new = NewTask(
        id=task_id,
        namespace_id=fire.namespace_id,
        queue=target.queue,
        handler=target.handler,
        handler_version=target.handler_version,
        parameters=parameters,
        parameters_digest=digest_of_text(parameters),
        effect_key=effect_key(fire.id, "", 0),
        recovery=Recovery(target.recovery),
        can_verify=target.can_verify,
        policy=RetryPolicy(
            retry.backoff_ms, retry.factor_percent, retry.max_backoff_ms, retry.jitter_percent
        ),
        attempts_max=retry.max_attempts,
        attempt_timeout_ms=target.attempt_timeout_ms,
        priority=target.priority,
        business_key=target.business_key,
        concurrency_key=target.concurrency_key,
        fairness_key=target.fairness_key,
        labels=canonical_json(cast("Json", target.labels)) if target.labels else None,
        parameters_version=target.parameters_version,
        latest_start_at=None if target.start_within_ms is None else book.now + target.start_within_ms * 1_000,
        total_deadline_at=book.now + target.total_timeout_ms * 1_000,
        submitted_by=f"schedule {fire.schedule_id}",
    )
    limits = means.backlog_of((fire.namespace_id, target.queue))
    counted = count_in(book, limits) if limits else 0
    create_task(book, new, counted=int(counted))
    return Started(task_id, target.handler_version)


def _start_workflow(
    book: Book, spec: Spec, target: WorkflowTarget, fire: FireRow, how: tuple[IdSeed, Means]
) -> Started:
    seed, means = how
    version = None if target.version == _CURRENT else int(target.version)
    given = render(target.input, _facts(spec, fire))
    command = StartWorkflow(
        key=CommandKey(fire.namespace_id, "schedule.fire", fire.id, digest(given)),
        instance_id=seed.nth(0),
        namespace_id=fire.namespace_id,
        definition_id=target.definition_id,
        version=version,
        input=given,
        started_by=f"schedule {fire.schedule_id}",
        seed=IdSeed(seed.time_us, f"{seed.entropy}:{fire.id}"),
        weave=means.weave,
        business_key=target.business_key,
        labels=canonical_json(cast("Json", target.labels)) if target.labels else None,
        parameters_version=target.parameters_version,
        priority_max=spec.priority_max,
    )
    outcome = command.decide(book)
    if isinstance(outcome, Refused):
        raise outcome.error
    assert isinstance(outcome, Done)  # what a start needs follows from its definition alone
    return Started(command.instance_id, cast(int, outcome.answer["definition_version"]))


def _facts(spec: Spec, fire: FireRow) -> dict[str, Json]:
    local = spec.local(fire.planned_at)
    return {
        "id": fire.id,
        "planned_at": to_rfc3339(fire.planned_at),
        "local_date": local[:10],
        "local_time": local[11:19],
        "first_at": to_rfc3339(fire.planned_at if fire.first_at is None else fire.first_at),
        "merged": fire.merged,
        "schedule_id": fire.schedule_id,
        "version": fire.version,
    }
