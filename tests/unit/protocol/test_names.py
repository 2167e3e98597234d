"""One grammar of queues: what a definition may name, a worker may serve and a client may submit to."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from orbit_sdk.definition import base
from orbit_sdk.protocol.common import QueueName
from orbit_sdk.protocol.tasks import SubmitTask
from orbit_sdk.protocol.worker import Hello

WIRE: TypeAdapter[str] = TypeAdapter(QueueName)
DEFINED: TypeAdapter[str] = TypeAdapter(base.QueueName)
NAMES = ("gpu-large.eu_1", "a..b", "a.", "q.9", "q" * 128, "q" * 129, "", "Gpu", "9q", "q ", "q\n", "é")


def _reads(adapter: TypeAdapter[str], name: str) -> bool:
    try:
        adapter.validate_python(name)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_a_queue_has_the_same_grammar_in_definitions_and_on_the_wire(name: str) -> None:
    assert _reads(WIRE, name) is _reads(DEFINED, name)


def test_work_can_be_submitted_to_and_taken_from_every_queue_that_a_definition_may_name() -> None:
    SubmitTask(queue="gpu-large.eu_1", handler="work", handler_version=1)
    Hello(protocol=1, nonce="0" * 32, worker="w", handlers=[], queues=["gpu-large.eu_1"], slots=1)
