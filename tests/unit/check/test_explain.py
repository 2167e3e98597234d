"""Every setting of a step, and where its value comes from."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.check.explain import explain_step
from orbit_sdk.check.picture.texts import condition_text, expression_text, shortened
from orbit_sdk.check.words import duration_text
from orbit_sdk.definition.nodes import BranchWhenNode, SucceedNode
from orbit_sdk.values.defaults import DEFAULTS
from tests.unit.check.documents import (
    const,
    decide,
    definition,
    end,
    handler,
    join,
    parallel,
    poll,
    ref,
    task,
    timer,
    wait,
)

WRITTEN = "written in the workflow"
USUAL = {
    "max_attempts": DEFAULTS.attempts,
    "backoff_ms": DEFAULTS.backoff_ms,
    "factor_percent": DEFAULTS.backoff_factor_percent,
    "max_backoff_ms": DEFAULTS.max_backoff_ms,
    "jitter_percent": DEFAULTS.jitter_percent,
}


def settings(node: dict[str, Any], **handlers: Any) -> dict[str, tuple[str, str]]:
    nodes = {"a": node, "e": end()}
    if node["kind"] == "PARALLEL":
        nodes |= {"x": timer("j"), "y": timer("j"), "j": join("e")}
    made = definition(nodes, **({"handlers": handlers} if handlers else {}))
    return {each.name: (each.value, each.origin) for each in explain_step(made, "a")}


def test_a_default_is_told_from_what_was_written() -> None:
    found = settings(task("e", retry=USUAL, total_timeout_ms=DEFAULTS.total_timeout_ms, priority=9))
    assert found["retry.attempts"] == ("5", "default")
    assert found["retry.factor"] == ("2", "default")
    assert found["total_timeout"] == ("7 d", "default")
    assert found["start_within"] == ("not limited", "default")
    assert found["priority"] == ("9", WRITTEN)
    assert found["on_failure"] == ("REVIEW", "default")
    found = settings(task("e", start_within_ms=90_000, on_failure={"next": "e"}, fairness_key=const("x")))
    assert found["start_within"] == ("1 min 30 s", WRITTEN)
    assert found["on_failure"] == ("goes on at 'e'", WRITTEN)
    assert found["fairness_key"] == ("given", WRITTEN)
    assert found["concurrency_key"] == ("none", "default")


def test_what_the_workflow_says_for_all_steps_is_told_from_the_default_and_from_the_step_s_own() -> None:
    def origin(step: str, workflow: str) -> str:
        made = definition({"a": task("e", on_failure=step), "e": end()})
        return {each.name: each.origin for each in explain_step(made, "a", workflow)}["on_failure"]

    assert origin("FAIL", "FAIL") == "on_failure of the workflow"
    assert origin("REVIEW", "FAIL") == WRITTEN
    assert origin("FAIL", "REVIEW") == WRITTEN


def test_the_usual_number_of_attempts_depends_on_the_step() -> None:
    asked = handler(recovery="READ_ONLY", result={"type": "object"})
    twenty = {**USUAL, "max_attempts": 20}
    found = settings(task("e", "ask.it@1", retry=twenty), **{"ask.it@1": asked})
    assert found["retry.attempts"] == ("20", "default of READ_ONLY handlers")
    found = settings(poll("e", retry=twenty), **{"ask.it@1": asked})
    assert found["retry.attempts"] == ("20", "default of polls")
    assert found["max_rounds"] == ("60", "within / every, at most 1000")
    five = poll("e", retry=USUAL, max_rounds=1000, every_ms=1000)
    assert settings(five, **{"ask.it@1": asked})["retry.attempts"] == ("5", "5000 / max_rounds")
    assert settings(five, **{"ask.it@1": asked})["on_failed"] == ("FAIL", WRITTEN)


def test_other_steps_have_few_settings() -> None:
    assert settings(wait("e")) == {
        "timeout": ("1 h", WRITTEN),
        "on_timeout": ("REVIEW", WRITTEN),
        "early": ("DROP", "default"),
    }
    assert settings(timer("e")) == {"delay": ("1 s", WRITTEN)}
    assert settings(parallel("j", x="x", y="y"))["on_arm_failure"][1] in ("default", WRITTEN)
    assert settings(decide((const_true(), "e"), otherwise="e")) == {}
    with pytest.raises(KeyError):
        explain_step(definition({"e": end()}), "nothing")


def const_true() -> dict[str, Any]:
    return {"eq": [const(1), const(1)]}


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (250, "250 ms"),
        (1000, "1 s"),
        (90_000, "1 min 30 s"),
        (86_400_000, "1 d"),
        (90_061_001, "1 d 1 h"),
        (3_600_001, "1 h"),
    ],
)
def test_durations_are_written_in_their_two_largest_units(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ({"eq": [ref("input.ok"), const(True)]}, "input.ok"),
        ({"eq": [ref("input.ok"), const(False)]}, "not input.ok"),
        ({"ge": [ref("input.n"), const(3)]}, "input.n ≥ 3"),
        ({"not": {"is_null": ref("input.n")}}, "not input.n is null"),
        ({"in": {"value": ref("input.t"), "among": ["A", "B"]}}, 'input.t in "A", "B"'),
        (
            {
                "and": [
                    {"ne": [ref("input.a"), const(1)]},
                    {"or": [{"is_null": ref("input.b")}, {"lt": [ref("input.c"), const(2)]}]},
                ]
            },
            "input.a ≠ 1 and (input.b is null or input.c < 2)",
        ),
    ],
)
def test_conditions_are_written_as_people_write_them(condition: dict[str, Any], text: str) -> None:
    made = definition({"b": decide((condition, "e"), otherwise="e"), "e": end()}).nodes["b"]
    assert isinstance(made, BranchWhenNode)
    assert condition_text(made.cases[0].when) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (const([1, "a"]), '[1,"a"]'),
        ({"text": ["job-", ref("input.order")]}, "job-{input.order}"),
        ({"object": {"a": ref("input.n"), "b": const(1)}}, "{a: input.n, b: 1}"),
        ({"array": [ref("input.n"), const(1)]}, "[input.n, 1]"),
    ],
)
def test_expressions_are_written_as_people_write_them(expression: dict[str, Any], text: str) -> None:
    made = definition({"e": end(expression)}).nodes["e"]
    assert isinstance(made, SucceedNode)
    assert expression_text(made.output) == text


def test_a_long_text_ends_with_an_ellipsis() -> None:
    assert shortened("a" * 10, 10) == "a" * 10
    assert shortened("abc def ghi", 5) == "abc…"
