"""The definition as a multigraph, and the few linear passes over it that every rule shares.

Nothing here enumerates paths: each pass visits each edge a bounded number of times. A graph without faults
is read with plain passes; networkx is loaded only to explain one that has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from orbit_sdk.check.diagnostics import Path


@dataclass(frozen=True, slots=True)
class Edge:
    """One way out of a node. `arm` names the arm when the source is a PARALLEL."""

    source: str
    exit: str
    target: str
    path: Path
    arm: str | None = None


@dataclass(frozen=True)
class Graph:
    """Nodes by kind and the edges between nodes that exist; an exit to nowhere is no edge.

    `joins` maps each PARALLEL to its JOIN where that node exists and is one.
    """

    start: str
    kinds: Mapping[str, str]
    edges: tuple[Edge, ...]
    joins: Mapping[str, str]

    @cached_property
    def outgoing(self) -> Mapping[str, Sequence[Edge]]:
        found: dict[str, list[Edge]] = {key: [] for key in self.kinds}
        for edge in self.edges:
            found[edge.source].append(edge)
        return found

    @cached_property
    def incoming(self) -> Mapping[str, Sequence[Edge]]:
        found: dict[str, list[Edge]] = {key: [] for key in self.kinds}
        for edge in self.edges:
            found[edge.target].append(edge)
        return found

    @cached_property
    def parallels(self) -> Mapping[str, Sequence[str]]:
        """The PARALLELs that name each JOIN; exactly one in a sound definition."""
        found: dict[str, list[str]] = {}
        for parallel, join in self.joins.items():
            found.setdefault(join, []).append(parallel)
        return found

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All nodes, each after every node that leads to it; shorter than the graph when there is a cycle."""
        missing = {key: len(edges) for key, edges in self.incoming.items()}
        ready = [key for key, count in missing.items() if count == 0]
        done: list[str] = []
        while ready:
            key = ready.pop()
            done.append(key)
            for edge in self.outgoing[key]:
                missing[edge.target] -= 1
                if missing[edge.target] == 0:
                    ready.append(edge.target)
        return tuple(done)

    @property
    def is_acyclic(self) -> bool:
        return len(self.order) == len(self.kinds)

    @cached_property
    def reached(self) -> frozenset[str]:
        """Nodes that can be reached from the start. A PARALLEL counts as leading to its JOIN: arms that never
        get there are a fault of the arms, not of everything that follows.
        """
        return self._closure([self.start] if self.start in self.kinds else [], forward=True)

    @cached_property
    def ending(self) -> frozenset[str]:
        """Nodes from which some END can be reached."""
        return self._closure([key for key, kind in self.kinds.items() if kind == "END"], forward=False)

    @cached_property
    def cycles(self) -> tuple[tuple[Edge, ...], ...]:
        """One cycle out of every group of nodes that lead to each other."""
        if self.is_acyclic:
            return ()
        import networkx as nx

        whole: nx.MultiDiGraph[str] = nx.MultiDiGraph((edge.source, edge.target) for edge in self.edges)
        found: list[tuple[Edge, ...]] = []
        for group in nx.strongly_connected_components(whole):
            # Built in the order of the document, so that the same definition always shows the same circle.
            part: nx.MultiDiGraph[str] = nx.MultiDiGraph()
            for edge in self.edges:
                if edge.source in group and edge.target in group:
                    part.add_edge(edge.source, edge.target, edge=edge)
            if part.number_of_edges():
                found.append(_from_smallest([part.edges[step]["edge"] for step in nx.find_cycle(part)]))
        return tuple(sorted(found, key=lambda cycle: cycle[0].source))

    @cached_property
    def later(self) -> Mapping[str, int]:
        """For each node of an acyclic graph, the nodes that can follow it, as bits numbered by `order`."""
        found: dict[str, int] = {}
        bit = self.bit
        for key in reversed(self.order):
            bits = 0
            for edge in self.outgoing[key]:
                bits |= found[edge.target] | 1 << bit[edge.target]
            found[key] = bits
        return found

    @cached_property
    def bit(self) -> Mapping[str, int]:
        return {key: number for number, key in enumerate(self.order)}

    def leads(self, first: str, second: str) -> bool:
        """Whether some path goes from `first` to `second`."""
        return bool(self.later[first] >> self.bit[second] & 1)

    def _closure(self, seeds: Iterable[str], *, forward: bool) -> frozenset[str]:
        seen = set(seeds)
        todo = list(seen)
        while todo:
            key = todo.pop()
            for next_key in self._after(key) if forward else self._before(key):
                if next_key not in seen:
                    seen.add(next_key)
                    todo.append(next_key)
        return frozenset(seen)

    def _after(self, key: str) -> Iterable[str]:
        yield from (edge.target for edge in self.outgoing[key])
        if key in self.joins:
            yield self.joins[key]

    def _before(self, key: str) -> Iterable[str]:
        yield from (edge.source for edge in self.incoming[key])
        yield from self.parallels.get(key, ())


def _from_smallest(cycle: list[Edge]) -> tuple[Edge, ...]:
    """The same circle, told from the step with the smallest key."""
    first = min(range(len(cycle)), key=lambda index: cycle[index].source)
    return (*cycle[first:], *cycle[:first])
