"""The most that any run of a definition can add up to, without looking at its runs one by one.

Along a way costs add up; where exclusive ways meet the larger one counts; what parallel arms cost is put
together by `together` (sums for work, the maximum for time). One pass over the edges per figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from orbit_sdk.check.regions import Region
from orbit_sdk.check.view import View

Together = Callable[[Iterable[int]], int]


def most(view: View, cost: Callable[[str], int], together: Together) -> int:
    """The highest total over all runs of a structurally sound definition; `cost(step)` is not negative."""
    done: dict[str, int] = {}
    for key in view.graph.order:
        done[key] = cost(key) + _before(view, key, done, together)
    return _deepest(view, done, together)


def _before(view: View, key: str, done: dict[str, int], together: Together) -> int:
    """The most spent in this region when a step is reached."""
    graph, regions = view.graph, view.regions
    if graph.kinds[key] != "JOIN":
        # The first step of an arm begins to count anew: the arm is added as a whole at its JOIN.
        return max(
            (0 if edge.arm is not None else done[edge.source] for edge in graph.incoming[key]), default=0
        )
    arms: dict[Region, int] = {}
    for edge in graph.incoming[key]:
        region = regions.of[edge.source]
        arms[region] = max(arms.get(region, 0), done[edge.source])
    return done[graph.parallels[key][0]] + together(arms.values())


def _deepest(view: View, done: dict[str, int], together: Together) -> int:
    """The most that is spent when something ends: the workflow itself, or an arm that fails."""
    regions = view.regions.of
    deepest: dict[Region, int] = {}
    for key, spent in done.items():
        deepest[regions[key]] = max(deepest.get(regions[key], 0), spent)
    for key in sorted(view.parallels, key=lambda key: -len(regions[key])):
        region = regions[key]
        inside = together(deepest[(*region, (key, arm))] for arm in view.parallels[key].arms)
        deepest[region] = max(deepest[region], done[key] + inside)
    return deepest[()]
