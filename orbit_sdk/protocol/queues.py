"""Wire models of queues: their figures, pause, limits, key classes and weights."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from orbit_sdk.protocol.common import Answer, BusinessKey, Counter, Instant, Managed, Request

Most = Annotated[int, Field(ge=0, le=1_000_000)]
ClassName = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=128, pattern=r"^[^\x00-\x20\x7f-\x9f:]([^\x00-\x1f\x7f-\x9f:]*)$"
    ),
]


class Rate(Request):
    """`count` starts per `per_ms`, at most `burst` of them at once (default: one second's worth, at least 1).

    In no window of `per_ms` there are more than `count + burst`.
    """

    count: Annotated[int, Field(ge=1, le=1_000_000)]
    per_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 1_000
    burst: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class SetLimits(Managed):
    """All limits of a queue or of the namespace, as they are to be; what is null does not limit."""

    running_max: Most | None = None
    backlog_max: Most | None = None
    rate: Rate | None = None
    expected_revision: Counter | None = None


class SetKeyClass(Managed):
    """How many tasks of each concurrency key of a class (the part before the first colon; `default` without
    one) may be under way at once.
    """

    name: ClassName
    running_max: Annotated[int, Field(ge=1, le=1_000)]
    expected_revision: Counter | None = None


class SetWeight(Managed):
    """The share of a fairness key: a key of weight 2 gets twice as many turns as one of weight 1."""

    fairness_key: BusinessKey
    weight: Annotated[int, Field(ge=1, le=1_000)]


class ControlQueue(Managed):
    """Pause or resume. `expected_revision` is checked where it is given (0: nothing was said before)."""

    expected_revision: Counter | None = None


class RateState(Answer):
    count: int
    per_ms: int
    burst: int
    tokens: float


class Limits(Answer):
    """Limits and what of them is in use. `running` and `backlog` count what came since the limit was set."""

    running_max: int | None = None
    running: int = 0
    backlog_max: int | None = None
    backlog: int = 0
    rate: RateState | None = None
    revision: Counter


class KeyClass(Answer):
    name: str
    running_max: int
    revision: Counter


class Pause(Answer):
    """Who paused it, when and why."""

    at: Instant
    actor: str
    reason: str | None = None


class Queue(Answer):
    """A queue. `states` counts unsettled tasks; `oldest_ready_at`: since when the first in line is ready."""

    name: str
    paused: bool
    revision: Counter
    states: dict[str, int]
    waiting_for_key: int = 0
    oldest_ready_at: Instant | None = None
    limits: Limits | None = None


class QueueDetail(Queue):
    pause: Pause | None = None
    key_classes: list[KeyClass] = []
    workers: int
    """Connected workers that take from it."""


class QueueState(Answer):
    """What a change has left."""

    name: str
    paused: bool
    revision: Counter


class Revision(Answer):
    revision: Counter
