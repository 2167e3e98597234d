"""What a step reads is certain to be there, and a MERGE knows every way it can be reached."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.diagnostics import Path
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.check.words import fact_text, ref_text
from orbit_sdk.definition.expressions import FactKey, refs_of
from orbit_sdk.definition.nodes import MergeNode


@rule(
    "FACT_UNCERTAIN",
    remedy="Read it only behind the step that makes it, or let a MERGE choose a value for every way.",
)
def fact_uncertain(view: View) -> Iterator[Finding]:
    """A reference reads something that is not there on every way to this place."""
    for place in view.placed:
        if place.known is None:
            continue
        for inner, ref in refs_of(place.item):
            if ref.fact not in place.known:
                key = str(place.path[1])
                yield Finding(
                    (*place.path, *inner),
                    f"{ref_text(ref)} at '{key}': {_why(view, ref.fact, key)}",
                    related=_way_without(view, ref.fact, key),
                )


def _why(view: View, fact: FactKey, key: str) -> str:
    what = fact_text(fact)
    if fact.step == key:
        return f"{what} does not exist before the step itself has run."
    if view.graph.leads(fact.step, key):
        return f"{what} is not there on every way to '{key}'."
    if view.graph.leads(key, fact.step):
        return f"{what} exists only later."
    return f"{what} is made on another way."


def _way_without(view: View, fact: FactKey, key: str) -> tuple[tuple[Path, str], ...]:
    """One way from the start on which the fact never appears, in order."""
    if not view.graph.leads(fact.step, key):
        return ()
    _, behind = view.known
    way: list[tuple[Path, str]] = []
    while True:
        lacking = [edge for edge in view.graph.incoming[key] if fact not in behind[edge]]
        if not lacking:
            return tuple(reversed(way))
        edge = lacking[0]
        way.append((edge.path, f"this way leads to '{edge.target}' without it"))
        key = edge.source


@rule(
    "MERGE_INPUT_MISSING",
    remedy="Add an input that names the step and the exit.",
)
def merge_input_missing(view: View) -> Iterator[Finding]:
    """A MERGE can be reached over an edge for which it has no input."""
    for key, node in _merges(view):
        named = {(item.from_, item.exit) for item in node.inputs}
        for edge in view.graph.incoming[key]:
            if (edge.source, edge.exit) not in named:
                yield Finding(
                    ("nodes", key, "inputs"),
                    f"MERGE '{key}' has no input for exit {edge.exit} of '{edge.source}'.",
                    related=((edge.path, "leads to the MERGE"),),
                )


@rule(
    "MERGE_INPUT_UNKNOWN",
    remedy="Name a step and an exit that lead to the MERGE, or remove the input.",
)
def merge_input_unknown(view: View) -> Iterator[Finding]:
    """An input of a MERGE names an edge that does not lead to it."""
    for key, node in _merges(view):
        for index, item in enumerate(node.inputs):
            if view.merge_edge(key, item.from_, item.exit) is None:
                yield Finding(
                    ("nodes", key, "inputs", index),
                    f"Exit {item.exit} of '{item.from_}' does not lead to MERGE '{key}'.",
                )


@rule(
    "MERGE_INPUT_REPEATED",
    remedy="Keep one input for each edge.",
)
def merge_input_repeated(view: View) -> Iterator[Finding]:
    """Two inputs of a MERGE name the same edge."""
    for key, node in _merges(view):
        seen: dict[tuple[str, str], int] = {}
        for index, item in enumerate(node.inputs):
            first = seen.setdefault((item.from_, item.exit), index)
            if first != index:
                yield Finding(
                    ("nodes", key, "inputs", index),
                    f"MERGE '{key}' has two inputs for exit {item.exit} of '{item.from_}'.",
                    related=((("nodes", key, "inputs", first), "the first of them"),),
                )


def _merges(view: View) -> Iterator[tuple[str, MergeNode]]:
    for key, node in view.nodes.items():
        if isinstance(node, MergeNode):
            yield key, node


RULES = (fact_uncertain, merge_input_missing, merge_input_unknown, merge_input_repeated)
