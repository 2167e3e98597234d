"""Which events a subscription wants."""

from __future__ import annotations

import json

import pytest

from orbit_server.pulse.subscriptions.filters import Facts, stored_filter

EVENT = Facts("TASK", "task.changed", "FAILED", "payments", "pay", "orders")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, True),
        ({"kinds": ["TASK", "STEP"]}, True),
        ({"kinds": ["STEP"]}, False),
        ({"states": ["FAILED"], "queues": ["payments"]}, True),
        ({"states": ["FAILED"], "queues": ["reports"]}, False),
        ({"handlers": ["pay"], "definitions": ["orders"], "types": ["task.changed"]}, True),
        ({"definitions": ["other"]}, False),
    ],
)
def test_all_that_a_filter_says_must_hold(said: dict[str, list[str]], wanted: bool) -> None:
    assert stored_filter(json.dumps(said)).wants(EVENT) is wanted


def test_a_filter_that_names_a_queue_wants_no_event_without_one() -> None:
    assert not stored_filter('{"queues": ["payments"]}').wants(
        Facts("WORKFLOW", "workflow.started", "RUNNING")
    )


def test_tasks_and_workflows_are_only_looked_at_where_a_filter_asks() -> None:
    assert not stored_filter('{"kinds": ["TASK"]}').asks_tasks
    assert stored_filter('{"handlers": ["pay"]}').asks_tasks
    assert stored_filter('{"definitions": ["orders"]}').asks_workflows
