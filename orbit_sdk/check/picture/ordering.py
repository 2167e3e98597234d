"""The order inside each row, with few crossings: sweeps that put each spot at the mean of its neighbours."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from itertools import pairwise

from orbit_sdk.check.picture.layers import Joint, Rows, Spot

SWEEPS = 12


def reorder(rows: Rows) -> None:
    """Change the order of each row in place; the best of all sweeps from several beginnings stays."""
    beginning = [list(row) for row in rows]
    best, fewest = beginning, crossings(beginning)
    for first in (0, 1):
        for mirrored in (False, True):
            tried = [row[::-1] if mirrored else list(row) for row in beginning]
            for sweep in range(first, SWEEPS + first):
                if fewest == 0:
                    break
                _sweep(tried, downwards=sweep % 2 == 0)
                found = crossings(tried)
                if found < fewest:
                    best, fewest = [list(row) for row in tried], found
    rows[:] = best


def _sweep(rows: Rows, *, downwards: bool) -> None:
    if downwards:
        for above, row in pairwise(rows):
            _sort(row, above, lambda spot: spot.before, lambda joint: joint.upper)
    else:
        for row, below in zip(reversed(rows[:-1]), reversed(rows[1:]), strict=True):
            _sort(row, below, lambda spot: spot.after, lambda joint: joint.lower)


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
