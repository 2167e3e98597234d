"""A workflow in memory for tests: the production engine, a plain store, and tasks that the test plays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from orbit_sdk.definition.evaluate import MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.definition.models import load_definition
from orbit_sdk.engine import (
    AcceptSignal,
    Advance,
    ApplyReport,
    Cancel,
    CancelTask,
    Command,
    CreateTask,
    DecideReview,
    Decision,
    DetachTask,
    Effect,
    EngineLimits,
    GateTasks,
    Instance,
    Missing,
    Pause,
    Refusal,
    Resume,
    SettleTask,
    Signal,
    SignalBody,
    SignalState,
    StartInstance,
    State,
    Step,
    StepState,
    TaskPhase,
    TaskReport,
    TimePassed,
    Verdict,
    compile_plan,
    decide,
    match_key,
    needed_facts,
    parse_ref,
)
from orbit_sdk.engine.invariants import violations
from orbit_sdk.values.ids import IdSeed, derive_id

SECOND = 1_000_000
START = 1_800_000_000 * SECOND


@dataclass
class PlayedTask:
    order: CreateTask
    phase: TaskPhase = TaskPhase.OPEN
    revision: int = 1
    result: Any = None
    error: tuple[str, str] | None = None
    attempts: int = 0
    cancel: bool = False
    detached: bool = False
    gated: bool = False
    unread: list[TaskReport] = field(default_factory=list)


class Loaded:
    """Facts as a caller has them: only what was loaded is there."""

    def __init__(self, values: dict[FactKey, Any]) -> None:
        self.values = values

    def get(self, key: FactKey, /) -> Any:
        if key not in self.values:
            raise MissingFact(key)
        return self.values[key]


class Workflow:
    """One instance. Every decision is made twice and must be the same; `check()` holds every rule."""

    def __init__(self, document: dict[str, Any], limits: EngineLimits | None = None) -> None:
        self.plan = compile_plan(load_definition(document))
        self.limits = limits or EngineLimits()
        self.now = START
        self.id = derive_id("instance")
        self.input: Any = None
        self.head: Instance | None = None
        self.steps: dict[str, Step] = {}
        self.activations: dict[str, Step] = {}
        self.signals: dict[str, Signal] = {}
        self.bodies: dict[str, SignalBody] = {}
        self.payloads: dict[str, Any] = {}
        self.tasks: dict[str, PlayedTask] = {}
        self.history: list[Decision] = []
        self.output: Any = None
        self.error: tuple[str, str] | None = None
        self.seeds = 0
        self.reloads = 0

    # What there is

    @property
    def instance(self) -> Instance:
        assert self.head is not None
        return self.head

    @property
    def status(self) -> str:
        return self.instance.state.value

    def step(self, key: str) -> Step:
        return self.steps[key]

    def state_of(self, key: str) -> str | None:
        return self.steps[key].state.value if key in self.steps else None

    def live(self) -> dict[str, Step]:
        return {key: step for key, step in self.steps.items() if step.live}

    def task(self, key: str) -> PlayedTask:
        task_id = self.steps[key].task_id
        assert task_id is not None
        return self.tasks[task_id]

    def pending(self) -> list[Signal]:
        found = [signal for signal in self.signals.values() if signal.state is SignalState.PENDING]
        return sorted(found, key=lambda signal: signal.accepted_at)

    def events(self, kind: str | None = None) -> list[Any]:
        found = [event for decision in self.history for event in decision.events]
        return [event for event in found if kind is None or event.type == kind]

    def last(self) -> Decision:
        return self.history[-1]

    def effects(self, kind: type) -> list[Any]:
        return [effect for d in self.history for effect in d.effects if isinstance(effect, kind)]

    # Decisions

    def seed(self) -> IdSeed:
        self.seeds += 1
        return IdSeed(self.now, f"seed{self.seeds}")

    def decide(self, command: Command) -> Decision | Refusal:
        state = self.snapshot()
        keys = set(needed_facts(self.plan, state, command))
        signals: set[str] = set()
        for _ in range(20):
            facts = Loaded({key: value for key in keys for value in self._fact(key)})
            if state is not None:
                state = replace(state, bodies={sid: self.bodies[sid] for sid in signals})
            answer = decide(self.plan, state, command, self.now, facts, self.limits)
            assert answer == decide(self.plan, state, command, self.now, facts, self.limits)
            if not isinstance(answer, Missing):
                return answer
            self.reloads += bool(answer.facts)
            assert not (answer.facts <= keys and answer.signals <= signals), f"asks again for {answer}"
            keys |= answer.facts
            signals |= answer.signals
        raise AssertionError("the engine keeps asking for more")

    def do(self, command: Command) -> Decision:
        answer = self.decide(command)
        assert isinstance(answer, Decision), answer
        self.keep(answer)
        return answer

    def refuse(self, command: Command) -> Refusal:
        answer = self.decide(command)
        assert isinstance(answer, Refusal), answer
        return answer

    def snapshot(self) -> State | None:
        if self.head is None:
            return None
        closed = {key: step for key, step in self.steps.items() if not step.live}
        return State(self.head, self.live(), tuple(self.pending()), closed)

    def _fact(self, key: FactKey) -> list[Any]:
        if key.source == "input":
            return [self.input]
        if key.source == "instance":
            return [{"workflow_id": self.id, "business_key": None}]
        step = self.steps.get(key.step)
        ref = None if step is None else step.failure_ref if key.of == "failure" else step.result_ref
        if ref is None:
            return []
        kind, identity = parse_ref(ref)
        if key.of == "meta":
            return [self.bodies[identity].meta if kind == "S" else None]
        if kind == "S":
            return [self.bodies[identity].body]
        if kind == "P":
            return [self.payloads[identity]]
        task = self.tasks[identity]
        if key.of == "result":
            return [task.result]
        return [] if task.error is None else [{"code": task.error[0], "message": task.error[1]}]

    def keep(self, decision: Decision) -> None:
        assert decision.before == self.head
        for change in decision.steps:
            assert self.activations.get(change.after.id) == change.before
            self.activations[change.after.id] = change.after
            self.steps[change.after.step_key] = change.after
        for changed in decision.signals:
            assert self.signals.get(changed.after.id) == changed.before
            self.signals[changed.after.id] = changed.after
        for payload in decision.payloads:
            self.payloads[payload.id] = payload.body
        for effect in decision.effects:
            self._obey(effect)
        self.head = decision.instance
        self.output = decision.output if decision.instance.state.value == "SUCCEEDED" else None
        self.error = decision.error or self.error
        self.history.append(decision)

    def _obey(self, effect: Effect) -> None:
        match effect:
            case CreateTask():
                assert effect.task_id not in self.tasks
                self.tasks[effect.task_id] = PlayedTask(effect)
            case CancelTask():
                self.tasks[effect.task_id].cancel = True
            case DetachTask():
                self.tasks[effect.task_id].detached = True
            case GateTasks():
                for task_id in effect.task_ids:
                    self.tasks[task_id].gated = effect.closed
            case SettleTask():
                task = self.tasks[effect.task_id]
                if task.phase is TaskPhase.NEEDS_REVIEW:
                    self.write(task, TaskPhase(effect.phase), result=effect.result, code=effect.error_code)

    # Orders of a test

    def start(self, value: Any = None, **more: Any) -> Decision:
        self.input = value
        return self.do(StartInstance(self.id, "ns", value, self.seed(), self.id, **more))

    def write(self, task: PlayedTask, phase: TaskPhase, **facts: Any) -> TaskReport:
        """Pulse stores a change of a task: its inbox row is kept until it is applied."""
        task.revision += 1
        task.phase = phase
        code, message = facts.pop("code", None), facts.pop("message", None)
        task.attempts += facts.pop("attempts", 1 if phase is not TaskPhase.OPEN else 0)
        if phase is TaskPhase.SUCCEEDED:
            task.result = facts.get("result")
        if code is not None:
            task.error = (code, message or "")
        report = TaskReport(
            task_id=task.order.task_id,
            activation_id=task.order.activation_id,
            source_revision=task.revision,
            phase=phase,
            stored_at=facts.pop("stored_at", self.now),
            error_code=code,
            error_message=message,
            attempts_used=task.attempts,
            **facts,
        )
        task.unread.append(report)
        return report

    def apply(self, report: TaskReport) -> Decision:
        return self.do(ApplyReport(report, self.seed()))

    def succeed(self, key: str, result: Any = None, **facts: Any) -> Decision:
        return self.apply(self.write(self.task(key), TaskPhase.SUCCEEDED, result=result, **facts))

    def fail(self, key: str, code: str = "BROKEN", **facts: Any) -> Decision:
        return self.apply(self.write(self.task(key), TaskPhase.FAILED, code=code, **facts))

    def report(self, key: str, phase: TaskPhase, **facts: Any) -> Decision:
        return self.apply(self.write(self.task(key), phase, **facts))

    def newest(self, keys: Iterable[str] | None = None) -> tuple[TaskReport, ...]:
        """The newest stored fact of every live task."""
        found = []
        for key in self.live() if keys is None else keys:
            task_id = self.steps[key].task_id
            if task_id is not None and self.tasks[task_id].unread:
                found.append(self.tasks[task_id].unread[-1])
        return tuple(found)

    def signal(
        self, name: str, match: Any, body: Any = None, key: str | None = None, **more: Any
    ) -> Decision:
        return self.do(self.signal_command(name, match, body, key, **more))

    def signal_command(
        self, name: str, match: Any, body: Any = None, key: str | None = None, **more: Any
    ) -> AcceptSignal:
        signal_id = derive_id(self.id, key or f"signal{len(self.signals)}")
        signal = Signal(signal_id, self.id, name, match_key(match), SignalState.PENDING, self.now, **more)
        stored = SignalBody(body, {"actor": "somebody", "signal_id": signal_id})
        self.bodies[signal_id] = stored
        polls = [k for k, s in self.live().items() if s.signal == name and s.state is StepState.WAITING_TASK]
        return AcceptSignal(signal, stored, self.seed(), self.newest(polls))

    def pass_time(self, seconds: float) -> None:
        """The clock moves; nobody looks at it yet."""
        self.now += round(seconds * SECOND)

    def scan(self) -> int:
        """The loops look: everything due is moved, once each; stored checkpoints are continued."""
        moved = 0
        for step in list(self.live().values()):
            if step.due_at is not None and step.due_at <= self.now and self.live().get(step.step_key) == step:
                self.do(TimePassed(step.id, self.seed(), next(iter(self.newest([step.step_key])), None)))
                moved += 1
        due = self.instance.advance_due_at
        while due is not None and due <= self.now:
            self.do(Advance(self.seed()))
            moved += 1
            due = self.instance.advance_due_at
        return moved

    def wait(self, seconds: float) -> None:
        self.pass_time(seconds)
        self.scan()

    def pause(self) -> Decision:
        return self.do(Pause(self.instance.control_version, self.seed()))

    def resume(self) -> Decision:
        return self.do(Resume(self.instance.control_version, self.seed(), self.newest()))

    def cancel(self) -> Decision:
        return self.do(Cancel(self.instance.control_version, self.seed(), self.newest()))

    def review(self, key: str, verdict: Verdict, **more: Any) -> DecideReview:
        return DecideReview(
            key,
            self.steps[key].revision,
            verdict,
            self.seed(),
            report=next(iter(self.newest([key])), None),
            **more,
        )

    def conclude(self, key: str, result: Any = None) -> Decision:
        return self.do(self.review(key, Verdict.SUCCEEDED, result=result))

    def conclude_failed(self, key: str, code: str = "BROKEN", **more: Any) -> Decision:
        return self.do(self.review(key, Verdict.FAILED, code=code, **more))

    def rerun(self, key: str, **more: Any) -> Decision:
        return self.do(self.review(key, Verdict.RERUN, **more))

    def check(self) -> None:
        found = violations(self.plan, self.history)
        assert not found, "\n".join(found)
