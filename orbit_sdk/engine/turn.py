"""The working memory of one `decide` call: facts seen so far, what changed, and what follows from it.

A `Turn` lives inside one call and never leaves it; what leaves is the `Decision` made from it at the end
(`engine.finish`). It holds no rules, only the bookkeeping that every rule needs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orbit_sdk.definition.evaluate import Facts
from orbit_sdk.definition.expressions import FactKey, FactPart
from orbit_sdk.engine.commands import EngineLimits
from orbit_sdk.engine.decision import CreateTask, Effect, Payload
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import payload_ref, split_exit
from orbit_sdk.engine.shape import Plan, PlanNode
from orbit_sdk.engine.state import (
    ArmState,
    Instance,
    InstanceState,
    ReviewClass,
    Signal,
    SignalBody,
    State,
    Step,
    StepState,
)
from orbit_sdk.values.ids import IdSeed
from orbit_sdk.values.json_strict import Json


class MissingBody(LookupError):
    """A pending signal has to be read whose body the caller did not load."""

    def __init__(self, signal_id: str) -> None:
        super().__init__(f"the body of signal {signal_id} is not loaded")
        self.signal_id = signal_id


@dataclass(slots=True)
class Touched:
    """One activation that this turn changed or opened (`before` None)."""

    before: Step | None
    after: Step


@dataclass(slots=True)
class TouchedSignal:
    """One signal that this turn changed or accepted (`before` None)."""

    before: Signal | None
    after: Signal


@dataclass(frozen=True, slots=True)
class Lead:
    """A workflow event that says what the command was; `state` None stands for the instance's state at the
    end.
    """

    type: str
    payload: dict[str, Json]
    state: str | None = None
    scope: str = "WORKFLOW"
    signal_id: str | None = None


class Turn:
    """See the module. `queue` holds the exits still to be followed, `following` the one that is being
    followed; `dirty` says that arms may have settled.
    """

    __slots__ = (
        "_facts",
        "_n",
        "_own_facts",
        "applied",
        "bodies",
        "cancel_requested",
        "closed",
        "control_version",
        "created",
        "dirty",
        "effects",
        "effects_kept",
        "ended",
        "error",
        "following",
        "head",
        "leads",
        "limits",
        "now",
        "output",
        "paused",
        "payloads",
        "pending",
        "plan",
        "queue",
        "seed",
        "signals",
        "steps",
        "stopping",
        "touched",
        "transitions",
    )

    def __init__(
        self, plan: Plan, state: State, seed: IdSeed, now: int, facts: Facts, limits: EngineLimits
    ) -> None:
        head = state.instance
        self.plan = plan
        self.head: Instance = head
        self.now = now
        self.limits = limits
        self.seed = seed
        self._n = 0
        self._facts = facts
        self._own_facts: dict[FactKey, Json] = {}
        self.steps: dict[str, Step] = dict(state.steps)
        self.pending: list[Signal] = list(state.signals)
        self.bodies: dict[str, SignalBody] = dict(state.bodies)
        self.closed = state.closed
        self.touched: dict[str, Touched] = {}
        self.signals: dict[str, TouchedSignal] = {}
        self.payloads: list[Payload] = []
        self.effects: list[Effect] = []
        self.created: set[str] = set()
        self.leads: list[Lead] = []
        self.queue: deque[tuple[str, str]] = deque(split_exit(entry) for entry in head.checkpoint)
        self.paused = head.paused
        self.cancel_requested = head.cancel_requested
        self.stopping = head.stopping
        self.control_version = head.control_version
        self.ended: InstanceState | None = None
        self.output: Json = None
        self.error: tuple[str, str] | None = None
        self.effects_kept: list[str] = []
        self.applied = True
        self.dirty = False
        self.transitions = 0
        self.following: tuple[str, str] | None = None

    # Identities and facts

    def new_id(self) -> str:
        """The next id of the command's seed."""
        self._n += 1
        return self.seed.nth(self._n - 1)

    def get(self, key: FactKey, /) -> Json:
        """A fact: made in this turn, or loaded by the caller (raises MissingFact)."""
        own = self._own_facts
        return own[key] if key in own else self._facts.get(key)

    def know(self, step_key: str, of: FactPart, value: Json) -> None:
        """A fact that this turn made or brought with it."""
        self._own_facts[FactKey("step", step_key, of)] = value

    def know_input(self, value: Json) -> None:
        """The input of an instance that is being started."""
        self._own_facts[FactKey("input")] = value

    def body_of(self, signal: Signal) -> SignalBody:
        """The body of a pending signal; raises MissingBody."""
        body = self.bodies.get(signal.id)
        if body is None:
            raise MissingBody(signal.id)
        return body

    def store(self, kind: str, body: Json) -> str:
        """Keeps a value that the engine made; returns the reference to it."""
        payload = Payload(self.new_id(), kind, body)
        self.payloads.append(payload)
        return payload_ref(payload.id)

    # Steps

    def node(self, step: Step) -> PlanNode:
        return self.plan.nodes[step.step_key]

    def find(self, activation_id: str) -> Step | None:
        """The live step with this activation."""
        for step in self.steps.values():
            if step.id == activation_id:
                return step
        return None

    def put(self, step: Step) -> Step:
        """Records a step as it is now; one whose activation was not known before is a new activation."""
        entry = self.touched.get(step.id)
        if entry is None:
            known = self.steps.get(step.step_key)
            self.touched[step.id] = Touched(
                known if known is not None and known.id == step.id else None, step
            )
        else:
            entry.after = step
        if step.live:
            self.steps[step.step_key] = step
        else:
            self.steps.pop(step.step_key, None)
        return step

    def change(self, step: Step, **changes: Any) -> Step:
        """The step with some fields changed: one new revision per activation and decision."""
        if step.id not in self.touched:
            known = self.steps.get(step.step_key)
            if known is not None and known.id == step.id:
                changes["revision"] = step.revision + 1
        return self.put(altered(step, **changes))

    def close(self, step: Step, state: StepState, **changes: Any) -> Step:
        """A step that is done with; it may still have an exit to follow."""
        return self.change(step, state=state, live=False, due_at=None, closed_at=self.now, **changes)

    def follow(self, step_key: str, exit_name: str) -> None:
        """An exit was taken: where it leads is opened by the advance, now or after a pause."""
        self.queue.append((step_key, exit_name))

    def review(
        self, step: Step, kind: ReviewClass, reason: str, message: str | None = None, **changes: Any
    ) -> Step:
        """A step that a person has to decide on; `message` (what was wrong) is kept as its failure."""
        if message is not None:
            changes["failure_ref"] = self.store("failure", {"code": reason, "message": message})
        changes |= {
            "state": StepState.NEEDS_REVIEW,
            "live": True,
            "review_class": kind,
            "reason": reason[:64],
        }
        return self.change(step, due_at=None, **changes)

    # Arms

    def is_stopped(self, step_key: str) -> bool:
        """Whether what this node still does is only settled: cancelled, or in an arm that was stopped."""
        if self.cancel_requested:
            return True
        arms = self.plan.nodes[step_key].arms
        return bool(arms) and self.arm_state(arms[-1].join, arms[-1].name) is ArmState.STOPPED

    def arm_state(self, join: str, arm: str) -> ArmState | None:
        """None once the region is closed."""
        step = self.steps.get(join)
        return None if step is None or step.arms is None else step.arms.get(arm)

    def set_arms(self, join: Step, names: Iterable[str], state: ArmState) -> Step:
        arms = dict(join.arms or {})
        for name in names:
            arms[name] = state
        return self.change(join, arms=arms)

    # Tasks

    def withdraw(self, task_id: str) -> bool:
        """Takes back a task that this very turn was about to create."""
        if task_id not in self.created:
            return False
        self.created.discard(task_id)
        self.effects = [
            effect
            for effect in self.effects
            if not (isinstance(effect, CreateTask) and effect.task_id == task_id)
        ]
        return True

    # Signals

    def put_signal(self, signal: Signal, before: Signal | None) -> None:
        """Records a signal as it is now."""
        entry = self.signals.get(signal.id)
        if entry is None:
            self.signals[signal.id] = TouchedSignal(before, signal)
        else:
            entry.after = signal
