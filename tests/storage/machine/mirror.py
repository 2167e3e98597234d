"""The oracle: the pure engine over a plain store, told what really became of each task.

Time is made of large pieces (see `slowly`), so that the moments that the real database needs never decide
anything, and instants are compared as distances from now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from orbit_sdk.engine import (
    AcceptSignal,
    CancelTask,
    Command,
    CreateTask,
    Decision,
    DetachTask,
    Effect,
    GateTasks,
    Refusal,
    SettleTask,
    Signal,
    SignalBody,
    SignalState,
    State,
    TaskPhase,
    TaskReport,
    match_key,
    parse_ref,
)
from orbit_sdk.engine.shape import Poll
from tests.workflows import PlayedTask, Workflow

SCALE: Final = 600
"""Every duration of a generated definition is so many times longer."""
_DURATIONS: Final = (
    "timeout_ms",
    "delay_ms",
    "every_ms",
    "within_ms",
    "start_within_ms",
    "total_timeout_ms",
)


def slowly(document: dict[str, Any]) -> dict[str, Any]:
    """The same definition with durations that a slow machine cannot reach by itself."""

    def scaled(node: dict[str, Any]) -> dict[str, Any]:
        return node | {key: node[key] * SCALE for key in _DURATIONS if node.get(key) is not None}

    return document | {"nodes": {key: scaled(node) for key, node in document["nodes"].items()}}


class Mirror(Workflow):
    """One instance in memory, under the ids of the real one. Tasks are known by activation and round."""

    def __init__(self, document: dict[str, Any], limits: Any, instance: str) -> None:
        super().__init__(document, limits)
        self.id = instance
        self.asked: Command | None = None
        self.stands: dict[str, TaskReport] = {}
        """The newest stored fact of each task (by the oracle's id), as the real one was found."""

    def decide(self, command: Command) -> Decision | Refusal:
        self.asked = command
        return super().decide(command)

    def snapshot(self) -> State | None:
        """A signal that comes when a wait of its kind is over is late, unless another wait is still to be
        opened that would take it: then it is early, and nobody looks at what is over.
        """
        state = super().snapshot()
        if state is None or not isinstance(self.asked, AcceptSignal):
            return state
        signal = self.asked.signal
        keys = [key for key in self.plan.waits.get(signal.signal, ()) if signal.step_key in (None, key)]
        to_come = [
            key
            for key in keys
            if key not in self.steps
            and (self.plan.nodes[key].keep_early or isinstance(self.plan.nodes[key].spec, Poll))
        ]
        over = {key: step for key, step in state.closed.items() if key in keys and not to_come}
        return replace(state, closed=over)

    def newest(self, keys: Iterable[str] | None = None) -> tuple[TaskReport, ...]:
        wanted = self.live() if keys is None else keys
        ids = [self.steps[key].task_id for key in wanted]
        return tuple(self.stands[task_id] for task_id in ids if task_id is not None)

    def keep(self, decision: Decision) -> None:
        before = self.output
        super().keep(decision)
        if before is not None:  # what comes after the end has no output of its own
            self.output = before

    def _obey(self, effect: Effect) -> None:
        """What Pulse makes of an order is read from the real one afterwards."""
        match effect:
            case CreateTask():
                assert effect.task_id not in self.tasks
                self.tasks[effect.task_id] = PlayedTask(effect)
                self.stands[effect.task_id] = TaskReport(
                    effect.task_id, effect.activation_id, 1, TaskPhase.OPEN, self.now
                )
            case CancelTask():
                self.tasks[effect.task_id].cancel = True
            case DetachTask():
                # What is settled already is beyond being let go.
                loose = self.stands[effect.task_id].phase in (TaskPhase.OPEN, TaskPhase.NEEDS_REVIEW)
                self.tasks[effect.task_id].detached |= loose
            case GateTasks():
                for task_id in effect.task_ids:
                    self.tasks[task_id].gated = effect.closed
            case SettleTask():
                task = self.tasks[effect.task_id]
                if effect.phase == "SUCCEEDED":
                    task.result = effect.result
                else:
                    code = effect.error_code or effect.reason
                    task.error = (code, effect.error_message or effect.reason)

    def signalled(
        self, signal_id: str, name: str, match: Any, body: Any, accepted: str, **more: Any
    ) -> AcceptSignal:
        """The command for a signal that was really sent. `accepted`: its time as its meta tells it."""
        signal = Signal(signal_id, self.id, name, match_key(match), SignalState.PENDING, self.now, **more)
        meta = {"actor": "approver", "accepted_at": accepted, "signal_id": signal_id}
        stored = SignalBody(body, meta)
        self.bodies[signal_id] = stored
        waits = [key for key, step in self.live().items() if step.signal == name and step.task_id is not None]
        return AcceptSignal(signal, stored, self.seed(), self.newest(waits))

    # --- what can be seen ---

    def seen(self) -> dict[str, Any]:
        """Everything that an observer could compare."""
        head = self.instance
        return {
            "instance": {
                "state": head.state.value,
                "paused": head.paused,
                "cancel_requested": head.cancel_requested,
                "stopping": head.stopping,
                "control_version": head.control_version,
                "revision": head.revision,
                "pending_signals": head.pending_signals,
                "checkpoint": list(head.checkpoint),
                "advances": head.advance_due_at is not None,
                "ended": head.ended_at is not None,
            },
            "output": self.output,
            "error": list(self.error) if self.error and head.ended_at is not None else None,
            "steps": {step.id: self._step(step) for step in self.activations.values()},
            "signals": {signal.id: self._signal(signal) for signal in self.signals.values()},
            "tasks": sorted(self._task(task) for task in self.tasks.values()),
            "events": sorted(
                (event.type, event.aggregate_kind, event.aggregate_id, event.aggregate_revision, event.state)
                for event in self.events()
            ),
        }

    def _step(self, step: Any) -> dict[str, Any]:
        return {
            "key": step.step_key,
            "activation": step.activation_no,
            "state": step.state.value,
            "live": step.live,
            "revision": step.revision,
            "reason": step.reason,
            "review_class": None if step.review_class is None else step.review_class.value,
            "exit": step.exit_taken,
            "task": None if step.task_id is None else self._place(step.task_id),
            "task_revision": step.task_revision,
            "round": step.round,
            "attempts_spent": step.attempts_spent,
            "effect_possible": step.effect_possible,
            "signal": step.signal,
            "match": step.match_key,
            "deadline": self._away(step.deadline_at),
            "due": self._away(step.due_at),
            "arms": None if step.arms is None else {k: v.value for k, v in step.arms.items()},
            "result": self._ref(step.result_ref),
            "failure": self._ref(step.failure_ref),
        }

    def _signal(self, signal: Signal) -> dict[str, Any]:
        return {
            "state": signal.state.value,
            "revision": signal.revision,
            "step": signal.step_key,
            "leftover_of": signal.leftover_of,
            "disposition": signal.disposition,
            "consumed_step": signal.consumed_step,
            "consumed_wait": signal.consumed_wait_id,
            "expires": self._away(signal.expires_at),
        }

    def _task(self, task: PlayedTask) -> tuple[Any, ...]:
        order = task.order
        return (
            order.activation_id,
            order.round,
            order.step_key,
            order.handler,
            order.attempts_max,
            self._away(order.total_deadline_at),
            self._away(order.latest_start_at),
            task.detached,
        )

    def _place(self, task_id: str) -> tuple[str, int]:
        order = self.tasks[task_id].order
        return order.activation_id, order.round

    def _ref(self, ref: str | None) -> Any:
        """Where a value lies, and the value where the engine made it."""
        if ref is None:
            return None
        kind, identity = parse_ref(ref)
        if kind == "T":
            return kind, self._place(identity)
        return (kind, identity) if kind == "S" else (kind, self.payloads[identity])

    def _away(self, at: int | None) -> int | None:
        return None if at is None else round((at - self.now) / 1_000_000 / SCALE)
