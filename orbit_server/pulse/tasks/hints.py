"""What the loops of this node learn from a commit. Hints save waiting; the same work is found from rows."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id


@dataclass(frozen=True, slots=True)
class TaskReady:
    """A task may be claimed: to run or, where `verify`, to be asked about."""

    task_id: Id
    namespace_id: Id
    queue_id: Id
    queue: str
    handler: str
    handler_version: int
    verify: bool = False


@dataclass(frozen=True, slots=True)
class TasksDueAt:
    """Tasks will be due at this instant (UTC microseconds)."""

    at: int


@dataclass(frozen=True, slots=True)
class InboxWritten:
    """A workflow has a change of one of its tasks to see."""

    inbox_id: Id
    instance_id: Id
    task_id: Id


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt was closed with this outcome; `retried`: its task waits for another one."""

    outcome: str
    retried: bool


@dataclass(frozen=True, slots=True)
class CancelWanted:
    """The worker of this running attempt should be asked to stop."""

    session_id: Id
    attempt_id: Id


@dataclass(frozen=True, slots=True)
class OfferWithdrawn:
    """This offer was closed before its worker began it: the worker need not ask any more."""

    session_id: Id
    attempt_id: Id


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """A queue was paused or resumed."""

    queue_id: Id


@dataclass(frozen=True, slots=True)
class LimitsChanged:
    """A limit was set, changed or lifted, or a build blocked or freed."""

    namespace_id: Id
