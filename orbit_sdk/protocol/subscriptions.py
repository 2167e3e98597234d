"""Wire models of subscriptions: what a reader wants to be told, and what it is told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from orbit_sdk.protocol.common import Answer, Counter, HandlerName, Id, Instant, Managed, QueueName, Request

SubscriptionName = HandlerName
EventKind = Literal["TASK", "WORKFLOW", "STEP", "SIGNAL"]
WhenFull = Literal["DROP_OLDEST", "DROP_NEWEST"]
_State = Annotated[str, StringConstraints(max_length=24, pattern=r"^[A-Z][A-Z_]*$")]
_Type = Annotated[str, StringConstraints(max_length=64, pattern=r"^[a-z][a-z0-9_.]*$")]


class SubscriptionFilter(Request):
    """What is wanted; what is left out wants everything. All that is given must hold."""

    kinds: Annotated[list[EventKind], Field(max_length=4)] = []
    types: Annotated[list[_Type], Field(max_length=32)] = []
    states: Annotated[list[_State], Field(max_length=32)] = []
    queues: Annotated[list[QueueName], Field(max_length=100)] = []
    handlers: Annotated[list[HandlerName], Field(max_length=100)] = []
    definitions: Annotated[list[HandlerName], Field(max_length=100)] = []


class CreateSubscription(Request):
    """Creating the same again answers the same; the same name with another content is a conflict.

    `when_full` must be chosen: what is given up when `backlog_max` events wait.
    """

    name: SubscriptionName
    filter: SubscriptionFilter = SubscriptionFilter()
    when_full: WhenFull
    backlog_max: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    visibility_ms: Annotated[int, Field(ge=1_000, le=12 * 3_600_000)] = 30_000
    retention_ms: Annotated[int, Field(ge=60_000, le=90 * 86_400_000)] = 7 * 86_400_000


class Pull(Request):
    """Ask for events; with `wait_ms` the answer waits for the first."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    wait_ms: Annotated[int, Field(ge=0, le=20_000)] = 0
    visibility_ms: Annotated[int, Field(ge=1_000, le=12 * 3_600_000)] | None = None


class Acknowledge(Request):
    """What was dealt with, one or many; repeating it is harmless."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=1_000)]


class Subscription(Answer):
    """`backlog` counts what waits or is being read; `dropped` and `expired` what was given up."""

    id: Id
    name: str
    filter: SubscriptionFilter
    when_full: WhenFull
    backlog_max: int
    visibility_ms: int
    retention_ms: int
    backlog: Counter
    added: Counter
    acknowledged: Counter
    redelivered: Counter
    dropped: Counter
    expired: Counter
    dropped_first_at: Instant | None = None
    dropped_last_at: Instant | None = None
    pulled_at: Instant | None = None
    created_at: Instant


class SubscriptionDetail(Subscription):
    """`oldest_at` is when the oldest event that is not acknowledged was added."""

    oldest_at: Instant | None = None
    in_flight: int = 0


class DeliveredEvent(Answer):
    """An event. `result` and `error` belong to tasks and workflows that have ended."""

    id: Id
    kind: EventKind
    type: str
    aggregate_id: Id
    revision: Counter
    state_scope: str | None = None
    state: str | None = None
    workflow_id: Id | None = None
    task_id: Id | None = None
    step_key: str | None = None
    signal_id: Id | None = None
    occurred_at: Instant
    payload: dict[str, JsonValue] = {}
    result: JsonValue = None
    error: JsonValue = None


class Delivery(Answer):
    """`id` is what to acknowledge. `deliveries` is 1 the first time."""

    id: Id
    deliveries: int
    visible_at: Instant
    event: DeliveredEvent


class Pulled(Answer):
    items: list[Delivery]
    backlog: Counter
    dropped: Counter


class Acknowledged(Answer):
    """How many were waiting for it; what was acknowledged before counts no second time."""

    acknowledged: int


class EndSubscription(Managed):
    """Why, and for whom."""


class Ended(Answer):
    name: str
    ended: bool = True
