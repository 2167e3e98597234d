"""Branches have a way for every value and no case in vain."""

from __future__ import annotations

import pytest

from orbit_sdk.check import Severity
from tests.unit.check.documents import (
    INTEGER,
    Document,
    choose,
    const,
    decide,
    end,
    findings,
    optional,
    record,
    ref,
    task,
    told,
    wait,
)

ENDS = {"e": end(), "f": end()}


def on(subject: Document, *cases: tuple[object, str], otherwise: str | None = None) -> Document:
    return {"b": choose(subject, *cases, otherwise=otherwise), "e": end(), "f": task("e")}


def test_an_enum_value_without_a_case_is_named() -> None:
    nodes = {"w": wait("b"), "b": choose(ref("w.answer"), ("YES", "e"), ("NO", "f")), **ENDS}
    (found,) = findings(nodes)
    assert (found.code, found.json_path) == ("CASES_INCOMPLETE", "nodes.b.cases")
    assert '"LATER"' in found.message


def test_a_boolean_needs_both_cases() -> None:
    nodes = {"b": choose(ref("input.express"), (True, "e")), "e": end()}
    (found,) = findings(nodes)
    assert found.code == "CASES_INCOMPLETE"
    assert "false" in found.message


def test_an_optional_needs_a_case_for_null() -> None:
    small = record(mood=optional({"const": "CALM"}))
    nodes = {"b": choose(ref("input.mood"), ("CALM", "e")), "e": end()}
    (found,) = findings(nodes, input=small)
    assert "null" in found.message
    assert told({"b": choose(ref("input.mood"), ("CALM", "e"), (None, "e")), "e": end()}, input=small) == []


def test_a_property_that_may_be_absent_needs_a_case_for_null() -> None:
    small = record(maybe={"go": {"type": "boolean"}})
    nodes = {"b": choose(ref("input.go"), (True, "e"), (False, "e")), "e": end()}
    assert told(nodes, input=small) == [("CASES_INCOMPLETE", "b")]


def test_free_text_needs_otherwise() -> None:
    nodes = {"b": choose(ref("input.customer"), ("x", "e"), ("y", "f")), **ENDS}
    (found,) = findings(nodes)
    assert found.code == "CASES_INCOMPLETE"
    assert "input.customer" in found.message
    assert told({"b": choose(ref("input.customer"), ("x", "e"), otherwise="f"), **ENDS}) == []


@pytest.mark.parametrize(
    "cases", [[("TOP", "e"), ("TOP", "f")], [(["TOP", "PLUS"], "e"), (["BASIC", "TOP"], "f")]]
)
def test_a_value_in_two_cases_is_refused(cases: list[tuple[object, str]]) -> None:
    nodes = {"b": choose(ref("input.tier"), *cases, otherwise="f"), **ENDS}
    found = [each for each in findings(nodes) if each.is_error]
    assert [(each.code, each.json_path) for each in found] == [("CASE_REPEATED", "nodes.b.cases[1].equals")]
    assert '"TOP"' in found[0].message


def test_equal_numbers_in_different_spellings_are_one_value() -> None:
    nodes = {"b": choose(ref("input.amount"), (1, "e"), (1.0, "f"), otherwise="f"), **ENDS}
    assert told(nodes) == [("CASE_REPEATED", "b")]


def test_a_text_is_no_boolean() -> None:
    nodes = {"b": choose(ref("input.express"), ("true", "e"), ("false", "f")), **ENDS}
    found = findings(nodes)
    assert [(each.code, each.json_path) for each in found] == [
        ("CASES_INCOMPLETE", "nodes.b.cases"),
        ("CASE_IMPOSSIBLE", "nodes.b.cases[0].equals"),
        ("CASE_IMPOSSIBLE", "nodes.b.cases[1].equals"),
    ]
    assert '"true"' in found[1].message


def test_a_value_outside_the_type_is_refused() -> None:
    small = record(count={**INTEGER, "maximum": 9})
    nodes = {"b": choose(ref("input.count"), (10, "e"), otherwise="f"), **ENDS}
    assert told(nodes, input=small) == [("CASE_IMPOSSIBLE", "b")]


def test_otherwise_after_every_value_is_a_warning() -> None:
    nodes = on(ref("input.express"), (True, "e"), (False, "e"), otherwise="f")
    (found,) = findings(nodes)
    assert (found.code, found.severity, found.json_path) == (
        "CASE_DEAD",
        Severity.WARNING,
        "nodes.b.otherwise",
    )


def test_two_cases_may_lead_to_one_step() -> None:
    nodes = {
        "b": choose(ref("input.tier"), ("TOP", "x"), ("PLUS", "x"), otherwise="e"),
        "x": task("e"),
        "e": end(),
    }
    assert told(nodes) == []


def test_a_value_may_be_tested_twice_on_one_way() -> None:
    nodes = {
        "b": choose(ref("input.express"), (True, "c"), (False, "e")),
        "c": choose(ref("input.express"), (True, "e"), (False, "x")),
        "x": task("e"),
        "e": end(),
    }
    assert told(nodes) == []


def test_a_branch_on_a_constant_says_what_is_wrong() -> None:
    found = findings({"b": choose(const("a"), ("b", "e"), otherwise="f"), **ENDS})
    assert [each.code for each in found] == ["CASE_IMPOSSIBLE"]
    made = findings({"b": choose({"text": ["x", ref("input.order")]}, ("b", "e")), "e": end()})
    assert "the value may have any value" in made[0].message


def test_conditions_that_repeat_or_never_hold_are_warnings() -> None:
    many = {"gt": [ref("input.amount"), const(5)]}
    never = {"eq": [const(1), const(2)]}
    always = {"not": never}
    repeated = findings({"b": decide((many, "e"), (many, "f"), otherwise="e"), **ENDS})
    assert [(each.code, each.json_path) for each in repeated] == [("CASE_DEAD", "nodes.b.cases[1]")]
    dead = findings({"b": decide((never, "e"), (always, "f"), (many, "f"), otherwise="e"), **ENDS})
    assert [each.json_path for each in dead if each.code == "CASE_DEAD"] == [
        "nodes.b.cases[0]",
        "nodes.b.cases[2]",
        "nodes.b.otherwise",
    ]


def test_a_constant_condition_that_cannot_be_judged_is_not_called_dead() -> None:
    odd = {"lt": [const("a"), const(1)]}
    assert told({"b": decide((odd, "e"), otherwise="f"), **ENDS}) == [("COMPARISON_UNLIKE", "b")]
