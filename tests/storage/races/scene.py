"""One small situation over a real database, and the two nodes that are about to want different things of it.

Nothing here waits for a dispatcher or a loop: tasks are claimed, started, reported and swept by the very
commands that gateway and loops would send, one at a time, so that a race is between two transactions and
nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, text

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.claim import ClaimTasks, Ticket
from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.tasks.attempts import Held, MarkEffect, RecordResult, RenewLeases, StartAttempt
from orbit_server.pulse.tasks.decide.start import Claimant
from orbit_server.pulse.tasks.due import LeaseEnded, TaskDeadline, TaskDue
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.reconnect import BindAttempts, ReturnOffers
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.weave.control.commands import Action
from orbit_server.weave.inbox.commands import ConsumeReport
from orbit_server.weave.instances.time import ContinueAdvance, StepDue
from orbit_server.weave.signals.expiry import ExpirePending
from tests.storage.weave.paper import NAMESPACE, Paper

SESSION, NONCE = "5" * 32, "nonce"

Command = Callable[["Case", Paper], Awaitable[str]]
"""Something wanted of one node; gives the answer as a word, and the code of a refusal."""


@dataclass
class Case:
    """One repetition. `document`'s id is the race's own, so that nobody meets the rows of another race."""

    one: Paper
    other: Paper
    document: dict[str, Any]
    instance: Id = ""
    task: Id = ""
    offers: dict[str, Offer] = field(default_factory=dict)
    earlier: dict[str, Offer | None] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    number: str = field(default_factory=lambda: secrets.token_hex(8))

    async def start(self, given: Any = None, **more: Any) -> Id:
        self.instance = await self.one.start(given, definition_id=self.document["id"], **more)
        return self.instance

    async def task_of(self, step: str) -> Id:
        """The newest task of a step; the standalone task for the step "task"."""
        if step == "task":
            return self.task
        found = await self.one.rows(
            "SELECT id FROM tasks WHERE instance_id = :i AND step_key = :s ORDER BY id DESC",
            i=self.instance,
            s=step,
        )
        return str(found[0][0])

    async def set_step(self, step: str, sql: str, **values: Any) -> None:
        """Move a step's instants as time would."""
        values |= {"i": self.instance, "s": step}
        await self.one.set(f"UPDATE steps SET {sql} WHERE instance_id = :i AND step_key = :s", **values)

    async def set_task(self, step: str, sql: str, **values: Any) -> None:
        """Move a task's instants as time would."""
        await self.one.set(f"UPDATE tasks SET {sql} WHERE id = :t", t=await self.task_of(step), **values)

    async def due(self, step: str) -> None:
        """The step's time has come; what is accepted from now on would still be on time."""
        await self.set_step(step, "due_at = 1")

    async def lease_over(self, step: str = "work") -> None:
        """The lease of the step's attempt ended long ago, and nobody has looked."""
        await self.set_task(step, "lease_until = 1")

    async def lease_ended_just_now(self, step: str = "work") -> None:
        """The lease has ended, by less than clocks may differ."""
        await self.set_task(step, "lease_until = :at", at=await self.one.database.now() - 1)

    def held(self, step: str, *, earlier: bool = False) -> Held:
        offer = self.earlier[step] if earlier else self.offers[step]
        assert offer is not None
        return Held(offer.task_id, offer.attempt_id, offer.generation)

    async def how(self) -> str:
        """Everything that can be seen, in one line: state, steps with their tasks, signals."""
        return await self.one.database.read(self._task if self.task else self._workflow)

    def _workflow(self, conn: Connection) -> str:
        head = _all(conn, "SELECT state, paused FROM instances WHERE id = :i", i=self.instance)[0]
        sql = (
            "SELECT s.step_key, s.activation_no, s.state, t.state FROM steps s LEFT JOIN tasks t"
            " ON t.instance_id = s.instance_id AND t.step_key = s.step_key"
            " WHERE s.instance_id = :i ORDER BY s.opened_at, s.step_key, s.activation_no, t.id"
        )
        steps: dict[str, tuple[str, list[str]]] = {}
        for key, number, state, task in _all(conn, sql, i=self.instance):
            if self.document["nodes"][key]["kind"] in ("END", "PARALLEL", "BRANCH"):
                continue
            name = f"{key}={state}" if number == 1 else f"{key}#{number}={state}"
            known = steps.get(key)
            tasks = known[1] if known is not None and known[0] == name else []
            steps[key] = (name, [*tasks, task] if task else tasks)
        words = [head[0], *(["paused"] if head[1] else [])]
        words += [name + (f"({'+'.join(tasks)})" if tasks else "") for name, tasks in steps.values()]
        sent = "SELECT state FROM signals WHERE instance_id = :i ORDER BY state"
        signals = [row[0] for row in _all(conn, sent, i=self.instance)]
        return " ".join(words + ([f"signals={'+'.join(signals)}"] if signals else []))

    def _task(self, conn: Connection) -> str:
        found = _all(conn, "SELECT state FROM tasks WHERE id = :t", t=self.task)
        kept = _all(conn, "SELECT kind FROM evidence WHERE task_id = :t ORDER BY kind", t=self.task)
        return "+".join(str(row[0]) for row in [*found, *kept])


