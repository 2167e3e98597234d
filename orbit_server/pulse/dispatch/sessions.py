"""What the dispatcher and the worker socket say to each other.

The gateway implements `WorkerSession`; the dispatcher knows nothing of sockets. An `Offer` is complete: the
gateway turns it into a frame without reading anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from orbit_sdk.values.ids import Id
from orbit_sdk.values.record import record
from orbit_server.pulse.tasks.lifecycle import AttemptKind, Recovery

HandlerKey = tuple[str, int]
"""Name and version of a handler."""


@record(frozen=True, slots=True)
class Offer:
    """One attempt for one worker.

    `started`: the start is granted with the offer, which then answers the worker's ready `ready_number`;
    otherwise the worker has to ask with StartAttempt. `lease_ms` counts from the ready's sending (started) or
    from the request of the start. `limit_ms` is the attempt's own time, from its start. `parameters` is
    canonical JSON. `workflow_id` is set for tasks of a workflow. `asked_generation` is set on VERIFY only.
    """

    attempt_id: Id
    task_id: Id
    namespace_id: Id
    generation: int
    attempt_no: int
    kind: AttemptKind
    started: bool
    queue: str
    handler: str
    handler_version: int
    recovery: Recovery
    lease_ms: int
    limit_ms: int
    parameters: str
    parameters_version: int
    effect_key: str
    ready_number: int | None = None
    deadline_at: int | None = None
    business_key: str | None = None
    workflow_id: Id | None = None
    activation_id: Id | None = None
    step_key: str | None = None
    round: int = 0
    asked_generation: int | None = None
    cancel_requested: bool = False
    trace: str | None = None
    previous_progress: str | None = None
    """Canonical JSON of what an earlier attempt reported last."""
    waited_us: int = 0
    """From READY to the claim; only where the task has no fairness key."""
    virtual_start: int = 0
    key: tuple[Id, Id] | None = None
    """The ids of its concurrency key and of the key's class, where it has one."""
    fair: bool = False
    """Whether the task has a fairness key: its `virtual_start` moves the queue's virtual time."""


@record(frozen=True, slots=True)
class SessionFacts:
    """What a claim writes down of a session: plain values, so that claiming stays pure."""

    id: Id
    namespace_id: Id
    nonce: str
    worker: str
    build: str
    queues: frozenset[str]
    handlers: Mapping[HandlerKey, Recovery]
    can_verify: frozenset[HandlerKey] = field(default_factory=frozenset)
    progress_timeouts: Mapping[HandlerKey, int] = field(default_factory=dict)
    """Milliseconds, of the handlers that have to report progress."""


class WorkerSession(Protocol):
    """One connected worker, as the gateway gives it to the dispatcher. Both methods return at once."""

    @property
    def facts(self) -> SessionFacts: ...

    def push(self, offers: Sequence[Offer]) -> None:
        """Committed offers for this worker. What cannot be delivered is handed back with commands."""

    def tell_cancel(self, attempt_ids: Sequence[Id]) -> None:
        """Somebody asked these running attempts to stop."""
