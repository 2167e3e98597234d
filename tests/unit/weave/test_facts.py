from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.definition.evaluate import MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.refs import activation_id
from orbit_sdk.engine.reviews import BY_RECOVERY
from orbit_sdk.engine.state import StepState
from orbit_server.pulse.tasks.records import TaskResult
from orbit_server.pulse.tasks.rows import TASK_RESULTS
from orbit_server.storage.book import Book, MissingRow
from orbit_server.weave.state.facts import BookFacts, fact_needs, latest_closed
from orbit_server.weave.state.rows import CLOSED_STEPS, INPUTS, PAYLOADS, PayloadRow, StepRow
from orbit_server.weave.state.signals import BODIES
from tests.unit.weave.shelves import INSTANCE, NOW, body, head, holding, started_with, step

VALUE = "e" * 32


def closed(**changes: Any) -> StepRow:
    return step("work", live=False, **({"state": StepState.COMPLETED} | changes))


def facts_after(row: StepRow) -> tuple[Book, BookFacts]:
    made = holding(head(), row)
    return made, BookFacts(made, head())


def test_the_input_is_the_stored_one() -> None:
    made = holding(head())
    made.put(INPUTS.name, [INSTANCE], {INSTANCE: started_with('{"a":1}')})
    assert BookFacts(made, head()).get(FactKey("input")) == {"a": 1}


@pytest.mark.parametrize("source", ["input", "instance"])
def test_an_instance_without_an_input_row_has_neither_input_nor_data(source: Any) -> None:
    made = holding(head())
    made.put(INPUTS.name, [INSTANCE], {})
    with pytest.raises(MissingFact):
        BookFacts(made, head()).get(FactKey(source))


@pytest.mark.parametrize(("stored", "shown"), [(None, None), ('{"workflow_id":"x"}', {"workflow_id": "x"})])
def test_the_instance_tells_who_started_it_and_from_what(stored: str | None, shown: Any) -> None:
    made = holding(head())
    made.put(INPUTS.name, [INSTANCE], {INSTANCE: started_with(origin=stored)})
    told: Any = BookFacts(made, head(business_key="order-7")).get(FactKey("instance"))
    assert (told["workflow_id"], told["business_key"]) == (INSTANCE, "order-7")
    assert (told["started_by"], told["origin"]) == ("somebody", shown)


def test_a_step_that_never_opened_left_nothing() -> None:
    made = holding(head())
    made.put(CLOSED_STEPS.name, [activation_id(INSTANCE, "work", 1)], {})
    with pytest.raises(MissingFact):
        BookFacts(made, head()).get(FactKey("step", "work"))


@pytest.mark.parametrize("of", ["result", "failure", "meta"])
def test_a_step_without_a_reference_left_nothing(of: Any) -> None:
    _, facts = facts_after(closed())
    with pytest.raises(MissingFact):
        facts.get(FactKey("step", "work", of))


def test_a_task_left_a_result_or_an_error() -> None:
    made, facts = facts_after(closed(result_ref=f"T:{VALUE}", failure_ref=f"T:{VALUE}"))
    made.put(TASK_RESULTS.name, [VALUE], {VALUE: TaskResult(VALUE, "7", '{"code":"NO"}', None, NOW)})
    assert facts.get(FactKey("step", "work")) == 7
    assert facts.get(FactKey("step", "work", "failure")) == {"code": "NO"}


def test_a_signal_left_its_body_and_who_sent_it() -> None:
    made, facts = facts_after(closed(result_ref=f"S:{VALUE}"))
    made.put(BODIES.name, [VALUE], {VALUE: body(VALUE)})
    meta: Any = facts.get(FactKey("step", "work", "meta"))
    assert facts.get(FactKey("step", "work")) == {"ok": True}
    assert (meta["actor"], meta["signal_id"]) == ("somebody", VALUE)


def test_a_value_of_the_engine_has_no_sender() -> None:
    made, facts = facts_after(closed(result_ref=f"P:{VALUE}"))
    made.put(PAYLOADS.name, [VALUE], {VALUE: PayloadRow(VALUE, INSTANCE, "result", "[1]", "d")})
    assert facts.get(FactKey("step", "work")) == [1]
    assert facts.get(FactKey("step", "work", "meta")) is None


@pytest.mark.parametrize(("letter", "kind"), [("T", TASK_RESULTS), ("S", BODIES), ("P", PAYLOADS)])
def test_a_value_is_asked_for_before_it_is_said_to_be_absent(letter: str, kind: Any) -> None:
    made, facts = facts_after(closed(result_ref=f"{letter}:{VALUE}"))
    key = FactKey("step", "work")
    with pytest.raises(MissingRow) as asked:
        facts.get(key)
    assert (
        asked.value.needs
        == {kind.name: (VALUE,)}
        == {name: tuple(ids) for name, ids in fact_needs(made, INSTANCE, [key]).items()}
    )
    made.put(kind.name, [VALUE], {})
    with pytest.raises(MissingFact):
        facts.get(key)


def test_the_sender_of_a_signal_that_is_gone_is_absent() -> None:
    made, facts = facts_after(closed(result_ref=f"S:{VALUE}"))
    made.put(BODIES.name, [VALUE], {})
    with pytest.raises(MissingFact):
        facts.get(FactKey("step", "work", "meta"))


def test_the_latest_activation_is_the_one_after_all_that_were_run_again() -> None:
    again = step("work", state=StepState.STOPPED, live=False, reason=BY_RECOVERY)
    second = step("work", 2, state=StepState.COMPLETED, live=False)
    made = holding(head())
    made.put(CLOSED_STEPS.name, [again.id, second.id], {again.id: again, second.id: second})
    assert latest_closed(made, INSTANCE, "work") == second


def test_a_step_that_was_stopped_for_another_reason_stays_the_latest() -> None:
    stopped = step("work", state=StepState.STOPPED, live=False, reason="CANCELLED")
    assert latest_closed(holding(head(), stopped), INSTANCE, "work") == stopped


def test_what_facts_need_starts_with_the_activation() -> None:
    made = holding(head())
    needs = fact_needs(made, INSTANCE, [FactKey("input"), FactKey("step", "work")])
    assert needs == {INPUTS.name: [INSTANCE], CLOSED_STEPS.name: [activation_id(INSTANCE, "work", 1)]}


def test_a_failure_is_looked_for_where_the_failure_lies() -> None:
    made, _ = facts_after(closed(failure_ref=f"P:{VALUE}"))
    keys = [FactKey("step", "work", "failure"), FactKey("step", "work")]
    assert fact_needs(made, INSTANCE, keys) == {PAYLOADS.name: [VALUE]}


def test_a_step_that_is_known_to_be_absent_needs_nothing() -> None:
    made = holding(head())
    made.put(CLOSED_STEPS.name, [activation_id(INSTANCE, "work", 1)], {})
    assert fact_needs(made, INSTANCE, [FactKey("step", "work")]) == {}
