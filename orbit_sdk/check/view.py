"""One definition as the rules see it: what several rules need, worked out once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from orbit_sdk.check.diagnostics import Path
from orbit_sdk.check.fits import Fitter
from orbit_sdk.check.flow import flow
from orbit_sdk.check.graph import Edge, Graph
from orbit_sdk.check.narrow import NOTHING, Proofs, certain, proofs
from orbit_sdk.check.regions import Regions, find_regions
from orbit_sdk.check.typing import Typer
from orbit_sdk.definition.expressions import Condition, Expression, FactKey, Ref
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import (
    BranchOnNode,
    BranchWhenNode,
    MergeNode,
    Node,
    ParallelNode,
    PollNode,
    TaskNode,
    WaitNode,
    exits,
    expressions_of,
)
from orbit_sdk.definition.validate_value import Validator, compile_validator
from orbit_sdk.definition.value_types import TypeSchema
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import Limits

T = TypeVar("T")

ALWAYS_KNOWN: Proofs = frozenset({FactKey("input"), FactKey("instance")})


@dataclass(frozen=True, slots=True)
class Placed:
    """An expression or condition with its path in the document and what is known where it is evaluated.

    `known` is None where the place itself is at fault (a MERGE input for an edge that does not exist).
    """

    path: Path
    item: Expression | Condition
    known: Proofs | None


class View:
    """Read by all rules. `regions` needs an acyclic graph; `known` and `placed` one without faults."""

    def __init__(self, definition: Definition, limits: Limits) -> None:
        self.definition = definition
        self.limits = limits
        self.nodes: Mapping[str, Node] = definition.nodes
        self._once: dict[object, tuple[Any, ...]] = {}
        self._validators: dict[int, tuple[TypeSchema, Validator]] = {}
        self._decided: dict[str, Mapping[str, Proofs]] = {}

    @cached_property
    def parallels(self) -> Mapping[str, ParallelNode]:
        return {key: node for key, node in self.nodes.items() if isinstance(node, ParallelNode)}

    @cached_property
    def graph(self) -> Graph:
        kinds = {key: str(node.kind) for key, node in self.nodes.items()}
        joins = {key: node.join for key, node in self.parallels.items() if kinds.get(node.join) == "JOIN"}
        edges = (
            Edge(key, exit_name, target, exit_path(key, exit_name), _arm(node, exit_name))
            for key, node in self.nodes.items()
            for exit_name, target in exits(node)
            if target in kinds
        )
        return Graph(self.definition.start, kinds, tuple(edges), joins)

    @cached_property
    def regions(self) -> Regions:
        return find_regions(self.graph)

    @cached_property
    def known(self) -> tuple[Mapping[str, Proofs], Mapping[Edge, Proofs]]:
        """What is known at each node and behind each edge."""
        return flow(self.graph, self.regions, ALWAYS_KNOWN, self._adds)

    @cached_property
    def fitter(self) -> Fitter:
        return Fitter(self.definition.types, self.accepts)

    @cached_property
    def typer(self) -> Typer:
        return Typer(self.definition, self.fitter)

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """Every expression and condition of every node."""
        return tuple(item for key, node in self.nodes.items() for item in self._placed(key, node))

    def once(self, find: Callable[[View], Iterable[T]]) -> tuple[T, ...]:
        """What a function finds in this definition; it is asked once, however many rules need it."""
        found = self._once.get(find)
        if found is None:
            found = self._once[find] = tuple(find(self))
        return found

    def accepts(self, schema: TypeSchema, value: Json) -> bool:
        """Whether a value is of a type of this document, as the running workflow judges it."""
        known = self._validators.get(id(schema))
        if known is None:
            known = self._validators[id(schema)] = (schema, compile_validator(schema, self.definition.types))
        return not known[1](value)

    def merge_edge(self, key: str, source: str, exit_name: str) -> Edge | None:
        """The edge into a MERGE that one of its inputs names."""
        for edge in self.graph.incoming[key]:
            if edge.source == source and edge.exit == exit_name:
                return edge
        return None

    def _placed(self, key: str, node: Node) -> list[Placed]:
        at, behind = self.known
        found: list[Placed] = []
        refuted = NOTHING
        for place in expressions_of(node):
            known: Proofs | None = at[key]
            if isinstance(node, MergeNode):
                entry = node.inputs[int(place.path[1])]
                edge = self.merge_edge(key, entry.from_, entry.exit)
                known = None if edge is None else behind[edge]
            elif isinstance(node, BranchWhenNode):
                known = at[key] | refuted
                refuted |= proofs(node.cases[int(place.path[1])].when)[1]
            found.append(Placed(("nodes", key, *place.path), place.item, known))
        return found

    def _adds(self, edge: Edge) -> Proofs:
        node = self.nodes[edge.source]
        if isinstance(node, BranchOnNode):
            return _chosen(node, edge.exit)
        if isinstance(node, BranchWhenNode):
            if edge.source not in self._decided:
                self._decided[edge.source] = _decided(node)
            return self._decided[edge.source][edge.exit]
        return facts_of_exit(edge.source, node, edge.exit)


def facts_of_exit(key: str, node: Node, exit_name: str) -> frozenset[FactKey]:
    """The facts that a node leaves behind when it is left over this exit."""
    match node, exit_name:
        case TaskNode() | MergeNode(), "next":
            return frozenset({FactKey("step", key)})
        case TaskNode(), "on_failure":
            return frozenset({FactKey("step", key, "failure")})
        case WaitNode(), "next":
            return frozenset({FactKey("step", key), FactKey("step", key, "meta")})
        case PollNode(), _:
            return frozenset({FactKey("step", key)})
        case _:
            return frozenset()


def exit_path(key: str, exit_name: str) -> Path:
    """Where an exit's target stands in the document."""
    first, _, rest = exit_name.partition(".")
    if first == "cases":
        return ("nodes", key, "cases", int(rest), "next")
    if first == "arms":
        return ("nodes", key, "arms", rest)
    return ("nodes", key, first) if first in ("next", "otherwise") else ("nodes", key, first, "next")


def _arm(node: Node, exit_name: str) -> str | None:
    return exit_name.removeprefix("arms.") if isinstance(node, ParallelNode) else None


def _chosen(node: BranchOnNode, exit_name: str) -> Proofs:
    """A case without null, or what is left when null has its own case, proves that the value is there."""
    if not isinstance(node.on, Ref):
        return NOTHING
    if exit_name == "otherwise":
        excluded = any(None in case.equals for case in node.cases)
    else:
        excluded = None not in node.cases[_case(exit_name)].equals
    return certain(node.on) if excluded else NOTHING


def _decided(node: BranchWhenNode) -> Mapping[str, Proofs]:
    """What each exit proves: its condition holds, and all before it failed."""
    found: dict[str, Proofs] = {}
    refuted = NOTHING
    for index, case in enumerate(node.cases):
        holds, fails = proofs(case.when)
        found[f"cases.{index}"] = refuted | holds
        refuted |= fails
    return found | {"otherwise": refuted}


def _case(exit_name: str) -> int:
    return int(exit_name.removeprefix("cases."))
