"""All rules, in the stages in which they run.

A stage runs when the stages it builds on found no error: what follows from a fault is not told as another
one.
"""

from __future__ import annotations

from orbit_sdk.check.rule import Rule
from orbit_sdk.check.rules import (
    conditions,
    dataflow,
    exhaustive,
    formats,
    graph,
    limits,
    polls,
    references,
    signals,
    structure,
    types,
)
from orbit_sdk.check.view import View

Rules = tuple[Rule[View], ...]

GROUPS: dict[str, Rules] = {
    "references": references.RULES,
    "graph": graph.RULES,
    "structure": structure.RULES,
    "exhaustive": (*exhaustive.ALWAYS_RULES, *exhaustive.TYPED_RULES),
    "data flow": dataflow.RULES,
    "types": (*types.RULES, *conditions.RULES, *formats.RULES, *polls.TYPED_RULES),
    "polls": polls.ALWAYS_RULES,
    "signals": signals.RULES,
    "limits": limits.RULES,
}
"""Every rule, grouped as the reference page groups them."""

ALWAYS: Rules = (
    *references.RULES,
    graph.graph_cycle,
    *exhaustive.ALWAYS_RULES,
    *polls.ALWAYS_RULES,
    *limits.RULES,
)
"""Rules that any readable definition can be asked."""

CONNECTED: Rules = (graph.node_unreachable, graph.node_endless)
"""Rules for definitions whose exits all lead somewhere."""

NESTED: Rules = structure.RULES
"""Rules for connected graphs without a circle."""

TYPED: Rules = (
    *exhaustive.TYPED_RULES,
    *dataflow.RULES,
    *types.RULES,
    *conditions.RULES,
    *formats.RULES,
    *polls.TYPED_RULES,
    *signals.RULES,
)
"""Rules for definitions whose references and structure are sound."""