def _all(conn: Connection, sql: str, **values: Any) -> list[Any]:
    return list(conn.execute(text(sql), values))


async def answer_of(work: Awaitable[str]) -> str:
    """The word, or the code of the refusal: a refusal is an answer."""
    try:
        return await work
    except OrbitError as error:
        return error.code.value


# --- tasks and attempts ------------------------------------------------------------------------------------


def claim(step: str = "work", *, one_step: bool = False, verifies: bool = False) -> Command:
    """A worker that may repeat everything: what counts is what the definition says."""

    async def run(case: Case, node: Paper) -> str:
        attempt_id = secrets.token_hex(16)
        who = Claimant(SESSION, NAMESPACE, NONCE, "w", "b", Recovery.READ_ONLY, verifies, one_step=one_step)
        ticket = Ticket(await case.task_of(step), attempt_id, who, 1)
        offers = await node.database.committer.submit(ClaimTasks((ticket,)))
        if attempt_id not in offers:
            return "nothing"
        case.earlier[step], case.offers[step] = case.offers.get(step), offers[attempt_id]
        return "claimed"

    return run


def begin(step: str = "work", nonce: str = NONCE) -> Command:
    async def run(case: Case, node: Paper) -> str:
        order = StartAttempt(NAMESPACE, SESSION, nonce, case.held(step))
        answer = await node.database.committer.submit(order)
        return "granted" if answer.granted else answer.reason

    return run


def report(
    step: str = "work",
    said: Said = Said.SUCCEEDED,
    *,
    alone: bool = False,
    earlier: bool = False,
    **told: Any,
) -> Command:
    """`alone`: without its workflow taking notice in the same transaction. `earlier`: of the attempt before
    the last one.
    """

    async def run(case: Case, node: Paper) -> str:
        offer, companion = case.offers[step], None
        if offer.workflow_id is not None and not alone:
            companion = node.companion(offer.workflow_id, offer.task_id)
        told_all = {"result": 1, **told} if said in (Said.SUCCEEDED, Said.HAPPENED) else told
        order = RecordResult(
            NAMESPACE,
            case.held(step, earlier=earlier),
            report_of(Told(said, **told_all)),
            offer.workflow_id or offer.task_id,
            companion,
        )
        return str((await node.database.committer.submit(order)).settled.value)

    return run


def mark(step: str = "work") -> Command:
    async def run(case: Case, node: Paper) -> str:
        return str(
            await node.database.committer.submit(MarkEffect(NAMESPACE, SESSION, NONCE, case.held(step)))
        )

    return run


