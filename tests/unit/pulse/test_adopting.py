"""What stored evidence may not stand for: a denial that was asked for before the effect it is to deny."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbit_sdk.errors import FailedPrecondition
from orbit_server.pulse.tasks.decide.evidence import require_denial
from orbit_server.pulse.tasks.lifecycle import AttemptKind
from orbit_server.pulse.tasks.records import Attempt, Evidence
from tests.unit.pulse.making import NOW, attempt_id, running

TASK, FIRST = running()


def attempt(generation: int, asked: int | None = None, *, effect: bool = False) -> Attempt:
    kind = AttemptKind.RUN if asked is None else AttemptKind.VERIFY
    made = replace(FIRST, id=attempt_id(generation), generation=generation, kind=kind)
    return replace(made, asked_generation=asked, effect_possible=effect)


def said_by(found: Attempt) -> Evidence:
    kind = "LATE_CANNOT_HAPPEN_ANY_MORE"
    return Evidence("e" * 32, TASK.id, found.id, TASK.namespace_id, kind, None, "d", False, NOW)


def test_a_late_denial_says_nothing_of_a_run_that_came_after_its_question() -> None:
    earlier = [attempt(1, effect=True), attempt(2, asked=1), attempt(3, asked=1)]
    late = said_by(earlier[1])
    require_denial(late, TASK.id, earlier)
    require_denial(late, TASK.id, [*earlier, attempt(4)])
    with pytest.raises(FailedPrecondition, match="asked for before the last run"):
        require_denial(late, TASK.id, [*earlier, attempt(4, effect=True)])
    require_denial(said_by(attempt(5, asked=4)), TASK.id, [*earlier, attempt(4, effect=True), attempt(5, 4)])
