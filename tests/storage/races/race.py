"""A row of the matrix: two commands that want different things, and what each order of them must come to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from orbit_server.weave.inbox.commands import ConsumeReport
from orbit_server.weave.service import send
from tests.storage.races.scene import Case, Command, answer_of

Outcome = tuple[str, str, str]
"""What the first command answered, what the second one did, and everything that can be seen afterwards."""


async def nothing(_case: Case) -> None:
    """There is nothing to prepare."""


async def settle(case: Case) -> None:
    """Let the workflow see everything that is stored about its tasks, as the loops would."""
    sql = "SELECT id, task_id FROM inbox WHERE instance_id = :i AND state = 'PENDING'"
    for inbox_id, task_id in await case.one.rows(sql, i=case.instance) if case.instance else []:
        order = ConsumeReport(case.instance, task_id, inbox_id, case.one.seed(), case.one.weave)
        await send(case.one.database, case.one.weave, order, background=True)


@dataclass(frozen=True)
class Race:
    """`prepare` makes the situation, `after` what still has to happen before the end can be seen.

    `one_first` and `other_first` are the outcomes of the two orders, each told as (answer of `one`, answer of
    `other`, end). When both happen at once the outcome must be one of these two. `other_first` left out: the
    commands are alike, so the answers change places.
    """

    name: str
    document: dict[str, Any]
    prepare: Callable[[Case], Awaitable[None]]
    one: Command
    other: Command
    one_first: Outcome
    other_first: Outcome | None = None
    after: Callable[[Case], Awaitable[None]] = nothing
    end: Callable[[Case], Awaitable[str]] = Case.how

    @property
    def outcomes(self) -> tuple[Outcome, Outcome]:
        first, second, end = self.one_first
        return self.one_first, self.other_first or (second, first, end)


def steps(*commands: Command) -> Callable[[Case], Awaitable[None]]:
    """Start the workflow, then do these, one after the other, on the first node."""

    async def prepare(case: Case) -> None:
        await case.start({})
        await doing(*commands)(case)

    return prepare


def doing(*commands: Command) -> Callable[[Case], Awaitable[None]]:
    """Do these, one after the other, on the first node; refusals are kept to themselves."""

    async def run(case: Case) -> None:
        for command in commands:
            await answer_of(command(case, case.one))

    return run


def prepared(change: Callable[[Case], Awaitable[object]]) -> Command:
    """A change by the test itself, among commands."""

    async def run(case: Case, _node: Any) -> str:
        await change(case)
        return ""

    return run


def in_review(step: str) -> Command:
    """Remember the revision that a person sees."""

    async def see(case: Case) -> None:
        case.notes["revision"] = (await case.one.steps(case.instance))[step].revision

    return prepared(see)
