"""How a task comes to be."""

from __future__ import annotations

from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.ids import Id
from orbit_sdk.values.record import record
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.tasks.decide.policy import DEFAULT_POLICY, RetryPolicy
from orbit_server.pulse.tasks.lifecycle import Recovery, TaskState
from orbit_server.pulse.tasks.records import Task, TaskSpec


@record(frozen=True, slots=True)
class NewTask:
    """Everything that is fixed when a task is accepted. Instants are absolute UTC microseconds.

    `parameters` and `labels` are canonical JSON, `parameters_digest` the SHA-256 of the former. `recovery` is
    what the submission or the definition declares. `gated`: the workflow is paused. `late_success` is taken
    from an earlier task of the same effect key. `generation` is the last one that such a task gave:
    what is outside fences by it, so it may only grow.
    """

    id: Id
    namespace_id: Id
    queue: str
    handler: str
    handler_version: int
    parameters: str
    parameters_digest: str
    effect_key: str
    recovery: Recovery = Recovery.CONSERVATIVE
    can_verify: bool = False
    policy: RetryPolicy = DEFAULT_POLICY
    attempts_max: int = DEFAULTS.attempts
    attempt_timeout_ms: int = DEFAULTS.attempt_timeout_ms
    total_deadline_at: int | None = None
    latest_start_at: int | None = None
    due_at: int | None = None
    priority: int = DEFAULTS.priority
    gated: bool = False
    late_success: bool = False
    generation: int = 0
    instance_id: Id | None = None
    activation_id: Id | None = None
    step_key: str | None = None
    round: int = 0
    business_key: str | None = None
    concurrency_key: str | None = None
    fairness_key: str | None = None
    labels: str | None = None
    parameters_version: int = 1
    submitted_by: str | None = None
    retry_of: Id | None = None
    idempotency_id: Id | None = None
    trace: str | None = None
    linked_to: Id | None = None
    probe_of: Id | None = None


def submit(new: NewTask, now: int) -> tuple[Task, TaskSpec]:
    """The rows of an accepted task: SCHEDULED until it is due, else READY at once."""
    waits = new.due_at is not None and new.due_at > now
    asks = new.probe_of is not None and new.can_verify
    task = Task(
        id=new.id,
        namespace_id=new.namespace_id,
        queue_id=queue_id_of(new.namespace_id, new.queue),
        queue=new.queue,
        handler=new.handler,
        handler_version=new.handler_version,
        state=TaskState.VERIFYING if asks else TaskState.SCHEDULED if waits else TaskState.READY,
        blocked=1 if new.gated else 0,
        gate=1 if new.gated else 0,
        priority=new.priority,
        virtual_start=now,
        due_at=new.due_at if waits else None,
        deadline_at=_earliest(new.latest_start_at, new.total_deadline_at),
        latest_start_at=new.latest_start_at,
        total_deadline_at=new.total_deadline_at,
        attempt_timeout_ms=new.attempt_timeout_ms,
        attempts_used=0,
        attempts_max=new.attempts_max,
        uncharged=0,
        generation=new.generation,
        recovery=new.recovery,
        can_verify=new.can_verify,
        verify_deadline_at=new.latest_start_at if asks else None,
        attempt_id=None,
        lease_until=None,
        cancel_requested=False,
        effect_possible=False,
        late_success=new.late_success,
        detached=False,
        review_class=None,
        error_code=None,
        instance_id=new.instance_id,
        activation_id=new.activation_id,
        step_key=new.step_key,
        round=new.round,
        business_key=new.business_key,
        concurrency_key=new.concurrency_key,
        fairness_key=new.fairness_key,
        revision=1,
        created_at=now,
        settled_at=None,
        last=now,
        probe_of=new.probe_of,
    )
    return task, _spec(new)


def _earliest(*instants: int | None) -> int | None:
    return min((at for at in instants if at is not None), default=None)


def _spec(new: NewTask) -> TaskSpec:
    return TaskSpec(
        task_id=new.id,
        parameters=new.parameters,
        digest=new.parameters_digest,
        policy=new.policy.to_json(),
        effect_key=new.effect_key,
        labels=new.labels,
        parameters_version=new.parameters_version,
        submitted_by=new.submitted_by,
        retry_of=new.retry_of,
        idempotency_id=new.idempotency_id,
        trace=new.trace,
        linked_to=new.linked_to,
    )
