"""From ordered rows to coordinates: wires as straight as the order and the widths allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orbit_sdk.check.picture.layers import Joint, Rows, Spot, rows_of
from orbit_sdk.check.picture.ordering import reorder
from orbit_sdk.check.picture.shapes import Arrangement, Item, Label, Line, Point, Wire

SWEEPS = 24
LAST_SWEEPS = 6
BETWEEN = 22.0
"""Free space between neighbours in a row."""
ROW_GAP = 26.0
LABEL_GAP = 12.0
PORT_GAP = 22.0


def arrange(items: Sequence[Item], wires: Sequence[Wire], last: str) -> Arrangement:
    """Place items without circles among their wires; the item `last`, if there, at the bottom."""
    rows = rows_of(items, wires, last)
    reorder(rows)
    _place(rows)
    left = min(spot.x - spot.width / 2 for row in rows for spot in row)
    for row in rows:
        for spot in row:
            spot.x -= left
    width = max(spot.x + spot.width / 2 for row in rows for spot in row)
    tops, bottoms = _heights(rows)
    places = {
        spot.item.id: (spot.x - spot.width / 2, tops[spot.row])
        for row in rows
        for spot in row
        if spot.item is not None
    }
    labels = tuple(
        Label(spot.wire.way, spot.wire.label, spot.wire.hint, spot.x, tops[spot.row])
        for row in rows
        for spot in row
        if spot.wire is not None
    )
    return Arrangement(width, bottoms[-1], places, tuple(_lines(rows, tops, bottoms)), labels)


def _place(rows: Rows) -> None:
    for row in rows:
        _pack(row, [0.0] * len(row), [1.0] * len(row))
    for sweep in range(SWEEPS):
        last = sweep >= SWEEPS - LAST_SWEEPS
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _settle(row, _upper if sweep % 2 == 0 else _lower, both=last)


def _upper(spot: Spot) -> list[tuple[Spot, Joint]]:
    return [(joint.upper, joint) for joint in spot.before]


def _lower(spot: Spot) -> list[tuple[Spot, Joint]]:
    return [(joint.lower, joint) for joint in spot.after]


def _settle(row: list[Spot], side: Callable[[Spot], list[tuple[Spot, Joint]]], *, both: bool) -> None:
    wanted: list[float] = []
    weights: list[float] = []
    for spot in row:
        near = [*_upper(spot), *_lower(spot)] if both else side(spot)
        weight = sum(joint.weight for _, joint in near)
        middle = sum(other.x * joint.weight for other, joint in near) / weight if near else spot.x
        wanted.append(middle)
        weights.append(weight if near else 0.1)
    _pack(row, wanted, weights)


def _pack(row: list[Spot], wanted: list[float], weights: list[float]) -> None:
    """As near as possible to what each wants, in order and without overlap (pooling of neighbours)."""
    shift = 0.0
    shifts: list[float] = []
    for index, spot in enumerate(row):
        if index:
            shift += (row[index - 1].width + spot.width) / 2 + BETWEEN
        shifts.append(shift)
    pools: list[tuple[float, float, int]] = []
    for index in range(len(row)):
        value, weight, count = wanted[index] - shifts[index], weights[index], 1
        while pools and pools[-1][0] > value:
            before, heavy, many = pools.pop()
            value = (before * heavy + value * weight) / (heavy + weight)
            weight, count = weight + heavy, count + many
        pools.append((value, weight, count))
    settled = [value for value, _, count in pools for _ in range(count)]
    for spot, value, moved in zip(row, settled, shifts, strict=True):
        spot.x = value + moved


def _heights(rows: Rows) -> tuple[list[float], list[float]]:
    """Top and bottom of each row; the gap grows with how far its wires go sideways."""
    tops: list[float] = []
    bottoms: list[float] = []
    y = 0.0
    for index, row in enumerate(rows):
        if index:
            joints = [joint for spot in row for joint in spot.before]
            far = max((abs(joint.upper.x - joint.lower.x) for joint in joints), default=0.0)
            texts = any(spot.wire is not None for spot in (*row, *rows[index - 1]))
            y += (LABEL_GAP if texts else ROW_GAP) + min(40.0, 0.07 * far)
        tops.append(y)
        y += max(spot.height for spot in row)
        bottoms.append(y)
    return tops, bottoms


def _lines(rows: Rows, tops: list[float], bottoms: list[float]) -> list[Line]:
    lines: list[Line] = []
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for row in rows:
        for spot in row:
            _ports(spot, spot.after, lambda joint: joint.lower.x, starts)
            _ports(spot, spot.before, lambda joint: joint.upper.x, ends)
    for row in rows:
        for spot in row:
            lines.extend(
                _line(joint, (starts[id(joint)], ends[id(joint)]), tops, bottoms) for joint in spot.after
            )
    return lines


def _ports(spot: Spot, joints: list[Joint], far: Callable[[Joint], float], into: dict[int, float]) -> None:
    """Where each wire touches the spot: side by side, in the order of the other ends."""
    gap = 0.0
    if spot.item is not None and len(joints) > 1:
        gap = min(PORT_GAP, spot.item.port_width / (len(joints) - 1))
    for index, joint in enumerate(sorted(joints, key=far)):
        into[id(joint)] = spot.x + (index - (len(joints) - 1) / 2) * gap


def _line(joint: Joint, ports: tuple[float, float], tops: list[float], bottoms: list[float]) -> Line:
    """Straight down to the end of its row, over to the other port, and straight down through a bend."""
    upper, lower = joint.upper, joint.lower
    start, end = ports
    leaves = tops[upper.row] if upper.is_bend else tops[upper.row] + upper.height
    points: list[Point] = [(start, leaves), (start, bottoms[upper.row]), (end, tops[lower.row])]
    return Line(joint.way, tuple(points), arrow=lower.item is not None and lower.height > 0)
