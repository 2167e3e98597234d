"""One instance on a real database and its mirror, and everything that can happen to both."""

from __future__ import annotations

import asyncio
import secrets
from random import Random
from typing import Any, Final

from orbit_sdk.engine import (
    Advance,
    Cancel,
    Command,
    Decision,
    EngineLimits,
    ExpireSignals,
    Pause,
    Refusal,
    ReportEngineError,
    Resume,
    StepState,
    TimePassed,
    Verdict,
)
from orbit_sdk.errors import InvalidArgument, OrbitError
from orbit_server.pulse.dispatch.claim import ClaimTasks, Ticket
from orbit_server.pulse.tasks.attempts import Held, RecordResult, StartAttempt
from orbit_server.pulse.tasks.decide.start import Claimant
from orbit_server.pulse.tasks.due import LeaseEnded, TaskDeadline, TaskDue
from orbit_server.pulse.tasks.lifecycle import Recovery, Said
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.weave.control.commands import Action
from orbit_server.weave.inbox.commands import ConsumeReport
from orbit_server.weave.instances.time import BlockStep, ContinueAdvance, StepDue
from orbit_server.weave.service import companion_factory
from orbit_server.weave.signals.expiry import ExpirePending
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.signals import signal_id
from tests.property.strategies import CHOICES, SIGNAL_KEYS, random_document
from tests.storage.machine import real
from tests.storage.machine.mirror import SCALE, Mirror, slowly
from tests.storage.weave.paper import NAMESPACE, Paper

SESSION, NONCE = "5" * 32, "nonce"
STATUSES: Final = ("pending", "done", "rejected", "on_hold")
SECOND: Final = 1_000_000


