"""What a picture is made of: items of known size, the wires between them, and where all of it came to lie.

All lengths are in pixels; `x` grows to the right and `y` downwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Point = tuple[float, float]


class Way(StrEnum):
    """Why a wire is followed; each kind looks different."""

    NEXT = "next"
    CASE = "case"
    ARM = "arm"
    CATCH = "catch"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Item:
    """A box to be placed. Wires enter at the top and leave at the bottom, around the middle of the box.

    `port_width` is how far apart the wires on one side may stand.
    """

    id: str
    width: float
    height: float
    port_width: float


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection to be drawn, with the text that stands on it."""

    source: str
    target: str
    way: Way
    label: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of a wire as drawn; pieces that lead to one target may be shared by several wires."""

    way: Way
    points: tuple[Point, ...]
    arrow: bool


@dataclass(frozen=True, slots=True)
class Label:
    """A text whose middle is at `x`, in a row of its own whose top is at `y`."""

    way: Way
    text: str
    hint: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where everything lies, relative to the top left corner. `places` is the corner of each item."""

    width: float
    height: float
    places: dict[str, Point]
    lines: tuple[Line, ...]
    labels: tuple[Label, ...]
