"""Draws the diagrams of states in the documentation from the tables of moves that the code holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
PAGE: Final = "docs/explanation/lifecycles.md"
_BLOCK: Final = re.compile(r"(<!-- lifecycle: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

Moves = Mapping[Any, frozenset[Any]]


def outputs() -> dict[str, str]:
    """Path -> text of every generated file: the page as it is, with its diagrams drawn again."""
    tables = _tables()
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    if (named := {match[2] for match in _BLOCK.finditer(text)}) != tables.keys():
        raise RuntimeError(f"{PAGE} has the diagrams {sorted(named)}, not {sorted(tables)}")
    return {PAGE: _BLOCK.sub(lambda match: match[1] + diagram(*tables[match[2]]) + match[3], text)}


def _tables() -> dict[str, tuple[Moves, tuple[StrEnum, ...]]]:
    """By name: the moves, and the states in which something may begin."""
    from orbit_sdk.engine.state import STEP_MOVES, StepState
    from orbit_server.bulk.lifecycle import MOVES, BulkState
    from orbit_server.pulse.tasks.lifecycle import LEGAL_MOVES, TaskState

    waiting = (StepState.WAITING_TASK, StepState.WAITING_SIGNAL, StepState.WAITING_TIME, StepState.PENDING)
    return {
        "task": (LEGAL_MOVES, (TaskState.SCHEDULED, TaskState.READY)),
        "step": (STEP_MOVES, waiting),
        "bulk": (MOVES, (BulkState.PLANNING,)),
    }


def diagram(moves: Moves, begins: tuple[StrEnum, ...]) -> str:
    """A fenced Mermaid diagram, in the order of the table; states that no arrow touches are left out."""
    return "\n".join(["```mermaid", "stateDiagram-v2", *_lines(moves, begins), "```", ""])


def _lines(moves: Moves, begins: tuple[StrEnum, ...]) -> Iterator[str]:
    reached = {after for found in moves.values() for after in found} | set(begins)
    for state in begins:
        yield f"    [*] --> {state.value}"
    for before, found in moves.items():
        for after in moves:
            if after in found:
                yield f"    {before.value} --> {after.value}"
        if not found and before in reached:
            yield f"    {before.value} --> [*]"
