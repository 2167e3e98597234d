"""The budget, worked out region by region, equals what every single run of a small definition adds up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orbit_sdk.check import sound_view
from orbit_sdk.check.budget import budget_of
from orbit_sdk.check.budget.totals import most
from orbit_sdk.definition.models import load_definition
from orbit_sdk.definition.nodes import ParallelNode, exits
from tests.property.check_graphs import sound_nodes, whole
from tests.property.strategies import documents

Total = tuple[int, bool]
"""What a run has cost, and whether it reached the JOIN it was asked to reach (else it ended)."""


def runs(
    nodes: Any, key: str, until: str, cost: Callable[[str], int], together: Callable[[Iterable[int]], int]
) -> Iterator[Total]:
    """Every way from a step to `until` (a JOIN) or to an end, one by one."""
    if key == until:
        yield 0, True
        return
    node = nodes[key]
    if isinstance(node, ParallelNode):
        arms = [list(runs(nodes, entry, node.join, cost, together)) for entry in node.arms.values()]
        for chosen in product(*arms):
            spent = cost(key) + together(total for total, _ in chosen)
            if not all(joined for _, joined in chosen):
                yield spent, False
                continue
            after = nodes[node.join].next
            for rest, joined in runs(nodes, after, until, cost, together):
                yield spent + cost(node.join) + rest, joined
        return
    targets = [target for _, target in exits(node)]
    if not targets:
        yield cost(key), False
    for target in targets:
        for rest, joined in runs(nodes, target, until, cost, together):
            yield cost(key) + rest, joined


@settings(max_examples=300)
@given(st.one_of(documents(8, 2), sound_nodes().map(lambda made: whole(*made))), st.data())
def test_the_most_of_a_definition_is_the_most_of_its_runs(
    document: dict[str, Any], data: st.DataObject
) -> None:
    definition = load_definition(document)
    nodes = definition.nodes
    assume(_count(nodes, definition.start) <= 20_000)
    costs = {key: data.draw(st.integers(0, 9)) for key in sorted(nodes)}
    view = sound_view(definition)
    for together in (sum, max):
        totals = runs(nodes, definition.start, "", costs.__getitem__, together)
        assert most(view, costs.__getitem__, together) == max(total for total, _ in totals)


def _count(nodes: Any, start: str) -> int:
    """How many runs there are, at most: a bound that is quick to find."""
    known: dict[str, int] = {}

    def of(key: str) -> int:
        if key not in known:
            known[key] = 1  # an arm ends at its JOIN, which is counted with what follows it
            parts = [of(target) for _, target in exits(nodes[key])]
            if isinstance(nodes[key], ParallelNode):
                together = 1
                for part in parts:
                    together *= part
                known[key] = together
            else:
                known[key] = max(1, sum(parts))
        return known[key]

    return of(start)


@settings(max_examples=100)
@given(documents())
def test_one_more_attempt_never_makes_a_budget_smaller(document: dict[str, Any]) -> None:
    before = budget_of(load_definition(document))
    for node in document["nodes"].values():
        if "retry" in node:
            node["retry"] = {**node["retry"], "max_attempts": node["retry"]["max_attempts"] + 1}
    after = budget_of(load_definition(document))
    for key, figures in before.handlers.items():
        assert after.handlers[key].attempts >= figures.attempts
        assert after.handlers[key].calls == figures.calls
    assert after.longest_ms == before.longest_ms
