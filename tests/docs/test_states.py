"""The tables of states in the documentation are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from orbit_sdk.engine import StepState, TaskPhase
from orbit_sdk.engine.state import STEP_MOVES
from orbit_server.pulse.tasks.lifecycle import LEGAL_MOVES, TERMINAL, TaskState
from tests.property.strategies import CHOICES, random_document
from tests.property.test_engine import Chaos
from tests.property.test_engine import start as start_flow

EXPLANATION = Path(__file__).resolve().parents[2] / "docs" / "explanation"


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, its head left out."""
    text = (EXPLANATION / page).read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    lines = [line for line in text.split("\n## ", 1)[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str, known: set[str]) -> set[str]:
    return {word for word in re.findall(r"[A-Z][A-Z_]+", cell) if word in known}


def test_the_moves_of_a_task_are_told_as_the_code_allows_them() -> None:
    known = {state.value for state in TaskState}
    told = {
        (before, after)
        for from_cell, _, to_cell in rows("tasks.md", "The states")
        for before in words(from_cell, known)
        for after in words(to_cell, known)
    }
    allowed = {(before.value, after.value) for before, found in LEGAL_MOVES.items() for after in found}
    stays = {(state, state) for state in known}
    assert told - stays == allowed
    final = (EXPLANATION / "tasks.md").read_text(encoding="utf-8").split("are final", 1)[0].splitlines()[-1]
    assert words(final, known) == {state.value for state in TERMINAL}


def test_the_moves_of_a_step_are_told_as_random_workflows_make_them() -> None:
    known = {state.value for state in StepState}
    told = {
        (before, after)
        for from_cell, _, to_cell in rows("engine.md", "The states of a step")
        for before in words(from_cell, known)
        for after in words(to_cell, known)
    }
    made: set[tuple[str, str]] = set()
    for seed in range(250):
        random = Random(seed)
        flow = start_flow(random_document(random, 10, 2), random.choice((*CHOICES, "other")), 64)
        chaos = Chaos(flow, random)
        chaos.run(40)
        if seed % 3 == 0:
            chaos.bring_to_an_end()
        for key, step in list(flow.live().items()):
            if step.state is StepState.WAITING_TASK and flow.live().get(key) == step:
                flow.report(key, TaskPhase.NEEDS_REVIEW, effect_possible=True)
                flow.report(key, TaskPhase.OPEN, attempts=0)
        made |= {
            (change.before.state.value, change.after.state.value)
            for decision in flow.history
            for change in decision.steps
            if change.before is not None and change.before.state is not change.after.state
        }
    allowed = {(before.value, after.value) for before, found in STEP_MOVES.items() for after in found}
    assert made == told == allowed
