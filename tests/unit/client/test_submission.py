"""What a typed submission becomes, and what is refused before it leaves."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit
from orbit_sdk.client.submission import Submission, milliseconds, submission_body
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.protocol.tasks import SubmitTask


class Line(BaseModel):
    text: str


@orbit.handler("paper.print", version=3, queue="paper", recovery=orbit.Recovery.IDEMPOTENT)
def printing(ctx: orbit.TaskContext, line: Line, copies: int = 1) -> int:
    return copies


def body(parameters: dict[str, Any], delay: timedelta | None = None, **options: Any) -> dict[str, Any]:
    made = submission_body(printing, parameters, delay, Submission(**options))
    SubmitTask.model_validate_json(json.dumps(made))
    return made


def test_a_handler_gives_its_name_queue_and_recovery() -> None:
    made = body({"line": Line(text="a")})
    assert made == {
        "queue": "paper",
        "handler": "paper.print",
        "handler_version": 3,
        "parameters": {"line": {"text": "a"}},
        "recovery": "IDEMPOTENT",
        "can_verify": False,
    }


def test_every_option_finds_its_field() -> None:
    made = body(
        {"line": Line(text="a"), "copies": 2},
        timedelta(seconds=5),
        queue="other",
        business_key="b",
        concurrency_key="c",
        fairness_key="f",
        priority=9,
        start_within=timedelta(hours=1),
        attempt_timeout=timedelta(seconds=1.5),
        total_timeout=timedelta(days=1),
        retry={"max_attempts": 3},
        labels={"a": "b"},
    )
    assert made["queue"] == "other"
    assert made["delay_ms"] == 5_000
    assert made["attempt_timeout_ms"] == 1_500
    assert made["start_within_ms"] == 3_600_000
    assert made["total_timeout_ms"] == 86_400_000
    assert made["retry"] == {"max_attempts": 3}
    assert made["labels"] == {"a": "b"}
    assert (made["business_key"], made["concurrency_key"], made["fairness_key"]) == ("b", "c", "f")
    assert made["priority"] == 9


@pytest.mark.parametrize("parameters", [{}, {"line": "a"}, {"line": Line(text="a"), "more": 1}])
def test_parameters_that_the_handler_does_not_take_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        body(parameters)


@pytest.mark.parametrize("value", [timedelta(0), timedelta(microseconds=1), timedelta(seconds=-1)])
def test_a_duration_is_whole_milliseconds(value: timedelta) -> None:
    with pytest.raises(InvalidArgument, match="delay"):
        milliseconds("delay", value)
