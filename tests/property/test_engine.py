"""The engine under random definitions and random orders of events."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orbit_sdk.engine import (
    TERMINAL_INSTANCE_STATES,
    Advance,
    ApplyReport,
    Decision,
    EngineLimits,
    ExpireSignals,
    InstanceState,
    Refusal,
    ReportEngineError,
    ReviewClass,
    StepState,
    TaskPhase,
    TaskReport,
    TimePassed,
    Verdict,
)
from tests.property.strategies import CHOICES, SIGNAL_KEYS, documents, randoms
from tests.workflows import PlayedTask, Workflow

STATUSES = ("pending", "done", "rejected", "on_hold")


class Chaos:
    """Lets everything happen to one workflow, in an order that `random` chooses."""

    def __init__(self, flow: Workflow, random: Random) -> None:
        self.flow = flow
        self.random = random
        self.stored: list[TaskReport] = []

    def run(self, steps: int) -> None:
        actions = [
            *[self.settle] * 6,
            *[self.deliver] * 6,
            *[self.signal] * 4,
            *[self.time] * 3,
            *[self.decide] * 3,
            self.pause,
            self.pause,
            self.cancel,
            self.advance,
            self.engine_error,
            self.expire,
        ]
        for _ in range(steps):
            self.random.choice(actions)()

    def open_tasks(self) -> list[PlayedTask]:
        return [t for t in self.flow.tasks.values() if t.phase in (TaskPhase.OPEN, TaskPhase.NEEDS_REVIEW)]

    def settle(self) -> None:
        tasks = self.open_tasks()
        if not tasks:
            return
        task = self.random.choice(tasks)
        phases = [TaskPhase.SUCCEEDED] * 4 + [TaskPhase.FAILED, TaskPhase.EXPIRED, TaskPhase.NEEDS_REVIEW]
        if task.cancel or self.random.random() < 0.05:
            phases += [TaskPhase.CANCELLED] * 6
        self.store(task, self.random.choice(phases))

    def store(self, task: PlayedTask, phase: TaskPhase) -> None:
        facts: dict[str, Any] = {}
        if phase is TaskPhase.SUCCEEDED:
            facts["result"] = self.result(task)
        elif phase in (TaskPhase.FAILED, TaskPhase.EXPIRED):
            facts["code"] = self.random.choice(("BROKEN", "ATTEMPTS_EXHAUSTED"))
        elif phase is TaskPhase.NEEDS_REVIEW:
            facts["review_class"] = self.random.choice((ReviewClass.UNKNOWN, ReviewClass.UNMAPPED))
            facts["effect_possible"] = True
        self.stored.append(self.flow.write(task, phase, **facts))

    def result(self, task: PlayedTask) -> Any:
        if task.order.handler == "status":
            return {"state": self.random.choice(STATUSES)} if self.random.random() < 0.95 else "nonsense"
        return self.random.randint(0, 9)

    def deliver(self) -> None:
        """Any stored report: new, repeated or long stale, in any order."""
        if self.stored:
            self.flow.apply(self.random.choice(self.stored[-6:]))

    def signal(self) -> None:
        name = self.random.choice(("approval", "receipt"))
        body = {"state": self.random.choice(STATUSES)} if name == "receipt" else {"ok": True}
        more: dict[str, Any] = {}
        if self.random.random() < 0.2 and self.flow.steps:
            step = self.flow.steps[self.random.choice(sorted(self.flow.steps))]
            more = self.random.choice(({"step_key": step.step_key}, {"activation_id": step.id}))
        if self.random.random() < 0.2:
            more["expires_at"] = self.flow.now + self.random.choice((-1, 0, 1, 60_000_000))
        answer = self.flow.decide(
            self.flow.signal_command(name, self.random.choice(SIGNAL_KEYS), body, **more)
        )
        self.keep(answer)

    def keep(self, answer: Decision | Refusal) -> None:
        if isinstance(answer, Decision):
            self.flow.keep(answer)

    def time(self) -> None:
        self.flow.pass_time(self.random.choice((0, 0.000001, 1, 30, 60, 600)))
        live = sorted(self.flow.live().items())
        if live and self.random.random() < 0.5:
            _, step = self.random.choice(live)
            self.flow.do(
                TimePassed(step.id, self.flow.seed(), next(iter(self.flow.newest([step.step_key])), None))
            )
        else:
            self.flow.scan()

    def decide(self) -> None:
        asked = [
            key for key, step in sorted(self.flow.live().items()) if step.state is StepState.NEEDS_REVIEW
        ]
        if not asked:
            return
        key = self.random.choice(asked)
        verdict = self.random.choice(list(Verdict))
        self.keep(self.flow.decide(self.decision(key, verdict, proven=self.random.random() < 0.3)))

    def decision(self, key: str, verdict: Verdict, *, proven: bool = False) -> Any:
        """A decision as a person would write it: with a result or a code that fits the step."""
        poll = key.startswith("poll")
        state = "done" if verdict is Verdict.SUCCEEDED else "rejected"
        return self.flow.review(
            key, verdict, result={"state": state} if poll else 1, code="BROKEN", no_effect_proven=proven
        )

    def pause(self) -> None:
        if self.flow.instance.state in TERMINAL_INSTANCE_STATES:
            return
        if self.flow.instance.paused:
            self.flow.resume()
        else:
            self.flow.pause()

    def cancel(self) -> None:
        head = self.flow.instance
        if (
            head.state not in TERMINAL_INSTANCE_STATES
            and not head.cancel_requested
            and self.random.random() < 0.2
        ):
            self.flow.cancel()

    def expire(self) -> None:
        self.flow.do(ExpireSignals(self.flow.seed()))

    def advance(self) -> None:
        self.flow.do(Advance(self.flow.seed()))

    def engine_error(self) -> None:
        live = sorted(self.flow.live().items())
        if live and self.random.random() < 0.2:
            self.flow.do(ReportEngineError(self.random.choice(live)[1].id, "it broke", self.flow.seed()))

    def bring_to_an_end(self) -> None:
        """Everything that can still happen does: whatever the workflow waits for, comes."""
        flow = self.flow
        for _ in range(400):
            if flow.instance.state in TERMINAL_INSTANCE_STATES:
                return
            if flow.instance.paused:
                flow.resume()
                continue
            for task in self.open_tasks():
                if task.phase is TaskPhase.OPEN:
                    phase = TaskPhase.CANCELLED if task.cancel or task.detached else TaskPhase.SUCCEEDED
                    result = {"state": "done"} if task.order.handler == "status" else 1
                    flow.write(task, phase, result=result)
            for task in list(flow.tasks.values()):
                for report in task.unread:
                    flow.apply(report)
                task.unread.clear()
            for key, step in list(flow.live().items()):
                if step.state is StepState.NEEDS_REVIEW and flow.live().get(key) == step:
                    answer = flow.decide(self.decision(key, Verdict.SUCCEEDED))
                    self.keep(answer)
                    if isinstance(answer, Refusal):
                        flow.do(self.decision(key, Verdict.FAILED))
            flow.wait(60)
        raise AssertionError(f"never ends: {flow.instance} {flow.live()}")


def start(document: dict[str, Any], choice: str, transitions: int) -> Workflow:
    flow = Workflow(document, EngineLimits(transitions=transitions, pending_signals=8))
    flow.start({"choice": choice})
    return flow


@settings(max_examples=400)
@given(documents(), st.sampled_from((*CHOICES, "other")), st.sampled_from((1, 2, 3, 64)), randoms())
def test_whatever_happens_the_rules_hold_and_the_workflow_can_end(
    document: dict[str, Any], choice: str, transitions: int, random: Random
) -> None:
    flow = start(document, choice, transitions)
    chaos = Chaos(flow, random)
    chaos.run(random.randint(0, 60))
    flow.check()
    chaos.bring_to_an_end()
    flow.check()
    finished = flow.history[-1].instance
    for report in chaos.stored[-5:]:
        assert not flow.apply(report).applied
    chaos.signal()
    assert flow.instance == finished
    flow.check()


@settings(max_examples=60)
@given(documents(), st.sampled_from(CHOICES), st.sampled_from((1, 2, 64)))
def test_when_everything_goes_well_the_workflow_succeeds(
    document: dict[str, Any], choice: str, transitions: int
) -> None:
    flow = start(document, choice, transitions)
    for _ in range(400):
        if flow.instance.state in TERMINAL_INSTANCE_STATES:
            break
        for key, step in list(flow.live().items()):
            if flow.live().get(key) != step:
                continue
            if step.state is StepState.WAITING_TASK:
                flow.succeed(key, {"state": "done"} if key.startswith("poll") else 1)
            elif step.state is StepState.WAITING_SIGNAL:
                flow.signal("approval", flow.plan.nodes[key].match.const, {}, step_key=key)  # type: ignore[union-attr]
        flow.scan()
        waits = {step.state for step in flow.live().values()} - {StepState.PENDING}
        flow.wait(60 if waits == {StepState.WAITING_TIME} else 0)
    flow.check()
    assert flow.instance.state is InstanceState.SUCCEEDED
    assert flow.reloads == 0


@settings(max_examples=60)
@given(documents(), st.sampled_from(CHOICES), randoms())
def test_a_small_budget_leads_to_the_same_steps_as_a_large_one(
    document: dict[str, Any], choice: str, random: Random
) -> None:
    """Cut into checkpoints or not, the same steps are opened and the same facts come out."""
    seen = []
    for transitions in (1, 64):
        flow = start(document, choice, transitions)
        flow.scan()
        seen.append({key: step.state for key, step in flow.steps.items()})
    assert seen[0] == seen[1]


@settings(max_examples=60)
@given(documents(), randoms())
def test_a_repeated_report_moves_nothing_twice(document: dict[str, Any], random: Random) -> None:
    flow = start(document, "x", 64)
    for _ in range(30):
        waiting = [key for key, step in sorted(flow.live().items()) if step.state is StepState.WAITING_TASK]
        if not waiting:
            break
        key = random.choice(waiting)
        flow.succeed(key, {"state": "done"} if key.startswith("poll") else 1)
        before = flow.instance
        again = flow.do(ApplyReport(flow.tasks[flow.steps[key].task_id or ""].unread[-1], flow.seed()))
        assert not again.applied
        assert flow.instance == before
    flow.check()


@settings(max_examples=40)
@given(documents(), randoms())
def test_a_report_older_than_the_newest_moves_nothing(document: dict[str, Any], random: Random) -> None:
    """A task went to review and came back; word of the review arrives once more, later."""
    flow = start(document, "x", 64)
    for _ in range(30):
        waiting = [key for key, step in sorted(flow.live().items()) if step.state is StepState.WAITING_TASK]
        if not waiting:
            break
        key = random.choice(waiting)
        flow.report(key, TaskPhase.NEEDS_REVIEW, attempts=0)
        older = flow.task(key).unread[-1]
        flow.report(key, TaskPhase.OPEN, attempts=0)
        before = (flow.instance, flow.step(key))
        assert not flow.do(ApplyReport(older, flow.seed())).applied
        assert (flow.instance, flow.step(key)) == before
        flow.succeed(key, {"state": "done"} if key.startswith("poll") else 1)
    flow.check()


@settings(max_examples=40)
@given(documents(), randoms())
def test_a_task_in_review_leads_nowhere_until_somebody_decides(
    document: dict[str, Any], random: Random
) -> None:
    """Whatever the failure policy says: only what has definitely failed goes down a failure exit."""
    flow = start(document, "x", 64)
    for _ in range(10):
        waiting = [key for key, step in sorted(flow.live().items()) if step.state is StepState.WAITING_TASK]
        if not waiting:
            break
        key = random.choice(waiting)
        others = {name for name in flow.steps if name != key}
        flow.report(key, TaskPhase.NEEDS_REVIEW, code="BROKEN", effect_possible=True)
        assert flow.step(key).state is StepState.NEEDS_REVIEW
        assert flow.step(key).exit_taken is None
        assert {name for name in flow.steps if name != key} == others
        flow.conclude(key, {"state": "done"} if key.startswith("poll") else 1)
    flow.check()
