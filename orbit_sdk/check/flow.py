"""What is certain to be known where: facts carried forward over the edges in one pass.

Exclusive ways that meet keep what both bring. Arms that join keep, per arm, what each of its edges brings,
and then everything of all arms, because a JOIN goes on only when every arm has come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TypeVar

from orbit_sdk.check.graph import Edge, Graph
from orbit_sdk.check.regions import Regions

Fact = TypeVar("Fact")


def flow(
    graph: Graph, regions: Regions, start: frozenset[Fact], adds: Callable[[Edge], frozenset[Fact]]
) -> tuple[Mapping[str, frozenset[Fact]], Mapping[Edge, frozenset[Fact]]]:
    """What is known at each node, and behind each edge, of a graph without structural faults.

    `adds(edge)` is what taking this edge adds to what its source knew.
    """
    at: dict[str, frozenset[Fact]] = {}
    behind: dict[Edge, frozenset[Fact]] = {}
    for key in graph.order:
        edges = graph.incoming[key]
        if not edges:
            at[key] = start
        elif graph.kinds[key] == "JOIN":
            at[key] = _joined(edges, regions, behind)
        else:
            at[key] = reduce(frozenset.intersection, (behind[edge] for edge in edges))
        for edge in graph.outgoing[key]:
            behind[edge] = at[key] | adds(edge)
    return at, behind


def _joined(
    edges: Sequence[Edge], regions: Regions, behind: Mapping[Edge, frozenset[Fact]]
) -> frozenset[Fact]:
    by_arm: dict[object, frozenset[Fact]] = {}
    for edge in edges:
        arm = regions.of_edge(edge)
        known = by_arm.get(arm)
        by_arm[arm] = behind[edge] if known is None else known & behind[edge]
    return frozenset().union(*by_arm.values())
