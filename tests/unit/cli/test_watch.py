"""`orbit watch`: what it tells of a workflow, in the order in which it happened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orbit_sdk.cli.output import Output
from orbit_sdk.cli.watch import Teller
from orbit_sdk.protocol.workflows import Step, WorkflowDetail

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ID = "0198a6f2c1f07d0c8a4e5b6c7d8e9f00"


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def workflow(state: str = "RUNNING", ended: float | None = None) -> WorkflowDetail:
    more: dict[str, Any] = {} if ended is None else {"ended_at": at(ended)}
    return WorkflowDetail.model_validate(
        {
            "id": ID,
            "definition_id": "a.b",
            "definition_version": 1,
            "state": state,
            "paused": False,
            "cancel_requested": False,
            "control_version": "0",
            "revision": "1",
            "started_at": at(0),
            "started_by": "test",
            "input": None,
            **more,
        }
    )


def step(key: str, state: str, opened: float, closed: float | None = None, **more: Any) -> Step:
    ends: dict[str, Any] = {} if closed is None else {"closed_at": at(closed)}
    return Step.model_validate(
        {
            "key": key,
            "kind": "TASK",
            "state": state,
            "activation_id": ID,
            "activation_no": 1,
            "revision": "1",
            "opened_at": at(opened),
            **ends,
            **more,
        }
    )


def told(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    """Time and subject of every line but the head; a line that is a date has no subject."""
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    return [(words[0], words[1] if len(words) > 1 else "") for words in lines if words[0][0].isdigit()]


def clocks(lines: list[tuple[str, str]]) -> list[str]:
    return [clock for clock, what in lines if what]


def test_steps_of_a_workflow_that_began_earlier_are_told_in_the_order_of_their_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    teller = Teller(Output())
    steps = [
        step("long", "COMPLETED", 0, 60),
        step("short", "COMPLETED", 1, 5),
        step("asks", "WAITING_SIGNAL", 2),
        step("last", "WAITING_TASK", 61),
    ]
    teller.tell(workflow(), steps)
    lines = told(capsys)
    assert [what for _, what in lines if what] == ["asks", "short", "long", "last"]
    assert clocks(lines) == sorted(clocks(lines))


def test_a_change_seen_late_is_never_told_at_an_earlier_time(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(Output())
    teller.tell(workflow(), [step("one", "WAITING_TASK", 10), step("two", "COMPLETED", 1, 20)])
    teller.tell(workflow(), [step("one", "COMPLETED", 10, 15), step("two", "COMPLETED", 1, 20)])
    lines = told(capsys)
    assert [what for _, what in lines if what] == ["one", "two", "one"]
    assert clocks(lines) == sorted(clocks(lines))


def test_the_end_of_a_workflow_is_told_last(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(Output())
    teller.tell(workflow("SUCCEEDED", 30), [step("one", "COMPLETED", 0, 30.0001)])
    lines = told(capsys)
    assert [what for _, what in lines if what] == ["one", "workflow"]


def test_a_change_of_the_day_is_said_before_the_times_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(Output())
    days = 86_400.0
    steps = [step("one", "COMPLETED", 0, 1), step("two", "COMPLETED", 0, 2 * days)]
    teller.tell(workflow("SUCCEEDED", 2 * days), steps)
    lines = told(capsys)
    assert [what for _, what in lines] == ["", "one", "", "two", "workflow"]
    assert lines[0][0] < lines[2][0]
