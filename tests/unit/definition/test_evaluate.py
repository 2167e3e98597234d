"""What expressions and conditions are worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter

from orbit_sdk.definition.evaluate import (
    Misfit,
    MissingFact,
    evaluate,
    facts_of,
    holds,
    read_path,
    same_value,
)
from orbit_sdk.definition.expressions import Condition, Expression, FactKey, parts_of, refs_of
from orbit_sdk.values.json_strict import Json

EXPRESSION: TypeAdapter[Expression] = TypeAdapter(Expression)
CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)


class Known:
    """Facts in a dictionary, by the text of their key."""

    def __init__(self, facts: Mapping[str, Json]) -> None:
        self._facts = facts

    def get(self, key: FactKey) -> Json:
        if str(key) not in self._facts:
            raise MissingFact(key)
        return self._facts[str(key)]


FACTS = Known(
    {
        "input": {
            "name": "ann",
            "count": 3,
            "whole": 3.0,
            "part": 0.5,
            "price": "1.50",
            "none": None,
            "yes": True,
        },
        "instance": {"started_at": "2026-09-18T10:00:00+02:00"},
        "submit": {"id": "x", "list": [1, 2]},
        "submit.failure": {"code": "CLOSED"},
        "review.meta": {"actor": "bob"},
    }
)


def value_of(expression: Any) -> Json:
    return evaluate(EXPRESSION.validate_python(expression), FACTS)


def truth_of(condition: Any) -> bool:
    return holds(CONDITION.validate_python(condition), FACTS)


def field(name: str) -> dict[str, Any]:
    return {"ref": "input", "path": [name]}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ({"const": None}, None),
        ({"const": {"a": [1]}}, {"a": [1]}),
        ({"ref": "submit"}, {"id": "x", "list": [1, 2]}),
        ({"ref": "submit", "path": ["list"]}, [1, 2]),
        ({"ref": "submit", "of": "failure", "path": ["code"]}, "CLOSED"),
        ({"ref": "review", "of": "meta", "path": ["actor"]}, "bob"),
        ({"ref": "instance", "path": ["started_at"]}, "2026-09-18T10:00:00+02:00"),
        (field("absent"), None),
        ({"object": {"a": field("count"), "b": {"object": {}}}}, {"a": 3, "b": {}}),
        ({"array": [field("name"), {"const": None}]}, ["ann", None]),
        ({"text": ["job-", field("name"), "-", field("count"), "/", field("whole")]}, "job-ann-3/3"),
    ],
)
def test_an_expression_is_worth_its_value(expression: Any, value: Json) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ({"eq": [field("count"), field("whole")]}, True),
        ({"eq": [field("yes"), {"const": True}]}, True),
        ({"ne": [field("name"), {"const": "bob"}]}, True),
        ({"eq": [field("none"), {"const": "x"}]}, False),
        ({"eq": [field("none"), {"const": None}]}, True),
        ({"ne": [{"const": 1}, {"const": None}]}, True),
        ({"eq": [{"const": [1, {"a": 2}]}, {"const": [1.0, {"a": 2}]}]}, True),
        ({"lt": [field("part"), field("count")]}, True),
        ({"le": [field("count"), {"const": 3}]}, True),
        ({"gt": [{"const": 9007199254740991}, {"const": 9007199254740990}]}, True),
        ({"ge": [{"const": 2}, {"const": 3}]}, False),
        ({"lt": [{"const": "a"}, {"const": "b"}]}, True),
        ({"gt": [{"const": "10.0"}, {"const": "9.5"}], "as": "decimal"}, True),
        ({"eq": [field("price"), {"const": "1.5"}], "as": "decimal"}, True),
        ({"eq": [field("none"), {"const": "1.5"}], "as": "decimal"}, False),
        (
            {
                "eq": [{"ref": "instance", "path": ["started_at"]}, {"const": "2026-09-18T08:00:00Z"}],
                "as": "date-time",
            },
            True,
        ),
        ({"in": {"value": field("count"), "among": [1, 3]}}, True),
        ({"in": {"value": field("name"), "among": ["bob"]}}, False),
        ({"in": {"value": field("none"), "among": ["bob"]}}, False),
        ({"in": {"value": field("price"), "among": ["1.5"]}, "as": "decimal"}, True),
        ({"is_null": field("none")}, True),
        ({"is_null": field("name")}, False),
        ({"not": {"is_null": field("name")}}, True),
    ],
)
def test_a_condition_holds_or_does_not(condition: Any, truth: bool) -> None:
    assert truth_of(condition) is truth


def test_and_and_or_stop_at_the_first_that_decides() -> None:
    yes, no = {"eq": [{"const": 1}, {"const": 1}]}, {"eq": [{"const": 1}, {"const": 2}]}
    broken = {"lt": [field("name"), {"const": 1}]}
    assert truth_of({"and": [yes, yes]})
    assert not truth_of({"and": [no, broken]})
    assert truth_of({"or": [yes, broken]})
    assert not truth_of({"or": [no, no]})


@pytest.mark.parametrize(
    "condition",
    [
        {"eq": [field("count"), {"const": "3"}]},
        {"eq": [field("yes"), {"const": 1}]},
        {"lt": [field("name"), {"const": 1}]},
        {"lt": [field("yes"), {"const": False}]},
        {"lt": [field("none"), {"const": 1}]},
        {"lt": [{"const": [1]}, {"const": [2]}]},
        {"lt": [{"const": {}}, {"const": {}}]},
        {"lt": [field("name"), {"const": "1"}], "as": "decimal"},
        {"lt": [field("count"), {"const": "1"}], "as": "decimal"},
        {"lt": [{"const": "2026-01-01"}, {"const": "2026-01-02"}], "as": "date-time"},
        {"is_null": {"ref": "input", "path": ["name", "first"]}},
        {"in": {"value": field("count"), "among": ["3"]}},
    ],
)
def test_unlike_values_misfit_instead_of_comparing_somehow(condition: Any) -> None:
    with pytest.raises(Misfit):
        truth_of(condition)


@pytest.mark.parametrize("name", ["part", "yes", "none"])
def test_a_text_is_made_of_texts_and_integers_only(name: str) -> None:
    with pytest.raises(Misfit, match="made of texts and integers"):
        value_of({"text": ["a", field(name)]})


def test_a_path_through_something_else_than_an_object_misfits() -> None:
    with pytest.raises(Misfit, match=r"a\.b is an array, so it has no c"):
        read_path({"a": {"b": []}}, ["a", "b", "c"])
    with pytest.raises(Misfit, match="the value is null"):
        read_path(None, ["a"])


def test_a_fact_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingFact) as caught:
        value_of({"array": [{"ref": "later", "of": "failure"}]})
    assert caught.value.key == FactKey("step", "later", "failure")


def test_the_facts_of_an_expression_are_known_without_values() -> None:
    condition = CONDITION.validate_python(
        {
            "or": [
                {
                    "and": [
                        {"eq": [{"ref": "a"}, {"text": ["x", {"ref": "b"}]}]},
                        {"is_null": {"ref": "input"}},
                    ]
                },
                {"not": {"in": {"value": {"object": {"k": {"array": [{"ref": "instance"}]}}}, "among": [1]}}},
                {"lt": [{"const": 1}, {"ref": "a", "of": "meta"}]},
                {"le": [{"const": 1}, {"const": 1}]},
                {"gt": [{"const": 1}, {"const": 1}]},
                {"ge": [{"const": 1}, {"const": 1}]},
                {"ne": [{"const": 1}, {"const": 1}]},
            ]
        }
    )
    assert facts_of(condition) == {
        FactKey("step", "a"),
        FactKey("step", "b"),
        FactKey("input"),
        FactKey("instance"),
        FactKey("step", "a", "meta"),
    }
    paths = [path for path, _ in refs_of(condition)]
    assert paths[0] == ("or", 0, "and", 0, "eq", 0)
    assert ("or", 1, "not", "in", "value", "object", "k", "array", 0) in paths
    assert len(parts_of(condition)) == 7


def test_equal_values_are_equal_json() -> None:
    assert same_value(1, 1.0)
    assert same_value("a", "a")
    assert not same_value(True, 1)
    assert not same_value("1", 1)
    assert not same_value(None, False)
    assert same_value({"a": [1]}, {"a": [1.0]})