class WeaveMachine:
    """One instance per history; the database goes on from one history to the next."""

    def __init__(self, paper: Paper, runner: asyncio.Runner) -> None:
        self.paper, self.runner = paper, runner

    # --- the ground ---

    def run(self, job: Any) -> Any:
        return self.runner.run(job)

    def submit(self, command: Any, *, background: bool = False) -> Any:
        async def send() -> Any:
            return await self.paper.database.committer.submit(command, background=background)

        return self.run(send())

    def read(self, query: Any) -> Any:
        return self.run(self.paper.database.read(query))

    def start(self, random: Random) -> None:
        transitions = random.choice((1, 2, 64))
        choice = random.choice((*CHOICES, "other"))
        limits = EngineLimits(transitions=transitions, pending_signals=8)
        self.paper.weave = Weave(self.paper.weave.catalog, limits)
        self.paper.companion = companion_factory(self.paper.weave, self.paper.seed)
        document = self.published(random)
        given = {"choice": choice}
        self.instance = self.run(self.paper.start(given, definition_id=document["id"]))
        self.flow = Mirror(document, limits, self.instance)
        self.flow.start(given)
        self.offers: dict[str, Any] = {}
        self.consumed: set[str] = set()
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.compare()

    def published(self, random: Random) -> dict[str, Any]:
        """A random definition that may be published; the generator cares for structure alone."""
        while True:
            document = slowly(random_document(random, random.randint(4, 16), random.randint(0, 3)))
            document |= {"id": f"machine.n{secrets.token_hex(8)}"}
            try:
                self.run(self.paper.publish(document))
            except InvalidArgument:
                continue
            return document

    def refresh(self) -> None:
        """Tell the oracle how its tasks really stand."""
        places = {(t.order.activation_id, t.order.round): key for key, t in self.flow.tasks.items()}
        for row in self.read(lambda conn: real.tasks_of(conn, self.instance)):
            own = places.get((row["activation_id"], row["round"]))
            if own is None:
                continue  # the oracle has not been told yet of what ordered it
            known = self.flow.stands[own]
            at = known.stored_at if known.source_revision == row["revision"] else self.flow.now
            report = real.report_of(row, own, at)
            self.flow.stands[own] = report
            if report.phase == "SUCCEEDED":
                self.flow.tasks[own].result = report.result
            elif report.error_code is not None and row["told_error"]:
                self.flow.tasks[own].error = (report.error_code, report.error_message or "")

    def compare(self) -> None:
        self.flow.now += 1
        self.refresh()

        async def look() -> Any:
            now = await self.paper.database.now()
            return await self.paper.database.read(lambda conn: real.seen(conn, self.instance, now))

        found, wanted = self.run(look()), self.flow.seen()
        for part in wanted:
            assert found[part] == wanted[part], part

    def both(self, job: Any, command: Command) -> tuple[Any, Decision | Refusal]:
        """Let the database and the oracle decide about the same; both refuse or none."""
        answer = self.flow.decide(command)
        said = self.told(job)
        if isinstance(answer, Refusal):
            assert isinstance(said, OrbitError), (said, answer)
            assert said.code is answer.code
        else:
            assert not isinstance(said, OrbitError), (said, answer)
            self.flow.keep(answer)
        return said, answer

    def told(self, job: Any) -> Any:
        """The answer; a refusal is one."""
        try:
            return self.run(job)
        except OrbitError as error:
            return error

    async def send(self, command: Any) -> Any:
        return await self.paper.database.committer.submit(command, background=True)

    # --- tasks ---

    def pick_task(self, pick: int, *states: str) -> dict[str, Any] | None:
        found = self.read(lambda conn: real.tasks_of(conn, self.instance))
        fit = [row for row in found if row["state"] in states]
        return fit[pick % len(fit)] if fit else None

    def claim(self, pick: int, one_step: bool, verifies: bool) -> None:
        row = self.pick_task(pick, "READY", "VERIFYING")
        if row is None:
            return
        who = Claimant(SESSION, NAMESPACE, NONCE, "w", "b", Recovery.READ_ONLY, verifies, one_step=one_step)
        attempt_id = secrets.token_hex(16)
        offers = self.submit(ClaimTasks((Ticket(row["id"], attempt_id, who, 1),)))
        if attempt_id in offers:
            offer = offers[attempt_id]
            assert not self.flow.instance.paused or offer.kind.value == "VERIFY"
            held = Held(offer.task_id, offer.attempt_id, offer.generation)
            self.offers[row["id"]] = offer
            if not offer.started:
                assert self.submit(StartAttempt(NAMESPACE, SESSION, NONCE, held)).granted
        self.consumed_at_once(row["id"])
        self.compare()

    def report(self, pick: int, word: Said, alone: bool, chance: int) -> None:
        if not self.offers:
            return
        task_id = sorted(self.offers)[pick % len(self.offers)]
        offer = self.offers[task_id] if chance == 0 else self.offers.pop(task_id)
        told: dict[str, Any] = {"code": ("BROKEN", "BUSY")[chance % 2], "effect_unknown": chance % 3 == 0}
        if word in (Said.SUCCEEDED, Said.HAPPENED):
            status = {"state": STATUSES[chance % 4]} if chance < 95 else "nonsense"
            told["result"] = status if offer.handler == "status" else chance
        held = Held(offer.task_id, offer.attempt_id, offer.generation)
        companion = None if alone else self.paper.companion(self.instance, offer.task_id)
        self.submit(RecordResult(NAMESPACE, held, report_of(Told(word, **told)), self.instance, companion))
        self.consumed_at_once(task_id)
        self.compare()

    def consumed_at_once(self, task_id: str) -> None:
        """What a companion applied, the oracle applies too."""
        self.refresh()
        (row,) = [
            row for row in self.read(lambda conn: real.tasks_of(conn, self.instance)) if row["id"] == task_id
        ]
        for found in self.read(lambda conn: real.inbox_of(conn, self.instance)):
            if (found["task_id"], found["source_revision"]) != (task_id, row["revision"]):
                continue
            if found["state"] in ("APPLIED", "STALE") and found["id"] not in self.consumed:
                self.apply(task_id, found)

    def apply(self, task_id: str, found: dict[str, Any]) -> None:
        self.consumed.add(found["id"])
        decision = self.flow.apply(self.flow.stands[self.own(task_id)])
        assert decision.applied == (found["state"] == "APPLIED")

    def own(self, task_id: str) -> str:
        found = self.read(lambda conn: real.tasks_of(conn, self.instance))
        (place,) = [(row["activation_id"], row["round"]) for row in found if row["id"] == task_id]
        return next(
            key
            for key, task in self.flow.tasks.items()
            if (task.order.activation_id, task.order.round) == place
        )

    def consume(self, pick: int) -> None:
        """A loop finds an inbox row; one that was read already moves nothing."""
        found = self.read(lambda conn: real.inbox_of(conn, self.instance))
        found = [row for row in found if row["state"] == "PENDING"] or found
        if not found:
            return
        row = sorted(found, key=lambda one: one["id"])[pick % len(found)]
        order = ConsumeReport(self.instance, row["task_id"], row["id"], self.paper.seed(), self.paper.weave)
        self.refresh()
        moved = self.submit(order, background=True)
        if row["state"] == "PENDING":
            self.apply(row["task_id"], row | {"state": "APPLIED" if moved else "STALE"})
        else:
            assert not moved
        self.compare()

    def lose(self, pick: int) -> None:
        row = self.pick_task(pick, "RUNNING", "OFFERED", "CANCELLING", "VERIFYING")
        if row is not None and row["lease_until"] is not None:
            self.run(self.paper.set("UPDATE tasks SET lease_until = 1 WHERE id = :t", t=row["id"]))
            self.submit(LeaseEnded(row["id"]), background=True)
            self.compare()

    def tasks_due(self) -> None:
        """Back-offs are over; limits are looked at."""
        sql = "UPDATE tasks SET due_at = 1 WHERE instance_id = :i AND due_at IS NOT NULL"
        self.run(self.paper.set(sql, i=self.instance))
        for row in self.read(lambda conn: real.tasks_of(conn, self.instance)):
            self.submit(TaskDue(row["id"]), background=True)
            self.submit(TaskDeadline(row["id"]), background=True)
        self.compare()

    # --- signals and time ---

    def signal(self, random: Random) -> None:
        """Addressed or not, with a time of its own or not; many of them serve nobody."""
        more: dict[str, Any] = {}
        address = random.choice((None, None, None, "step", "activation"))
        if address is not None:
            step = self.flow.activations[random.choice(sorted(self.flow.activations))]
            more = {"step_key": step.step_key} if address == "step" else {"activation_id": step.id}
        name = random.choice(("approval", "receipt"))
        body = {"state": random.choice(STATUSES)} if name == "receipt" else {"ok": True}
        asked = {"signal": name, "match": random.choice(SIGNAL_KEYS), "body": body}
        self.send_signal(
            f"{random.getrandbits(32):x}", asked, more, random.choice((None, None, None, -60, 60, 600))
        )

    def send_signal(self, key: str, asked: dict[str, Any], more: dict[str, Any], expires: int | None) -> None:
        own, theirs = dict(more), dict(more)
        if expires is not None:
            own["expires_at"] = self.flow.now + expires * SCALE * SECOND
            theirs["expires_at"] = self.run(self.paper.database.now()) + expires * SCALE * SECOND
        command = self.flow.signalled(
            signal_id(self.instance, key), asked["signal"], asked["match"], asked["body"], "", **own
        )
        said, _ = self.both(self.paper.signal(self.instance, **asked, key=key, **theirs), command)
        if not isinstance(said, OrbitError):
            assert said["id"] == command.signal.id
            self.sent.append((key, asked | theirs))
        self.compare()

    def signal_again(self, pick: int, same: bool) -> None:
        """The same signal once more; or another one under its key."""
        if not self.sent:
            return
        key, asked = self.sent[pick % len(self.sent)]
        body = asked["body"] if same else {"state": "something else"}
        said = self.told(self.paper.signal(self.instance, **asked | {"body": body, "key": key}))
        if same:
            assert said["id"] == signal_id(self.instance, key)
        else:
            assert isinstance(said, OrbitError)
            assert said.code.value == "CONFLICT"
        self.compare()

    def expire_signals(self) -> None:
        order = ExpirePending(self.instance, self.paper.seed(), self.paper.weave)
        self.both(self.send(order), ExpireSignals(self.flow.seed()))
        self.compare()

    def time_passes(self, amount: int) -> None:
        seconds = amount * SCALE + 1
        self.flow.pass_time(seconds)
        self.run(real.pass_time(self.paper.database, self.instance, seconds * SECOND))
        self.compare()

    def look(self) -> None:
        """The loops look once at everything that is due."""
        for step in list(self.flow.live().values()):
            if step.due_at is None or step.due_at > self.flow.now:
                continue
            if self.flow.live().get(step.step_key) != step:
                continue
            order = StepDue(self.instance, step.id, self.paper.seed(), self.paper.weave)
            report = next(iter(self.flow.newest([step.step_key])), None) if step.task_id else None
            moved, answer = self.both(self.send(order), TimePassed(step.id, self.flow.seed(), report))
            assert isinstance(answer, Decision)
            assert moved == answer.applied
            self.compare()
        self.advance()

    def advance(self) -> None:
        if self.flow.instance.advance_due_at is None:
            return
        order = ContinueAdvance(self.instance, self.paper.seed(), self.paper.weave)
        self.both(self.send(order), Advance(self.flow.seed()))
        self.compare()

    # --- people ---

    def control(self, action: Action, stale: int) -> None:
        expected = self.flow.instance.control_version - (stale == 0)
        self.refresh()
        reports, seed = self.flow.newest(), self.flow.seed()
        command: Command
        if action is Action.PAUSE:
            command = Pause(expected, seed)
        else:
            kind = Resume if action is Action.RESUME else Cancel
            command = kind(expected, seed, reports)
        said, answer = self.both(self.paper.control(self.instance, action, expected=expected), command)
        if isinstance(answer, Decision):
            assert said["effects_kept"] == list(answer.effects_kept)
        self.compare()

    def decide(self, pick: int, verdict: Verdict, proven: bool, stale: int) -> None:
        live = self.flow.live()
        asked = [key for key, step in sorted(live.items()) if step.state is StepState.NEEDS_REVIEW]
        asked = asked or [key for key, step in sorted(live.items()) if step.state is not StepState.PENDING]
        if not asked:
            return
        key = asked[pick % len(asked)]
        result = {"state": "done"} if key.startswith("poll") else 1
        self.refresh()
        given = {"result": result, "code": "BROKEN", "message": "a person said so"}
        command = self.flow.review(key, verdict, no_effect_proven=proven, **given)
        revision = live[key].revision - (stale == 0)
        command = type(command)(
            key, revision, verdict, command.seed, no_effect_proven=proven, report=command.report, **given
        )
        job = self.paper.conclude(
            self.instance, key, revision, verdict, basis="PROVEN" if proven else "ACCEPTED_RISK", **given
        )
        self.both(job, command)
        self.compare()

    def engine_error(self, pick: int, chance: int) -> None:
        live = sorted(self.flow.live().items())
        if not live or chance:
            return
        step = live[pick % len(live)][1]
        order = BlockStep(self.instance, step.id, "it broke", self.paper.seed(), self.paper.weave)
        self.both(self.send(order), ReportEngineError(step.id, "it broke", self.flow.seed()))
        self.compare()
