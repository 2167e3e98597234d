"""From items and wires to rows: each item below everything that leads to it, each long wire through all rows
between its ends.

Rows hold items, the texts on wires, and the bends of wires that pass. Because texts and passing wires have
places of their own in their rows, nothing that is drawn later can lie on top of something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orbit_sdk.check.picture.shapes import Item, Way, Wire

LABEL_HEIGHT = 18.0
LABEL_CHAR = 6.3
BEND_WIDTH = 10.0


@dataclass(eq=False, slots=True)
class Spot:
    """Something with a place in a row: an item, a text, or the bend of a wire that passes."""

    row: int
    width: float
    height: float
    item: Item | None = None
    wire: Wire | None = None
    before: list[Joint] = field(default_factory=list)
    after: list[Joint] = field(default_factory=list)
    x: float = 0.0

    @property
    def is_bend(self) -> bool:
        return self.item is None and self.wire is None


@dataclass(eq=False, slots=True)
class Joint:
    """Two spots of neighbouring rows with a wire between them; `weight` is how straight it wants to be."""

    upper: Spot
    lower: Spot
    way: Way
    weight: float


Rows = list[list[Spot]]


def rows_of(items: Sequence[Item], wires: Sequence[Wire], last: str) -> Rows:
    """The rows, each in the order in which a walk along the wires meets its spots.

    The item `last`, where there is one, lies below everything else.
    """
    rank = _ranks(items, wires)
    if last in rank:
        rank[last] = 1 + max(level for key, level in rank.items() if key != last)
    labelled = {rank[wire.source] for wire in wires if wire.label}
    number: dict[int, int] = {}
    for level in range(max(rank.values()) + 1):
        number[level] = level + sum(1 for other in labelled if other < level)
    weaver = _Weaver(items, wires, {key: number[level] for key, level in rank.items()})
    return weaver.rows(walked(items, wires))


def walked(items: Sequence[Item], wires: Sequence[Wire]) -> list[str]:
    """The ids in the order of a walk that follows the first wire out of each item first."""
    after: dict[str, list[str]] = {item.id: [] for item in items}
    entered: set[str] = set()
    for wire in wires:
        after[wire.source].append(wire.target)
        entered.add(wire.target)
    todo = [item.id for item in reversed(items) if item.id not in entered]
    seen: dict[str, None] = {}
    while todo:
        key = todo.pop()
        if key not in seen:
            seen[key] = None
            todo.extend(reversed(after[key]))
    return list(seen)


def _ranks(items: Sequence[Item], wires: Sequence[Wire]) -> dict[str, int]:
    """The longest way from a beginning to each item."""
    missing = {item.id: 0 for item in items}
    after: dict[str, list[str]] = {item.id: [] for item in items}
    for wire in wires:
        missing[wire.target] += 1
        after[wire.source].append(wire.target)
    rank = dict.fromkeys(missing, 0)
    ready = [key for key, count in missing.items() if count == 0]
    while ready:
        key = ready.pop()
        for target in after[key]:
            rank[target] = max(rank[target], rank[key] + 1)
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)
    return rank


class _Weaver:
    """Puts in texts and bends. Wires of one kind to one target share their bends."""

    def __init__(self, items: Sequence[Item], wires: Sequence[Wire], row: Mapping[str, int]) -> None:
        self._spots = {item.id: Spot(row[item.id], item.width, item.height, item) for item in items}
        self._wires = wires
        self._bends: dict[tuple[str, Way, int], Spot] = {}
        self._extra: dict[str, list[Spot]] = {item.id: [] for item in items}
        self._joined: set[tuple[int, int, Way]] = set()

    def rows(self, order: Sequence[str]) -> Rows:
        for wire in self._wires:
            self._weave(wire)
        rows: Rows = [[] for _ in range(max(spot.row for spot in self._spots.values()) + 1)]
        for key in order:
            for spot in (self._spots[key], *self._extra[key]):
                rows[spot.row].append(spot)
        return rows

    def _weave(self, wire: Wire) -> None:
        current, target = self._spots[wire.source], self._spots[wire.target]
        if wire.label:
            text = Spot(current.row + 1, len(wire.label) * LABEL_CHAR + 12, LABEL_HEIGHT, wire=wire)
            self._extra[wire.source].append(text)
            self._join(current, text, wire.way)
            current = text
        while current.row + 1 < target.row:
            place = (wire.target, wire.way, current.row + 1)
            bend = self._bends.get(place)
            if bend is None:
                bend = self._bends[place] = Spot(current.row + 1, BEND_WIDTH, 0)
                self._extra[wire.source].append(bend)
            self._join(current, bend, wire.way)
            current = bend
        self._join(current, target, wire.way)

    def _join(self, upper: Spot, lower: Spot, way: Way) -> None:
        mark = (id(upper), id(lower), way)
        if mark in self._joined:
            return
        self._joined.add(mark)
        weight = 8.0 if upper.is_bend and lower.is_bend else 3.0 if way in (Way.NEXT, Way.ARM) else 1.0
        joint = Joint(upper, lower, way, weight)
        upper.after.append(joint)
        lower.before.append(joint)
