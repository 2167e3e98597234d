from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.definition.models import load_definition
from orbit_sdk.engine.decision import CancelTask, Decision, DetachTask, GateTasks, SettleTask
from orbit_sdk.engine.state import InstanceState, StepState
from orbit_server.weave.instances.queries import StepFacts
from orbit_server.weave.instances.why import reasons_of
from orbit_server.weave.rehearsal.forecast import forecast_of
from orbit_server.weave.state.rows import StepRow, to_instance
from tests.documents import document, end, join, parallel, poll, task, timer, wait
from tests.unit.weave.shelves import NOW, head, step

FLOW = load_definition(
    document(
        {
            "both": parallel("meet", left="ask", right="query"),
            "ask": wait("work", on_timeout={"next": "work"}),
            "query": poll("meet"),
            "work": task("meet", "safe"),
            "meet": join("pause"),
            "pause": timer("done"),
            "done": end(),
        }
    )
)


def told(*rows: StepRow, task_state: str | None = None, **changes: Any) -> list[Any]:
    return reasons_of(head(**changes), [StepFacts(row, task_state) for row in rows], FLOW)


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        (CancelTask("t", "r"), [{"order": "CANCEL", "task_id": "t"}]),
        (DetachTask("t"), [{"order": "LET_GO", "task_id": "t"}]),
        (SettleTask("t", "FAILED", "r"), [{"order": "SETTLE_FAILED", "task_id": "t"}]),
        (GateTasks(("t",), closed=True), [{"order": "HOLD", "task_id": "t"}]),
        (GateTasks(("t", "u"), closed=False), [{"order": "RELEASE", "task_id": t} for t in "tu"]),
        (GateTasks((), closed=True), []),
    ],
)
def test_every_order_to_a_task_has_its_word(order: Any, shown: Any) -> None:
    instance = to_instance(head())
    assert forecast_of(Decision(instance, instance, effects=(order,)))["tasks"] == shown


def test_a_failure_is_foretold_with_its_code() -> None:
    instance = to_instance(head(state=InstanceState.FAILED, ended_at=NOW))
    shown = forecast_of(Decision(instance, instance, error=("NO", "it broke")))
    assert (shown["ends"], shown["error"]) == (True, {"code": "NO", "message": "it broke"})


def test_what_ended_waits_for_nothing() -> None:
    assert [r.code for r in told(state=InstanceState.CANCELLED, ended_at=NOW)] == ["ENDED"]


def test_everything_that_holds_an_instance_is_told_gravest_first() -> None:
    found = told(
        step("meet", state=StepState.PENDING),
        step("work", state=StepState.WAITING_TASK, task_id="t"),
        step("query"),
        step("pause"),
        step("ask", state=StepState.WAITING_SIGNAL, signal="approval", match_key="m"),
        step("done", live=False),
        task_state="ODD",
        paused=True,
        cancel_requested=True,
        stopping="work",
    )
    codes = [reason.code for reason in found]
    assert codes[:4] == ["PAUSED", "CANCEL_ASKED", "FAILING", "WAITS_FOR_SIGNAL"]
    assert codes[4:] == ["WAITS_FOR_TIME", "WAITS_FOR_TIME", "WAITS_FOR_TASK", "WAITS_FOR_ARMS"]
    assert found[3].then == "ask goes to work"


def test_exits_that_are_still_to_be_followed_move_by_themselves() -> None:
    assert [r.code for r in told(checkpoint=("a:next",))] == ["ADVANCING"]
    assert [r.code for r in told(checkpoint=("a:next",), paused=True)] == ["PAUSED"]


def test_a_step_in_review_names_the_command_that_shows_it() -> None:
    (reason,) = told(step("work", state=StepState.NEEDS_REVIEW, reason="ODD"))
    assert (reason.code, reason.command) == ("IN_REVIEW", f"orbit review show {head().id} work")
