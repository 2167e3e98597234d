"""What a person may decide about a task in each of its states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.pulse.tasks.decide.choices import choices
from orbit_server.pulse.tasks.decide.submit import submit
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.tasks.records import Task
from tests.unit.pulse.making import NOW, new

CONCLUSIONS = {"SUCCEEDED", "FAILED", "CANCELLED"}


def task_in(state: str, **changes: Any) -> Task:
    return replace(submit(new(), NOW)[0], state=TaskState(state), **changes)


@pytest.mark.parametrize(
    ("state", "allowed"),
    [
        ("NEEDS_REVIEW", {*CONCLUSIONS, "RETRY"}),
        ("FAILED", {"RETRY"}),
        ("CANCELLED", {"RETRY"}),
        ("EXPIRED", {"RETRY"}),
        ("SUCCEEDED", set()),
        ("READY", set()),
        ("RUNNING", set()),
        ("RETRY_WAIT", set()),
        ("VERIFYING", set()),
    ],
)
def test_what_may_be_decided_follows_from_the_state_and_the_rest_says_why_not(
    state: str, allowed: set[str]
) -> None:
    found = choices(task_in(state), None)
    assert {each.verdict for each in found if each.allowed} == allowed
    assert {each.verdict for each in found} == {*CONCLUSIONS, "RETRY"}
    assert all(each.reason for each in found if not each.allowed)


def test_where_an_effect_may_have_happened_every_decision_needs_evidence() -> None:
    assert not any(each.needs_evidence for each in choices(task_in("NEEDS_REVIEW"), None))
    for doubt in ({"effect_possible": True}, {"late_success": True}):
        found = choices(task_in("NEEDS_REVIEW", **doubt), None)
        assert all(each.needs_evidence for each in found)
        assert {each.verdict for each in found if each.reason} == {"FAILED", "CANCELLED", "RETRY"}


def test_a_task_of_a_workflow_is_decided_on_with_its_step() -> None:
    found = choices(task_in("NEEDS_REVIEW", instance_id="9" * 32, step_key="pay"), None)
    assert not any(each.allowed for each in found)
    assert all("step pay of workflow " + "9" * 32 in (each.reason or "") for each in found)


def test_a_task_is_retried_once() -> None:
    (retry,) = [each for each in choices(task_in("FAILED"), "8" * 32) if each.verdict == "RETRY"]
    assert not retry.allowed
    assert "8" * 32 in (retry.reason or "")
