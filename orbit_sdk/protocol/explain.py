"""Wire models of `why`: what a workflow waits for, what will happen by itself, and what somebody can do."""

from __future__ import annotations

from orbit_sdk.protocol.common import Answer, Counter, Id, Instant
from orbit_sdk.protocol.workflows import WorkflowState


class WorkflowReason(Answer):
    """One thing that a workflow waits for. `code` is stable; `message` says it with names; `then` says what
    happens without anybody doing anything, at `until` at the latest; `command` is what would move it.
    """

    code: str
    message: str
    step_key: str | None = None
    task_id: Id | None = None
    wait_id: Id | None = None
    since: Instant | None = None
    until: Instant | None = None
    then: str | None = None
    command: str | None = None


class WorkflowWhy(Answer):
    """`moves`: something is being worked on or takes its turn; otherwise it needs what the reasons name."""

    workflow_id: Id
    state: WorkflowState
    moves: bool
    reasons: list[WorkflowReason]


class StuckGroup(Answer):
    """So many steps are in review at one step of one definition version for one reason."""

    definition_id: str
    definition_version: int
    step_key: str
    review_class: str
    reason: str | None = None
    count: Counter
    since: Instant


class Stuck(Answer):
    """The largest groups first; `more`: there are groups that are not shown."""

    items: list[StuckGroup]
    more: bool = False


class StuckTaskGroup(Answer):
    """So many tasks of one handler version on one queue do not move. `reason`: the error code of those in
    review; UNCLAIMED (nobody takes them) or KEY_FULL (their concurrency key has no room) of those READY.
    """

    queue: str
    handler: str
    handler_version: int
    state: str
    review_class: str | None = None
    reason: str | None = None
    count: Counter
    since: Instant


class StuckTasks(Answer):
    """The largest groups first; `more`: there are groups that are not shown."""

    items: list[StuckTaskGroup]
    more: bool = False
