"""The order inside each row, with few crossings: sweeps that put each spot at the mean of its neighbours."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import pairwise

from orbit_sdk.check.picture.layers import Joint, Rows, Spot

SWEEPS = 12


def reorder(rows: Rows) -> None:
    """Change the order of each row in place; the best order of all sweeps stays."""
    best = [list(row) for row in rows]
    fewest = crossings(rows)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        if sweep % 2 == 0:
            for above, row in pairwise(rows):
                _sort(row, above, lambda spot: spot.before, lambda joint: joint.upper)
        else:
            for row, below in zip(reversed(rows[:-1]), reversed(rows[1:]), strict=True):
                _sort(row, below, lambda spot: spot.after, lambda joint: joint.lower)
        found = crossings(rows)
        if found < fewest:
            fewest, best = found, [list(row) for row in rows]
    rows[:] = best


def crossings(rows: Rows) -> int:
    """How many pairs of wires cross between neighbouring rows."""
    total = 0
    for row, below in pairwise(rows):
        place = {id(spot): index for index, spot in enumerate(below)}
        passed: list[int] = []
        for spot in row:
            targets = sorted(place[id(joint.lower)] for joint in spot.after)
            total += sum(len(passed) - bisect_right(passed, target) for target in targets)
            for target in targets:
                insort(passed, target)
    return total


def _sort(
    row: list[Spot],
    fixed: Sequence[Spot],
    joints: Callable[[Spot], Sequence[Joint]],
    other: Callable[[Joint], Spot],
) -> None:
    place = {id(spot): index for index, spot in enumerate(fixed)}
    wanted: dict[int, float] = {}
    for index, spot in enumerate(row):
        near = [place[id(other(joint))] for joint in joints(spot)]
        # Without neighbours it stays where it is, in proportion.
        wanted[id(spot)] = sum(near) / len(near) if near else index * max(1, len(fixed)) / max(1, len(row))
    row.sort(key=lambda spot: wanted[id(spot)])
