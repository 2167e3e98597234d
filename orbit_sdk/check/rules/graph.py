"""The definition as a graph: it has a beginning, it goes on, it ends."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View


@rule(
    "GRAPH_CYCLE",
    remedy="Break the circle; repeated questions are a POLL, waiting is a WAIT or a TIMER.",
)
def graph_cycle(view: View) -> Iterator[Finding]:
    """Steps lead in a circle."""
    for cycle in view.graph.cycles:
        first = cycle[0]
        way = " -> ".join([*(f"'{edge.source}'" for edge in cycle), f"'{first.source}'"])
        yield Finding(
            first.path,
            f"These steps lead in a circle: {way}.",
            related=tuple((edge.path, f"'{edge.source}' leads to '{edge.target}'") for edge in cycle),
        )


@rule(
    "NODE_UNREACHABLE",
    remedy="Lead some step to it or remove it.",
)
def node_unreachable(view: View) -> Iterator[Finding]:
    """No way from the start leads to a step."""
    for key in view.graph.kinds:
        if key not in view.graph.reached:
            yield Finding(("nodes", key), f"No way from the start leads to '{key}'.")


@rule(
    "NODE_ENDLESS",
    remedy="Lead it, directly or through others, to an END.",
)
def node_endless(view: View) -> Iterator[Finding]:
    """From a step no END can be reached."""
    circling = {edge.source for cycle in view.graph.cycles for edge in cycle}
    for key in view.graph.kinds:
        if key not in view.graph.ending and key not in circling:
            yield Finding(("nodes", key), f"From '{key}' no END can be reached.")


RULES = (graph_cycle, node_unreachable, node_endless)
"""`graph_cycle` holds for any graph; the others are told only when every exit leads somewhere."""
