"""Who calls itself, when a build does not come to an end: both ends of the loop are named."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Final

from orbit_sdk.handlers.problems import is_author

__all__ = ["INSTEAD_OF_LOOPS", "turning_here", "turning_in"]

INSTEAD_OF_LOOPS: Final = (
    "ask again with orbit.poll, unroll a bounded number of rounds, or let a handler start the next instance; "
    "a workflow has no loops"
)

_OFTEN = 3
"""A function that is under way so many times at once calls itself."""


def turning_here() -> str:
    """`look_up (line 12) leads back to itself`, judged by the calls under way; empty when nothing turns."""
    return _told(_frames(inspect.currentframe()))


def turning_in(trace: TracebackType | None) -> str:
    """The same, judged by where an error came from."""
    return _told(_traced(trace))


def _told(frames: Iterable[FrameType]) -> str:
    counted: Counter[CodeType] = Counter(
        frame.f_code for frame in frames if is_author(frame) and not frame.f_code.co_name.startswith("<")
    )
    found = counted.most_common(1)
    if not found or found[0][1] < _OFTEN:
        return ""
    code = found[0][0]
    return f": {code.co_name} (line {code.co_firstlineno}) leads back to itself"


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _traced(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
