"""What people look for and Orbit does not have, and what to write instead."""

from __future__ import annotations

from typing import Final

from orbit_sdk.handlers.problems import BuildError
from orbit_sdk.handlers.recording import RECORDER

__all__ = ["ABSENT", "absent"]

_ONE_STEP = "call a handler that starts the other workflow, and wait for a signal that it sends at its end"
_RACE = (
    "let one handler ask both and give the first answer, or wait for one signal whose body says who answered"
)
_AGAIN = (
    "ask again with orbit.poll, unroll a bounded number of rounds, or let a handler start the next instance"
)
_UNDO = "write the undoing steps as the function of on_failure"
_EACH = "start one workflow per item (a batch of starts); for constants there is orbit.parallel_each"
_TIMER = "give the wait or the poll a timeout; telling somebody meanwhile is a workflow of its own"

ABSENT: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(
        ("race", "select", "first", "first_of", "any_arm", "compete"),
        ("first-wins joins do not exist: a JOIN goes on when every arm has arrived", _RACE),
    ),
    **dict.fromkeys(("join", "join_any", "join_some"), ("joins are made by orbit.parallel alone", _RACE)),
    **dict.fromkeys(
        ("loop", "while_", "repeat", "goto", "for_each_until"),
        ("loops and edges that lead back do not exist", _AGAIN),
    ),
    **dict.fromkeys(
        ("for_each", "foreach", "map", "fan_out", "each"),
        ("a number of arms that only the data knows does not exist", _EACH),
    ),
    **dict.fromkeys(
        ("sub_workflow", "subworkflow", "child", "call_workflow", "run_workflow"),
        ("workflows inside workflows do not exist", _ONE_STEP),
    ),
    **dict.fromkeys(
        ("compensate", "compensation", "saga", "undo"),
        ("there is no compensation that runs by itself", _UNDO),
    ),
    **dict.fromkeys(
        ("race_timer", "after", "deadline", "timeout"), ("work cannot be raced by a timer", _TIMER)
    ),
}
"""By the name that people try: what does not exist, and what to write instead."""


def absent(name: str) -> BuildError | AttributeError | None:
    """The error for `orbit.<name>`; inside a workflow function it cannot be swallowed. None: not known."""
    known = ABSENT.get(name)
    if known is None:
        return None
    found, instead = known
    recorder = RECORDER.get()
    if recorder is not None:
        return recorder.refuse("ABSENT", f"there is no orbit.{name}: {found}", instead)
    return AttributeError(f"there is no orbit.{name}: {found}; {instead}")
