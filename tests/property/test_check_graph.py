"""What the checks say about graphs and data flow is what an exhaustive search of small graphs says."""

from __future__ import annotations

from hypothesis import assume, event, given

from orbit_sdk.check import check_definition, errors_of
from orbit_sdk.definition.models import Definition, load_definition
from orbit_sdk.errors import InvalidArgument
from tests.property.check_graphs import broken_nodes, reading_nodes, sound_nodes, whole
from tests.property.check_oracle import is_structured, runs_of, uncertain_readings
from tests.unit.check.documents import Document

MOST_RUNS = 400


@given(sound_nodes())
def test_every_graph_that_nests_is_accepted(graph: tuple[str, Document]) -> None:
    start, nodes = graph
    assert errors_of(check_definition(load_definition(whole(start, nodes)))) == ()
    assert is_structured(start, nodes)


@given(broken_nodes())
def test_a_changed_graph_is_refused_exactly_when_it_no_longer_nests(graph: tuple[str, Document]) -> None:
    start, nodes = graph
    definition = loaded(start, nodes)
    assume(definition is not None)
    assert definition is not None
    errors = errors_of(check_definition(definition))
    sound = is_structured(start, nodes)
    event("still sound" if sound else "broken")
    event(f"{sum(node['kind'] == 'PARALLEL' for node in nodes.values())} parallels")
    assert bool(errors) is not sound, errors


@given(reading_nodes())
def test_a_fact_is_uncertain_exactly_when_some_run_lacks_it(graph: tuple[str, Document]) -> None:
    start, nodes = graph
    assume(runs_of(nodes) <= MOST_RUNS)
    errors = errors_of(check_definition(load_definition(whole(start, nodes))))
    uncertain = uncertain_readings(start, nodes)
    event("some uncertain" if uncertain else "all certain")
    event(f"{sum(node['kind'] == 'PARALLEL' for node in nodes.values())} parallels")
    assert {found.code for found in errors} <= {"FACT_UNCERTAIN"}
    assert {(found.node, step_read(found.message)) for found in errors} == {
        (key, f"{step}.{of}" if of != "result" else step) for key, (step, of) in uncertain
    }


def loaded(start: str, nodes: Document) -> Definition | None:
    """None for what is refused by its form alone."""
    try:
        return load_definition(whole(start, nodes))
    except InvalidArgument:
        return None


def step_read(message: str) -> str:
    return message.partition(" at ")[0]
