"""Writing a decision of the engine into the book: rows, events, and orders to Pulse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orbit_sdk.engine.decision import (
    CancelTask,
    CreateTask,
    Decision,
    DetachTask,
    GateTasks,
    SettleTask,
    SignalChange,
)
from orbit_sdk.engine.state import InstanceState
from orbit_sdk.values.canonical import canonical_json, digest_of_text
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks import operations
from orbit_server.pulse.tasks.decide.move import Body
from orbit_server.pulse.tasks.decide.policy import RetryPolicy
from orbit_server.pulse.tasks.decide.submit import NewTask
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.events import EventRow
from orbit_server.weave.state.rows import (
    INSTANCES,
    OUTPUTS,
    PAYLOADS,
    STEPS,
    InstanceOutput,
    InstanceRow,
    PayloadRow,
    instance_row,
    step_row,
)
from orbit_server.weave.state.signals import PENDING_SIGNALS, signal_row


@dataclass(frozen=True, slots=True)
class InstanceMoved:
    """Hint after a commit: this instance has a newer revision, and stands like this."""

    instance_id: Id
    revision: int
    state: InstanceState


@dataclass(frozen=True, slots=True)
class StepsDueAt:
    """Hint after a commit: a step waits for this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class AdvancePending:
    """Hint after a commit: a checkpoint was stored."""

    instance_id: Id


def apply_decision(
    book: Book,
    decision: Decision,
    *,
    before: InstanceRow,
    audit_id: Id | None = None,
) -> InstanceRow:
    """Write everything that a decision on an instance says; gives the instance's new row.

    `audit_id` is recorded in the events of a management action, so that the timeline leads to the audit.
    """
    head = instance_row(
        decision.instance,
        definition_key=before.definition_key,
        parameters_version=before.parameters_version,
        heir=before.heir,
    )
    if head != before:
        book.change(INSTANCES, before, head)
    if before.ended_at is None:
        _write_output(book, decision, head)
    _write_what_follows(book, decision, head, audit_id)
    return head


def apply_start(
    book: Book, decision: Decision, *, definition_key: Id, parameters_version: int
) -> InstanceRow:
    """Write everything that the decision on a start says; gives the new instance's row."""
    head = instance_row(
        decision.instance, definition_key=definition_key, parameters_version=parameters_version
    )
    book.insert(INSTANCES, head)
    _write_output(book, decision, head)
    _write_what_follows(book, decision, head, None)
    return head


def _write_what_follows(book: Book, decision: Decision, head: InstanceRow, audit_id: Id | None) -> None:
    _write_steps(book, decision, head.namespace_id)
    for change in decision.signals:
        _write_signal(book, change, head.namespace_id)
    for payload in decision.payloads:
        text = canonical_json(payload.body)
        book.insert(PAYLOADS, PayloadRow(payload.id, head.id, payload.kind, text, digest_of_text(text)))
    _write_events(book, decision, head, audit_id)
    _obey(book, decision, head)
    _leave_hints(book, decision, head)


def _write_steps(book: Book, decision: Decision, namespace_id: Id) -> None:
    for change in decision.steps:
        row = step_row(change.after, namespace_id, book.now)
        known = book.member(STEPS, change.after.instance_id, row.id) if change.before is not None else None
        if known is None:
            book.insert(STEPS, row)
        else:
            book.change(STEPS, known, row)


def _write_signal(book: Book, change: SignalChange, namespace_id: Id) -> None:
    row = signal_row(change.after, namespace_id, book.now)
    if change.before is None:
        book.insert(PENDING_SIGNALS, row)
        return
    known = book.member(PENDING_SIGNALS, row.instance_id, row.id)
    if known is None:
        raise MissingRow(PENDING_SIGNALS.name, row.instance_id)
    book.change(PENDING_SIGNALS, known, row)


def _write_output(book: Book, decision: Decision, head: InstanceRow) -> None:
    if head.ended_at is not None:
        book.insert(OUTPUTS, _output(head.id, decision))


def _output(instance_id: Id, decision: Decision) -> InstanceOutput:
    if decision.error is not None:
        code, message = decision.error
        return InstanceOutput(instance_id, None, canonical_json({"code": code, "message": message}))
    if decision.instance.state == "SUCCEEDED":
        return InstanceOutput(instance_id, canonical_json(decision.output), None)
    return InstanceOutput(instance_id, None, None)


