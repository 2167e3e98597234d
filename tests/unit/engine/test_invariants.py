"""Each rule finds the history that breaks it: real histories, with one thing made wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.engine import (
    CreateTask,
    Decision,
    InstanceState,
    ReviewClass,
    SignalState,
    State,
    StepChange,
    StepState,
    TaskPhase,
)
from orbit_sdk.engine.invariants import check_state, violations
from tests.documents import document, end, poll, task, wait
from tests.workflows import Workflow


def finished() -> Workflow:
    flow = Workflow(
        document(
            {"a": task("w", on_failure={"next": "w"}), "w": wait("p"), "p": poll("z", rounds=2), "z": end()}
        )
    )
    flow.start()
    flow.signal("approval", "m", {})
    flow.signal("approval", "m", {})
    flow.succeed("a")
    flow.succeed("p", {"state": "pending"})
    flow.wait(30)
    flow.succeed("p", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    return flow


def change_step(decision: Decision, index: int, **changes: Any) -> Decision:
    steps = list(decision.steps)
    steps[index] = StepChange(steps[index].before, replace(steps[index].after, **changes))
    return replace(decision, steps=tuple(steps))


def orders(decision: Decision, **changes: Any) -> Decision:
    effects = [replace(e, **changes) if isinstance(e, CreateTask) else e for e in decision.effects]
    return replace(decision, effects=tuple(effects))


def at(index: int, change: Callable[[Decision], Decision]) -> Callable[[list[Decision]], list[Decision]]:
    def spoil(history: list[Decision]) -> list[Decision]:
        return [change(d) if i == index % len(history) else d for i, d in enumerate(history)]

    return spoil


def head(**changes: Any) -> Callable[[Decision], Decision]:
    return lambda decision: replace(decision, instance=replace(decision.instance, **changes))


def consumed_again(history: list[Decision]) -> list[Decision]:
    consuming = next(d for d in history if any(s.after.consumed_wait_id for s in d.signals))
    return [*history, replace(consuming, steps=(), effects=(), events=())]


def same_wait_twice(history: list[Decision]) -> list[Decision]:
    consuming = next(d for d in history if any(s.after.consumed_wait_id for s in d.signals))
    signals = tuple(replace(s, after=replace(s.after, id="9" * 32)) for s in consuming.signals)
    return [*history, replace(consuming, steps=(), effects=(), events=(), signals=signals)]


SPOILT: list[tuple[str, Callable[[list[Decision]], list[Decision]]]] = [
    ("ordered by an instance that is paused", at(0, head(paused=True))),
    ("ordered by an instance that is being cancelled", at(0, head(cancel_requested=True))),
    ("ordered by an instance that is FAILED", at(0, head(state=InstanceState.FAILED))),
    ("was opened twice", lambda history: [*history, history[0]]),
    ("changed after it was closed", lambda history: [*history, history[3]]),
    ("consumed twice", consumed_again),
    ("changed after it was settled", consumed_again),
    ("consumed two signals", same_wait_twice),
    ("ordered two tasks for round", lambda history: [*history, replace(history[0], steps=())]),
    ("applied an older report", at(3, lambda d: change_step(d, 0, task_revision=-1))),
    (
        "changed",
        lambda history: [
            *history,
            replace(history[-1], before=history[-1].instance, instance=history[0].instance),
        ],
    ),
    ("still worked", lambda history: [*history, replace(history[0], before=history[-1].instance)]),
    ("the deadline of p moved", at(4, lambda d: change_step(d, 0, deadline_at=1))),
    ("began round 9 of 2", at(4, lambda d: change_step(d, 0, round=9))),
    ("may try 0 times", at(0, lambda d: orders(d, attempts_max=0))),
    ("may try 9 times", at(0, lambda d: orders(d, attempts_max=9))),
    ("was ordered after its deadline", at(0, lambda d: orders(d, total_deadline_at=0))),
    ("without a definite failure", at(3, lambda d: change_step(d, 0, exit_taken="on_failure"))),
    ("nothing will ever move it", at(0, lambda d: change_step(d, 0, task_id=None))),
    ("nothing will ever move it", at(0, lambda d: change_step(d, 0, state=StepState.STOPPED))),
    ("still has something to do", at(-1, head(checkpoint=("a:next",)))),
    ("waits for nothing", at(0, lambda d: change_step(d, 0, live=False))),
    ("would not be found", at(0, head(advance_due_at=1))),
    ("says WAITING but its steps say RUNNING", at(0, head(state=InstanceState.WAITING))),
    ("without a new revision", at(3, lambda d: change_step(d, 0, revision=1))),
    ("share revision", lambda history: [*history, replace(history[0], steps=(), effects=())]),
    ("which never existed", at(0, head(revision=0))),
    ("became SUCCEEDED without an event", at(-1, lambda d: replace(d, events=()))),
]


@pytest.mark.parametrize(
    ("sentence", "spoil"), SPOILT, ids=[f"{n}-{s[:30]}" for n, (s, _) in enumerate(SPOILT)]
)
def test_a_spoilt_history_is_found_out(
    sentence: str, spoil: Callable[[list[Decision]], list[Decision]]
) -> None:
    flow = finished()
    assert not violations(flow.plan, flow.history)
    found = violations(flow.plan, spoil(flow.history))
    assert any(sentence in text for text in found), found


def test_leaving_a_review_of_an_unknown_effect_by_itself_is_found_out() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    assert flow.step("a").review_class is ReviewClass.UNKNOWN
    flow.conclude("a")
    secret = replace(flow.history[-1], events=())
    found = violations(flow.plan, [*flow.history[:-1], secret])
    assert any("by itself" in text for text in found)


def test_a_stored_state_is_judged_alone_too() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    assert not check_state(State(flow.instance, flow.live()))
    assert check_state(State(replace(flow.instance, state=InstanceState.CANCELLED), flow.live()))
    assert flow.signals == {}
    assert SignalState.PENDING.value == "PENDING"