def renew(step: str = "work") -> Command:
    async def run(case: Case, node: Paper) -> str:
        held = case.held(step)
        found = await node.database.committer.submit(RenewLeases(NAMESPACE, SESSION, (held,)))
        return "lost" if found[held.attempt_id] is None else "renewed"

    return run


def give_back(step: str = "work") -> Command:
    """The session closes: its offer returns."""

    async def run(case: Case, node: Paper) -> str:
        order = ReturnOffers(NAMESPACE, SESSION, (case.held(step),))
        return f"returned {await node.database.committer.submit(order)}"

    return run


def _swept(order: Callable[[Id], Any]) -> Callable[[str], Command]:
    def of(step: str = "work") -> Command:
        async def run(case: Case, node: Paper) -> str:
            moved = await node.database.committer.submit(order(await case.task_of(step)), background=True)
            return "moved" if moved else "nothing"

        return run

    return of


def reconnect(step: str = "work") -> Command:
    """The worker is back on another session and lists what it holds."""

    async def run(case: Case, node: Paper) -> str:
        order = BindAttempts(NAMESPACE, "6" * 32, NONCE, (case.held(step),))
        return (await node.database.committer.submit(order))[case.held(step).attempt_id].answer

    return run


lease_end = _swept(LeaseEnded)
task_deadline = _swept(TaskDeadline)
task_due = _swept(TaskDue)


# --- workflows ---------------------------------------------------------------------------------------------


def signal(key: str | None = None, body: Any = "yes", *, name: str = "approval", **more: Any) -> Command:
    """`key`: the same for two commands that are one signal."""

    async def run(case: Case, node: Paper) -> str:
        own = None if key is None else f"{case.number}-{key}"
        return str((await node.signal(case.instance, name, body=body, key=own, **more))["state"])

    return run


async def answer_wait(case: Case, node: Paper) -> str:
    """A person answers the open wait, not whatever may come later."""
    row = (await node.steps(case.instance))["ask"]
    return str((await node.signal(case.instance, body="yes", activation_id=row.id, open_only=True))["state"])


def control(action: Action, expected: int | None = None, key: str | None = None) -> Command:
    async def run(case: Case, node: Paper) -> str:
        own = None if key is None else f"{case.number}-{key}"
        shown = await node.control(case.instance, action, expected=expected, key=own)
        return f"version {shown['workflow']['control_version']}"

    return run


pause = control(Action.PAUSE)
resume = control(Action.RESUME)
cancel = control(Action.CANCEL)


def due(step: str) -> Command:
    """A loop sees that the step's time has come."""

    async def run(case: Case, node: Paper) -> str:
        row = (await node.steps(case.instance))[step]
        order = StepDue(case.instance, row.id, node.seed(), node.weave)
        return "moved" if await node.database.committer.submit(order, background=True) else "nothing"

    return run


async def go_on(case: Case, node: Paper) -> str:
    """A loop continues a stored checkpoint."""
    order = ContinueAdvance(case.instance, node.seed(), node.weave)
    return "moved" if await node.database.committer.submit(order, background=True) else "nothing"


async def expire_signals(case: Case, node: Paper) -> str:
    order = ExpirePending(case.instance, node.seed(), node.weave)
    return "moved" if await node.database.committer.submit(order, background=True) else "nothing"


def consume(step: str = "work") -> Command:
    """A loop reads the inbox row of a stored result."""

    async def run(case: Case, node: Paper) -> str:
        task_id = await case.task_of(step)
        (found,) = await node.rows("SELECT id FROM inbox WHERE task_id = :t", t=task_id)
        order = ConsumeReport(case.instance, task_id, found[0], node.seed(), node.weave)
        return "applied" if await node.database.committer.submit(order, background=True) else "nothing"

    return run


def conclude(step: str, verdict: str, **more: Any) -> Command:
    async def run(case: Case, node: Paper) -> str:
        shown = await node.conclude(case.instance, step, case.notes["revision"], verdict, **more)
        return str(shown["state"])

    return run
