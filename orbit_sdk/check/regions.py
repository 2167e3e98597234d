"""Which parallel arm every node lies in, found in one pass along the topological order.

A node's *region* is the stack of arms that are open when it runs. All edges into a node must agree on it; a
JOIN closes the innermost arm. This is the nesting that the design asks for, said locally: an arm is then
exactly what is reachable from its entry without passing the JOIN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.check.graph import Edge, Graph

Region = tuple[tuple[str, str], ...]
"""Open arms from the outermost: (PARALLEL, arm name)."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Two edges into one node that come from different regions."""

    node: str
    first: Edge
    second: Edge
    first_region: Region
    second_region: Region

    @property
    def is_overlap(self) -> bool:
        """Whether two arms of one PARALLEL meet here (else an edge enters or leaves an arm sideways)."""
        for (left, left_arm), (right, right_arm) in zip(self.first_region, self.second_region, strict=False):
            if left != right:
                return False
            if left_arm != right_arm:
                return True
        return False


@dataclass(frozen=True, slots=True)
class WrongJoin:
    """An edge into a JOIN that does not come from an arm of the JOIN's own PARALLEL."""

    edge: Edge
    region: Region


@dataclass(frozen=True, slots=True)
class Regions:
    """`of` lacks a node whose region cannot be told (behind a clash); nothing more is said about those."""

    of: Mapping[str, Region]
    clashes: tuple[Clash, ...]
    wrong_joins: tuple[WrongJoin, ...]
    joined: frozenset[tuple[str, str]]

    def of_edge(self, edge: Edge) -> Region | None:
        return _of_edge(self.of, edge)


def find_regions(graph: Graph) -> Regions:
    """Walk an acyclic graph once."""
    of: dict[str, Region] = {}
    clashes: list[Clash] = []
    wrong: list[WrongJoin] = []
    joined: set[tuple[str, str]] = set()
    for key in graph.order:
        known = [(edge, region) for edge in graph.incoming[key] if (region := _of_edge(of, edge)) is not None]
        if graph.kinds[key] == "JOIN":
            inner = [(edge, region) for edge, region in known if _closes(graph, key, region)]
            wrong.extend(WrongJoin(edge, region) for edge, region in known if not _closes(graph, key, region))
            joined.update(region[-1] for _, region in inner)
            known = [(edge, region[:-1]) for edge, region in inner]
        elif key == graph.start and not graph.incoming[key]:
            of[key] = ()
        clash = _clash(key, known)
        if clash is not None:
            clashes.append(clash)
        elif known:
            of[key] = known[0][1]
    return Regions(of, tuple(clashes), tuple(wrong), frozenset(joined))


def _closes(graph: Graph, join: str, region: Region) -> bool:
    return bool(region) and graph.joins.get(region[-1][0]) == join


def _of_edge(of: Mapping[str, Region], edge: Edge) -> Region | None:
    region = of.get(edge.source)
    if region is None or edge.arm is None:
        return region
    return (*region, (edge.source, edge.arm))


def _clash(key: str, known: list[tuple[Edge, Region]]) -> Clash | None:
    for edge, region in known[1:]:
        first, first_region = known[0]
        if region != first_region:
            return Clash(key, first, edge, first_region, region)
    return None
