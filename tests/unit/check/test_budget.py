"""The most a workflow may cost, and growth as a finding."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.check.budget import budget_of, check_budget, parse_agreed
from orbit_sdk.definition.models import Definition
from orbit_sdk.errors import InvalidArgument
from tests.unit.check.documents import (
    const,
    definition,
    end,
    fail,
    handler,
    join,
    parallel,
    poll,
    ref,
    task,
    timer,
    wait,
)

HOUR, RETRIED = (
    3_600_000,
    {"max_attempts": 3, "backoff_ms": 1000, "factor_percent": 200, "max_backoff_ms": 60000},
)


def retry(**more: int) -> dict[str, int]:
    return {**RETRIED, "jitter_percent": 0, **more}


def made(nodes: dict[str, Any], **handlers: Any) -> Definition:
    return definition(nodes, handlers={f"{name}@1": each for name, each in handlers.items()})


def test_a_way_adds_up_and_arms_add_work_but_share_time() -> None:
    found = budget_of(
        made(
            {
                "p": parallel("j", left="a", right="w"),
                "a": task("b", "pay@1"),
                "b": task("j", "pay@1", on_failure={"next": "gone"}),
                "gone": fail(),
                "w": wait("t"),
                "t": timer("j", 5 * HOUR),
                "j": join("c"),
                "c": task("e", "pay@1", total_timeout_ms=2 * HOUR),
                "e": end(),
            },
            pay=handler(),
        )
    )
    assert found.longest_ms == 8 * HOUR
    assert found.human_wait_ms == HOUR
    assert found.handlers["pay@1"].calls == 3
    assert found.handlers["pay@1"].attempts == 9


def test_what_an_arm_that_fails_has_spent_counts_too() -> None:
    nodes = {
        "p": parallel("j", left="a", right="b"),
        "a": task("j", "pay@1", on_failure={"next": "more"}),
        "more": task("gone", "pay@1"),
        "gone": fail(),
        "b": task("j", "pay@1"),
        "j": join("e"),
        "e": end(),
    }
    assert budget_of(made(nodes, pay=handler())).handlers["pay@1"].calls == 3


def test_a_poll_calls_once_per_round() -> None:
    asked = handler(recovery="READ_ONLY", result={"type": "object"})
    figures = budget_of(made({"p": poll("e"), "e": end()}, **{"ask.it": asked})).handlers["ask.it@1"]
    assert (figures.calls, figures.rounds, figures.attempts) == (60, 60, 180)


def test_a_timer_until_an_instant_is_named_because_nothing_bounds_it() -> None:
    nodes = {"t": {"kind": "TIMER", "until": ref("instance.started_at"), "next": "e"}, "e": end()}
    assert budget_of(made(nodes)).open_timers == ("t",)


@pytest.mark.parametrize(
    ("recovery", "verify", "on_failure", "expected"),
    [
        ("READ_ONLY", False, "REVIEW", 3000),
        ("READ_ONLY", False, "FAIL", None),
        ("IDEMPOTENT", False, "FAIL", 3000),
        ("VERIFIABLE", True, "FAIL", 24 * HOUR),
        ("VERIFIABLE", True, "REVIEW", 3000),
        ("MARKED", False, "FAIL", 0),
        ("CONSERVATIVE", False, "REVIEW", 0),
    ],
)
def test_how_long_an_outage_may_last_depends_on_what_may_be_repeated(
    recovery: str, verify: bool, on_failure: str, expected: int | None
) -> None:
    nodes = {"a": task("e", "pay@1", retry=retry(), on_failure=on_failure), "e": end()}
    found = budget_of(made(nodes, pay=handler(recovery=recovery, verify=verify)))
    assert found.handlers["pay@1"].outage_ms == expected


def test_jitter_and_the_total_time_shorten_an_outage() -> None:
    def outage(**more: Any) -> int | None:
        nodes = {"a": task("e", "pay@1", **{"retry": retry(), **more}), "e": end()}
        return budget_of(made(nodes, pay=handler(recovery="READ_ONLY"))).handlers["pay@1"].outage_ms

    assert outage(retry=retry(jitter_percent=20)) == 2400
    assert outage(retry=retry(max_backoff_ms=1000)) == 2000
    assert outage(total_timeout_ms=2500, attempt_timeout_ms=100) == 2500
    assert outage(start_within_ms=500) == 500


def grown(nodes: dict[str, Any], agreed: dict[str, Any]) -> list[tuple[str, str]]:
    figures = budget_of(made(nodes, pay=handler(recovery="READ_ONLY")))
    return [
        (each.code, each.json_path) for each in check_budget(figures, parse_agreed({"workflows": agreed}))
    ]


def test_growth_is_a_finding_and_less_is_none() -> None:
    once = {"a": task("e", "pay@1"), "e": end()}
    twice = {"a": task("b", "pay@1"), "b": task("e", "pay@1"), "e": end()}
    figures = budget_of(made(once, pay=handler(recovery="READ_ONLY")))
    agreed = {figures.id: figures.to_json()}
    assert grown(once, agreed) == []
    assert grown(twice, agreed) == [
        ("BUDGET_GREW", "$"),
        ("BUDGET_GREW", 'handlers["pay@1"]'),
        ("BUDGET_GREW", 'handlers["pay@1"]'),
    ]
    more = budget_of(made(twice, pay=handler(recovery="READ_ONLY")))
    assert grown(once, {more.id: more.to_json()}) == []


def test_a_shorter_outage_and_an_unknown_workflow_are_findings() -> None:
    quick = {"a": task("e", "pay@1", retry=retry(max_attempts=2)), "e": end()}
    slow = {"a": task("e", "pay@1", retry=retry()), "e": end()}
    agreed = budget_of(made(slow, pay=handler(recovery="READ_ONLY")))
    assert grown(quick, {agreed.id: agreed.to_json()}) == [("BUDGET_OUTAGE_SHORTER", 'handlers["pay@1"]')]
    figures = {"calls": 9, "attempts": 9, "rounds": 9, "outage_ms": None}
    never = {**agreed.to_json(), "handlers": {"pay@1": figures}}
    assert grown(slow, {agreed.id: never}) == [("BUDGET_OUTAGE_SHORTER", 'handlers["pay@1"]')]
    assert grown(slow, {}) == [("BUDGET_MISSING", "$")]
    bare = {"longest_ms": 9 * HOUR, "human_wait_ms": 0, "handlers": {}}
    assert grown(slow, {agreed.id: bare}) == [("BUDGET_GREW", 'handlers["pay@1"]')]
    open_timer = {"t": {"kind": "TIMER", "until": const("2027-01-01T00:00:00Z"), "next": "a"}, **slow}
    assert grown(open_timer, {agreed.id: agreed.to_json()}) == [("BUDGET_GREW", "nodes.t")]


@pytest.mark.parametrize("document", [[], {"workflows": 1}, {"workflows": {"a": 1}}])
def test_another_file_is_no_budget_file(document: Any) -> None:
    with pytest.raises(InvalidArgument, match="no budget file"):
        parse_agreed(document)