def _write_events(book: Book, decision: Decision, head: InstanceRow, audit_id: Id | None) -> None:
    for event in decision.events:
        payload: dict[str, Json] = dict(event.payload)
        if audit_id is not None and event.aggregate_kind == "workflow":
            payload["audit_id"] = audit_id
        book.emit(
            EventRow(
                id=event.id,
                namespace_id=head.namespace_id,
                workflow_id=head.id,
                task_id=None,
                aggregate_kind=event.aggregate_kind,
                aggregate_id=event.aggregate_id,
                aggregate_revision=event.aggregate_revision,
                type=event.type,
                state_scope=event.state_scope,
                state=event.state,
                step_key=event.step_key,
                signal_id=event.signal_id,
                occurred_at=book.now,
                payload=canonical_json(payload),
            )
        )


def _obey(book: Book, decision: Decision, head: InstanceRow) -> None:
    """The orders to Pulse, in the order in which they were given."""
    for effect in decision.effects:
        match effect:
            case CreateTask():
                earlier = _earlier_tasks(book, decision, effect)
                operations.create_task(book, new_task(effect, head, earlier))
            case CancelTask():
                operations.cancel_task(book, effect.task_id, effect.reason)
            case DetachTask():
                operations.detach_task(book, effect.task_id)
            case GateTasks():
                operations.gate_tasks(book, effect.task_ids, effect.closed)
            case SettleTask():
                operations.settle_task(book, effect.task_id, _resolution(effect))


def _earlier_tasks(book: Book, decision: Decision, order: CreateTask) -> list[Task]:
    """The tasks of the same effect key that this decision replaces: those of a step that is run again."""
    earlier = [
        change.before.task_id
        for change in decision.steps
        if change.before is not None
        and change.before.task_id is not None
        and change.before.step_key == order.step_key
        and change.before.round == order.round
    ]
    return [task for task in (book.get(TASKS, task_id) for task_id in earlier) if task is not None]


def new_task(order: CreateTask, head: InstanceRow, earlier: Sequence[Task] = ()) -> NewTask:
    """What Pulse is asked to run for an activation.

    The effect key is that of the `earlier` tasks, so generations go on where theirs ended, and a success that
    one of them reported too late still stands in the way of an unsafe start.
    """
    parameters = canonical_json(order.parameters)
    retry = order.retry
    return NewTask(
        id=order.task_id,
        namespace_id=head.namespace_id,
        queue=order.queue,
        handler=order.handler,
        handler_version=order.handler_version,
        parameters=parameters,
        parameters_digest=digest_of_text(parameters),
        effect_key=order.effect_key,
        recovery=Recovery(order.recovery),
        can_verify=order.can_verify,
        policy=RetryPolicy(
            retry.backoff_ms, retry.factor_percent, retry.max_backoff_ms, retry.jitter_percent
        ),
        attempts_max=order.attempts_max,
        attempt_timeout_ms=order.attempt_timeout_ms,
        total_deadline_at=order.total_deadline_at,
        latest_start_at=order.latest_start_at,
        priority=order.priority,
        instance_id=head.id,
        activation_id=order.activation_id,
        step_key=order.step_key,
        round=order.round,
        generation=max((task.generation for task in earlier), default=0),
        late_success=any(task.late_success for task in earlier),
        business_key=head.business_key,
        concurrency_key=order.concurrency_key,
        fairness_key=order.fairness_key,
    )


def _resolution(order: SettleTask) -> operations.Resolution:
    """A person's decision about a step, as Pulse takes it about the task."""
    verdict = operations.Verdict(order.phase)
    if verdict is operations.Verdict.SUCCEEDED:
        result = canonical_json(order.result)
        return operations.Resolution(verdict, Body(result=result, digest=digest_of_text(result)))
    code = order.error_code or order.reason
    error = operations.error_text(code, order.error_message or order.reason)
    return operations.Resolution(verdict, Body(error=error), code)


def _leave_hints(book: Book, decision: Decision, head: InstanceRow) -> None:
    book.after_commit(InstanceMoved(head.id, head.revision, head.state))
    due = min((c.after.due_at for c in decision.steps if c.after.due_at is not None), default=None)
    if due is not None:
        book.after_commit(StepsDueAt(due))
    if head.advance_due_at is not None:
        book.after_commit(AdvancePending(head.id))
