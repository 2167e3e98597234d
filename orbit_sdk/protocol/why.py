"""Wire models of `why`: what a task waits for, and what will happen by itself."""

from __future__ import annotations

from orbit_sdk.protocol.common import Answer, Id, Instant


class Condition(Answer):
    """One thing that is not so yet. `code` is stable; `message` says it with names; `since` and `until` where
    they are known; `tasks` are those that stand in the way.
    """

    code: str
    message: str
    since: Instant | None = None
    until: Instant | None = None
    tasks: list[Id] = []


class NextStep(Answer):
    """What happens without anybody doing anything, and when at the latest."""

    message: str
    at: Instant | None = None


class Why(Answer):
    """`moves`: nothing stands in its way, it only takes its turn or is being worked on."""

    task_id: Id
    state: str
    moves: bool
    conditions: list[Condition]
    next: NextStep | None = None
