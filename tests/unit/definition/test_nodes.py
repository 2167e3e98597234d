"""One place knows the edges and the expressions of every node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from orbit_sdk.definition.models import Definition, read_definition
from orbit_sdk.definition.nodes import DelayNode, Node, exits, expressions_of

VALID = Path(__file__).resolve().parents[3] / "schemas" / "examples" / "definition" / "valid"


def example(name: str) -> Definition:
    return read_definition((VALID / f"{name}.json").read_bytes())


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("task", "print", [("next", "done"), ("on_failure", "jammed")]),
        ("parallel_join", "rice", [("next", "table")]),
        ("wait", "ask", [("next", "done"), ("on_timeout", "nobody")]),
        ("poll", "track", [("next", "done"), ("on_failed", "refused")]),
        ("timer_delay", "steep", [("next", "done")]),
        ("timer_until", "sleep", [("next", "done")]),
        ("branch_on", "colour", [("cases.0", "warm"), ("cases.1", "cold")]),
        ("branch_when", "size", [("cases.0", "big"), ("cases.1", "cheap"), ("otherwise", "normal")]),
        ("merge", "answer", [("next", "done")]),
        ("parallel_join", "both", [("arms.rice", "rice"), ("arms.sauce", "sauce")]),
        ("parallel_join", "table", [("next", "done")]),
        ("end_succeeded", "done", []),
        ("end_failed", "gave_up", []),
    ],
)
def test_a_node_has_exactly_its_exits(name: str, key: str, expected: list[tuple[str, str]]) -> None:
    assert list(exits(example(name).nodes[key])) == expected


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("task", "print", [("input", "copies"), ("input", "text"), ("concurrency_key",), ("fairness_key",)]),
        ("wait", "ask", [("match",)]),
        ("poll", "track", [("input", "number"), ("final_signal", "match")]),
        ("timer_delay", "steep", []),
        ("timer_until", "sleep", [("until",)]),
        ("branch_on", "colour", [("on",)]),
        ("branch_when", "size", [("cases", 0, "when"), ("cases", 1, "when")]),
        ("merge", "answer", [("inputs", 0, "value"), ("inputs", 1, "value")]),
        ("parallel_join", "both", []),
        ("end_succeeded", "done", [("output",)]),
        ("end_failed", "gave_up", []),
    ],
)
def test_a_node_holds_exactly_its_expressions(name: str, key: str, expected: list[tuple[Any, ...]]) -> None:
    assert [located.path for located in expressions_of(example(name).nodes[key])] == expected


def test_a_poll_without_receipt_or_failures_has_one_exit() -> None:
    document = example("poll").to_json()
    poll = document["nodes"]["track"]
    del poll["final_signal"], poll["on_failed"]
    node = TypeAdapter[Node](Node).validate_python(poll)
    assert exits(node) == (("next", "done"),)
    assert [located.path for located in expressions_of(node)] == [("input", "number")]


def test_models_are_read_only_and_accept_each_other() -> None:
    node = DelayNode(kind="TIMER", delay_ms=5, next="done")
    assert TypeAdapter[Node](Node).validate_python(node) is node
    with pytest.raises(ValidationError, match="frozen"):
        node.delay_ms = 6  # type: ignore[misc]


def test_models_built_in_python_give_the_same_document() -> None:
    read = example("external_job")
    built = Definition(**{name: getattr(read, name) for name in read.model_fields_set})
    assert built == read
    assert built.canonical() == read.canonical()
