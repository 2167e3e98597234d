"""The rows of instances and steps, and how they become the engine's facts and back."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from orbit_sdk.engine.refs import step_id
from orbit_sdk.engine.state import ArmState, Granted, Instance, InstanceState, ReviewClass, Step, StepState
from orbit_sdk.values.ids import Id
from orbit_sdk.values.record import record
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


@record(frozen=True, slots=True)
class InstanceRow:
    """The hot head of an instance; see `engine.state.Instance` for what the fields mean."""

    id: Id
    namespace_id: Id
    definition_key: Id
    definition_id: str
    definition_version: int
    state: InstanceState
    paused: bool
    cancel_requested: bool
    stopping: str | None
    control_version: int
    revision: int
    pending_signals: int
    checkpoint: str | None
    advance_due_at: int | None
    business_key: str | None
    parameters_version: int
    effect_root: Id
    started_at: int
    ended_at: int | None
    last: int
    heir: Id | None = None
    """The latest instance that was restarted with the effects of this one (on the root of the effects)."""


@record(frozen=True, slots=True)
class StepRow:
    """One activation of one step; see `engine.state.Step`."""

    id: Id
    instance_id: Id
    namespace_id: Id
    step_id: Id
    step_key: str
    activation_no: int
    state: StepState
    live: bool
    revision: int
    reason: str | None
    review_class: ReviewClass | None
    exit_taken: str | None
    task_id: Id | None
    task_revision: int
    round: int
    attempts_spent: int
    effect_possible: bool
    signal: str | None
    match_key: str | None
    opened_at: int
    deadline_at: int | None
    due_at: int | None
    arms: str | None
    result_ref: str | None
    failure_ref: str | None
    closed_at: int | None
    last: int
    granted: str | None = None
    """Attempts, rounds and milliseconds that were granted, as a JSON list."""


@record(frozen=True, slots=True)
class InstanceInput:
    """What an instance was started with, written once. `input`, `labels`, `origin` are canonical JSON."""

    instance_id: Id
    input: str
    digest: str
    labels: str | None
    started_by: str
    origin: str | None
    idempotency_id: Id | None
    policy: str | None


@record(frozen=True, slots=True)
class InstanceOutput:
    """How an instance ended: its output, or its error as {"code", "message"}; canonical JSON."""

    instance_id: Id
    output: str | None
    error: str | None


@record(frozen=True, slots=True)
class PayloadRow:
    """A value the engine made (merged, concluded, failed), written once."""

    id: Id
    instance_id: Id
    kind: str
    body: str
    digest: str


INSTANCES: RowKind[InstanceRow] = RowKind(
    "instances", LockOrder.INSTANCES, tables.instances, InstanceRow, touchable=True
)
STEPS: RowKind[StepRow] = RowKind(
    "steps",
    LockOrder.STEPS,
    tables.steps,
    StepRow,
    owner="instance_id",
    owner_kind="instances",
    live="live = 1",
)
# Closed activations by id: they do not change any more, so reading them needs no touch of their own. They are
# asked for after the live steps of the instance, hence one place later in the order.
CLOSED_STEPS: RowKind[StepRow] = RowKind("closed_steps", LockOrder.STEPS + 1, tables.steps, StepRow)
# All closed activations of an instance: only for what looks at a whole history, as a cancel does.
HISTORY: RowKind[StepRow] = RowKind(
    "step_history",
    LockOrder.STEPS + 1,
    tables.steps,
    StepRow,
    owner="instance_id",
    owner_kind="instances",
    live="live = 0",
)
INPUTS: RowKind[InstanceInput] = RowKind(
    "instance_inputs", LockOrder.COLD, tables.instance_inputs, InstanceInput, key="instance_id"
)
OUTPUTS: RowKind[InstanceOutput] = RowKind(
    "instance_outputs", LockOrder.RECORDS, tables.instance_outputs, InstanceOutput, key="instance_id"
)
PAYLOADS: RowKind[PayloadRow] = RowKind("payloads", LockOrder.COLD, tables.payloads, PayloadRow)

KINDS = (INSTANCES, STEPS, CLOSED_STEPS, HISTORY, INPUTS, OUTPUTS, PAYLOADS)


def to_instance(row: InstanceRow) -> Instance:
    """The head as the engine knows it."""
    return Instance(
        id=row.id,
        namespace_id=row.namespace_id,
        definition_id=row.definition_id,
        definition_version=row.definition_version,
        state=row.state,
        started_at=row.started_at,
        effect_root=row.effect_root,
        paused=row.paused,
        cancel_requested=row.cancel_requested,
        stopping=row.stopping,
        control_version=row.control_version,
        revision=row.revision,
        pending_signals=row.pending_signals,
        checkpoint=tuple(orjson.loads(row.checkpoint)) if row.checkpoint else (),
        advance_due_at=row.advance_due_at,
        business_key=row.business_key,
        ended_at=row.ended_at,
        last=row.last,
    )


def instance_row(
    instance: Instance, *, definition_key: Id, parameters_version: int, heir: Id | None = None
) -> InstanceRow:
    """The row of a head, with what the engine does not need."""
    return InstanceRow(
        id=instance.id,
        namespace_id=instance.namespace_id,
        definition_key=definition_key,
        definition_id=instance.definition_id,
        definition_version=instance.definition_version,
        state=instance.state,
        paused=instance.paused,
        cancel_requested=instance.cancel_requested,
        stopping=instance.stopping,
        control_version=instance.control_version,
        revision=instance.revision,
        pending_signals=instance.pending_signals,
        checkpoint=orjson.dumps(instance.checkpoint).decode() if instance.checkpoint else None,
        advance_due_at=instance.advance_due_at,
        business_key=instance.business_key,
        parameters_version=parameters_version,
        effect_root=instance.effect_root,
        started_at=instance.started_at,
        ended_at=instance.ended_at,
        last=instance.last,
        heir=heir,
    )


def to_step(row: StepRow) -> Step:
    """An activation as the engine knows it."""
    return Step(
        id=row.id,
        instance_id=row.instance_id,
        step_key=row.step_key,
        activation_no=row.activation_no,
        state=row.state,
        live=row.live,
        opened_at=row.opened_at,
        revision=row.revision,
        reason=row.reason,
        review_class=row.review_class,
        exit_taken=row.exit_taken,
        task_id=row.task_id,
        task_revision=row.task_revision,
        round=row.round,
        attempts_spent=row.attempts_spent,
        effect_possible=row.effect_possible,
        signal=row.signal,
        match_key=row.match_key,
        deadline_at=row.deadline_at,
        due_at=row.due_at,
        arms=_arms(row.arms),
        result_ref=row.result_ref,
        failure_ref=row.failure_ref,
        closed_at=row.closed_at,
        granted=None if row.granted is None else Granted(*orjson.loads(row.granted)),
    )


def step_row(step: Step, namespace_id: Id, now: int) -> StepRow:
    """The row of an activation."""
    return StepRow(
        id=step.id,
        instance_id=step.instance_id,
        namespace_id=namespace_id,
        step_id=step_id(step.instance_id, step.step_key),
        step_key=step.step_key,
        activation_no=step.activation_no,
        state=step.state,
        live=step.live,
        revision=step.revision,
        reason=step.reason,
        review_class=step.review_class,
        exit_taken=step.exit_taken,
        task_id=step.task_id,
        task_revision=step.task_revision,
        round=step.round,
        attempts_spent=step.attempts_spent,
        effect_possible=step.effect_possible,
        signal=step.signal,
        match_key=step.match_key,
        opened_at=step.opened_at,
        deadline_at=step.deadline_at,
        due_at=step.due_at,
        arms=None if step.arms is None else orjson.dumps(dict(step.arms)).decode(),
        result_ref=step.result_ref,
        failure_ref=step.failure_ref,
        closed_at=step.closed_at,
        last=now,
        granted=None if step.granted is None else _granted(step.granted),
    )


def _granted(given: Granted) -> str:
    return orjson.dumps([given.attempts, given.rounds, given.time_ms]).decode()


def _arms(text: str | None) -> Mapping[str, ArmState] | None:
    if text is None:
        return None
    return {name: ArmState(state) for name, state in orjson.loads(text).items()}
