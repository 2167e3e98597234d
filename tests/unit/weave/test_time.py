from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.engine.state import StepState
from orbit_sdk.errors import NotFound
from orbit_server.storage.commands import Done
from orbit_server.weave.instances.time import BlockStep, ContinueAdvance, StepDue
from orbit_server.weave.signals.expiry import ExpirePending
from orbit_server.weave.state.running import NotInMemory, head_of, signal_needs
from orbit_server.weave.state.signals import PENDING_SIGNALS
from tests.unit.weave.shelves import INSTANCE, NOW, SEED, head, holding, step, weave

SLEEP = step("sleep", due_at=NOW + 1)
COMMANDS: list[Any] = [
    StepDue(INSTANCE, SLEEP.id, SEED, weave()),
    ContinueAdvance(INSTANCE, SEED, weave()),
    BlockStep(INSTANCE, None, "broken", SEED, weave()),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_time_moves_nothing_of_an_instance_that_is_gone(command: Any) -> None:
    made = holding(None)
    assert command.lane == INSTANCE
    assert command.more(made) == {}
    assert command.decide(made) == Done(answer=False)
    assert made.written() == []


@pytest.mark.parametrize("row", [SLEEP, step("sleep"), step("sleep", 2, due_at=NOW)])
def test_a_step_whose_time_has_not_come_does_not_move(row: Any) -> None:
    made = holding(head(), row)
    assert StepDue(INSTANCE, SLEEP.id, SEED, weave()).decide(made) == Done(answer=False)
    assert made.written() == []


def test_an_instance_without_a_checkpoint_is_not_continued() -> None:
    made = holding(head(), SLEEP)
    command = ContinueAdvance(INSTANCE, SEED, weave())
    assert command.more(made) == {}
    assert command.decide(made) == Done(answer=False)


def test_no_signal_of_an_absent_instance_expires() -> None:
    command = ExpirePending(INSTANCE, SEED, weave())
    assert set(command.needs()) == {"instances", "steps", PENDING_SIGNALS.name}
    assert command.decide(holding(None)) == Done(answer=False)


def test_an_instance_without_old_signals_is_left_as_it_is() -> None:
    made = holding(head(), SLEEP)
    made.put(PENDING_SIGNALS.name, [INSTANCE], {})
    assert ExpirePending(INSTANCE, SEED, weave()).decide(made) == Done(answer=False)
    assert made.written() == []


def test_a_step_that_cannot_be_moved_goes_to_review() -> None:
    made = holding(head(), SLEEP)
    assert BlockStep(INSTANCE, SLEEP.id, "broken", SEED, weave()).decide(made) == Done(answer=True)
    assert made.members("steps", INSTANCE)[0].state is StepState.NEEDS_REVIEW


def test_a_definition_that_is_not_in_memory_is_named() -> None:
    with pytest.raises(NotInMemory) as missing:
        weave(empty=True).compiled("k")
    assert missing.value.key == "k"


def test_an_instance_of_another_namespace_is_not_shown() -> None:
    with pytest.raises(NotFound):
        head_of(holding(head()), INSTANCE, "n" * 32)


def test_pending_signals_are_loaded_before_their_bodies() -> None:
    assert signal_needs(holding(head()), head()) == {}
    row = head(pending_signals=1)
    assert signal_needs(holding(row), row) == {PENDING_SIGNALS.name: [INSTANCE]}
