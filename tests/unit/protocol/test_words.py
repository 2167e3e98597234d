"""Texts that people write: kept and shown again, so they hold no control characters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from orbit_sdk.definition.problems import invalid
from orbit_sdk.protocol.platform import BlockBuild
from orbit_sdk.protocol.tasks import CancelTask, ResolveTask, SubmitTask
from orbit_sdk.protocol.waits import AnswerWait
from orbit_sdk.protocol.worker import Hello
from orbit_sdk.protocol.workflows import Control, DecideReview, SendSignal, StartWorkflow

DECISION = {"verdict": "FAILED", "expected_revision": "1", "reason": "r", "basis": "PROVEN"}
SIGNAL = {"signal": "s", "match": "m", "body": 1}
TASK = {"queue": "q", "handler": "h", "handler_version": 1}
HELLO = {"nonce": "0" * 32, "worker": "w", "handlers": [], "queues": [], "slots": 1}

PLACES: list[tuple[Any, dict[str, Any], str]] = [
    (Control, {"reason": "r"}, "reason"),
    (Control, {"reason": "r"}, "on_behalf_of"),
    (CancelTask, {"reason": "r"}, "reason"),
    (DecideReview, DECISION, "evidence"),
    (DecideReview, DECISION, "message"),
    (ResolveTask, DECISION, "evidence"),
    (SendSignal, SIGNAL, "evidence"),
    (AnswerWait, {"body": 1}, "evidence"),
    (StartWorkflow, {"definition_id": "d", "input": 1}, "business_key"),
    (SubmitTask, TASK, "concurrency_key"),
    (BlockBuild, {"build": "b", "reason": "r"}, "build"),
    (Hello, HELLO, "worker"),
    (Hello, HELLO, "build"),
]


@pytest.mark.parametrize("bad", ["\x00", "\n", "\x1b", "\x7f", "\x85", "\x9f"], ids=repr)
@pytest.mark.parametrize(("model", "body", "field"), PLACES, ids=lambda value: str(value)[-24:])
def test_a_control_character_is_refused_by_field(
    model: Any, body: dict[str, Any], field: str, bad: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({**body, field: f"a{bad}b"})
    (detail,) = invalid("the body", caught.value).details
    assert detail.field == field
    assert "control character" in detail.reason or "does not match" in detail.reason


def test_labels_have_none_either_and_the_label_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        SubmitTask.model_validate({**TASK, "labels": {"team": "a\tb"}})
    (detail,) = invalid("the body", caught.value).details
    assert detail.field == "labels.team"
    assert "U+0009" in detail.reason


@pytest.mark.parametrize("text", ["plain", "  spaced  ", "客户说好", "naïve — ok", "\u00a0", "👍"])
def test_every_other_character_may_be_written(text: str) -> None:
    assert Control.model_validate({"reason": text}).reason == text
