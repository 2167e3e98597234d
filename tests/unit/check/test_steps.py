"""Rules about single steps: polls, signals, limits and figures that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.check import Severity
from orbit_sdk.values.limits import Limits
from tests.unit.check.documents import (
    RETRY,
    TEXT,
    Document,
    const,
    end,
    express,
    findings,
    handler,
    join,
    one_of,
    parallel,
    poll,
    record,
    ref,
    task,
    timer,
    told,
    wait,
)

STATE = record(state=one_of("RUN", "OK", "BAD"))


def asked(**more: Any) -> list[tuple[str, str]]:
    """What is told about one POLL, as (code, path)."""
    limits = more.pop("limits", Limits())
    handlers = more.pop("handlers", {})
    signals = more.pop("signals", {})
    found = findings({"q": poll("e", **more), "e": end()}, limits=limits, handlers=handlers, signals=signals)
    return [(each.code, each.json_path) for each in found]


def test_a_poll_whose_time_is_one_interval_is_sound() -> None:
    once = {**RETRY, "max_attempts": 1}
    assert asked(every_ms=30000, within_ms=30000, max_rounds=1, attempt_timeout_ms=30000, retry=once) == []


def test_a_poll_asks_only_with_what_is_safe_to_repeat() -> None:
    for recovery in ("VERIFIABLE", "MARKED", "CONSERVATIVE"):
        declared = handler(STATE, recovery=recovery, verify=True)
        assert asked(handlers={"ask.it@1": declared}) == [("POLL_HANDLER_UNSAFE", "nodes.q.handler")]
    assert asked(handlers={"ask.it@1": handler(STATE, recovery="IDEMPOTENT")}) == []


def test_a_poll_counts_each_state_once() -> None:
    state = {"path": ["state"], "pending": ["RUN"], "succeeded": ["OK"], "failed": ["BAD", "RUN"]}
    assert asked(state=state) == [("POLL_STATE_REPEATED", "nodes.q.state.failed")]


def test_a_poll_sorts_by_values_that_exist() -> None:
    state = {"path": ["state"], "pending": ["WAITING"], "succeeded": ["OK"], "failed": ["BAD"]}
    assert asked(state=state) == [("POLL_STATE_IMPOSSIBLE", "nodes.q.state.pending")]
    nowhere = {"path": ["status"], "pending": [], "succeeded": ["OK"], "failed": ["BAD"]}
    assert asked(state=nowhere) == [("POLL_STATE_IMPOSSIBLE", "nodes.q.state.path")]


def test_failed_states_and_their_exit_belong_together() -> None:
    state = {"path": ["state"], "pending": ["RUN"], "succeeded": ["OK"], "failed": []}
    assert asked(state=state) == [("POLL_FAILED_DEAD", "nodes.q.on_failed")]
    nodes = {"q": poll("e"), "e": end()}
    del nodes["q"]["on_failed"]
    assert told(nodes) == [("POLL_FAILED_OPEN", "q")]


def test_a_receipt_looks_like_an_answer() -> None:
    receipt = {"signal": "receipt", "match": ref("input.order")}
    assert asked(final_signal=receipt, signals={"receipt": {"body": STATE}}) == []
    found = asked(final_signal=receipt, signals={"receipt": {"body": record(state=TEXT)}})
    assert found == [("RECEIPT_TYPE_DIFFERS", "nodes.q.final_signal.signal")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"every_ms": 10000, "within_ms": 5000, "attempt_timeout_ms": 3000}, ["POLL_INTERVAL_TOO_LONG"]),
        ({"max_rounds": 1001, "every_ms": 1000, "within_ms": 1001000}, ["TOO_MANY_ROUNDS"]),
        (
            {"max_rounds": 1000, "every_ms": 1800, "retry": {**RETRY, "max_attempts": 6}},
            ["TOO_MANY_QUESTIONS"],
        ),
        (
            {"max_rounds": 10000, "every_ms": 180, "retry": {**RETRY, "max_attempts": 1000}},
            ["TOO_MANY_ATTEMPTS", "TOO_MANY_QUESTIONS", "TOO_MANY_ROUNDS"],
        ),
        ({"attempt_timeout_ms": 1800001}, ["ATTEMPT_OUTLASTS_TOTAL"]),
        ({"start_within_ms": 1800001}, ["START_OUTLASTS_TOTAL"]),
        ({"max_rounds": 121}, ["POLL_ROUNDS_UNEVEN"]),
        ({"max_rounds": 120}, []),
        ({"max_rounds": 30}, []),
        ({"max_rounds": 29}, ["POLL_ROUNDS_UNEVEN"]),
        (
            {"within_ms": 366 * 86400000 + 1, "every_ms": 86400000, "max_rounds": 366},
            ["TIME_TOO_LONG"],
        ),
    ],
)
def test_figures_of_a_poll(change: Document, expected: list[str]) -> None:
    assert sorted(code for code, _ in asked(**change)) == expected


def test_figures_of_a_task() -> None:
    year = 366 * 86400000
    nodes = {
        "a": task("b", total_timeout_ms=year + 1),
        "b": task("c", attempt_timeout_ms=3600001),
        "c": task("d", start_within_ms=3600001),
        "d": task("e", retry={**RETRY, "max_attempts": 21}),
        "e": end(),
    }
    assert sorted(told(nodes)) == [
        ("ATTEMPT_OUTLASTS_TOTAL", "b"),
        ("START_OUTLASTS_TOTAL", "c"),
        ("TIME_TOO_LONG", "a"),
        ("TOO_MANY_ATTEMPTS", "d"),
    ]


def test_waits_and_timers_end() -> None:
    year = 366 * 86400000
    fine = {"w": wait("t", timeout_ms=year), "t": timer("e", year), "e": end()}
    assert told(fine) == []
    long = {"w": wait("t", timeout_ms=year + 1), "t": timer("e", year + 1), "e": end()}
    assert told(long) == [("TIME_TOO_LONG", "t"), ("TIME_TOO_LONG", "w")]


def chain(count: int) -> Document:
    return {**{f"s{number}": timer(f"s{number + 1}") for number in range(count - 1)}, f"s{count - 1}": end()}


def test_nodes_have_a_limit_that_a_server_may_lower() -> None:
    assert told(chain(256), "s0") == []
    (found,) = findings(chain(257), "s0")
    assert (found.code, found.json_path) == ("TOO_MANY_NODES", "nodes")
    assert "257 nodes" in found.message
    assert told(chain(11), "s0", limits=Limits(nodes=10)) == [("TOO_MANY_NODES", None)]
    assert told(chain(3000), "s0") == [("TOO_MANY_NODES", None)]


def test_a_document_has_a_size() -> None:
    nodes = {"e": end(const("x" * 2000))}
    assert told(nodes) == []
    (found,) = findings(nodes, limits=Limits(document_bytes=2000))
    assert (found.code, found.json_path) == ("DOCUMENT_TOO_LARGE", "$")


def two_waits(first: Document, second: Document) -> list[tuple[str, str | None]]:
    nodes = {"first": wait("second", **first), "second": wait("e", **second), "e": end()}
    return told(nodes, signals={"other": {"body": {}}})


KEY = ref("input.order")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, True),
        ({}, {"match": ref("input.customer")}, True),
        ({}, {"early": "KEEP"}, False),
        ({"early": "KEEP"}, {}, True),
        ({}, {"signal": "other"}, False),
        ({"match": const("a")}, {"match": const("b")}, False),
        ({"match": const("a")}, {"match": const("a")}, True),
        ({"match": {"text": ["one-", KEY]}}, {"match": {"text": ["two-", KEY]}}, False),
        ({"match": {"text": ["one-", KEY]}}, {"match": {"text": ["one-", ref("input.customer")]}}, True),
        ({"match": {"text": [KEY, "/1"]}}, {"match": {"text": [KEY, "/2"]}}, False),
        ({"match": {"text": [KEY, "/1"]}}, {"match": {"text": ["x", KEY]}}, True),
        ({"match": {"text": ["one-", KEY]}}, {"match": const("two")}, False),
        ({"match": ref("input.tier")}, {"match": const("NONE")}, False),
    ],
)
def test_a_later_wait_does_not_take_the_signal_of_an_earlier_one(
    first: Document, second: Document, expected: bool
) -> None:
    assert two_waits(first, second) == ([("SIGNAL_REUSED", "second")] if expected else [])


def test_waits_on_exclusive_ways_may_share_a_signal() -> None:
    assert told({"b": express("v", "w"), "v": wait("e"), "w": wait("e"), "e": end()}) == []


def beside(one: Document, other: Document) -> Document:
    return {
        "p": parallel("j", "v", "w"),
        "v": wait("j", **one),
        "w": wait("j", **other),
        "j": join("e"),
        "e": end(),
    }


def test_waits_in_concurrent_arms_must_both_say_that_they_take_leftovers() -> None:
    assert told(beside({}, {})) == [("SIGNAL_REUSED", "w")]
    assert told(beside({}, {"early": "KEEP"})) == [("SIGNAL_REUSED", "w")]
    assert told(beside({"early": "KEEP"}, {"early": "KEEP"})) == []


def test_waits_in_one_arm_on_exclusive_ways_may_share_a_signal() -> None:
    nodes = {
        "p": parallel("j", "b", "a"),
        "b": express("v", "w"),
        "v": wait("j"),
        "w": wait("j"),
        "a": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == []
    arms_of_two = {
        "s": express("p", "q"),
        "p": parallel("j", "v", "a"),
        "q": parallel("k", "w", "b"),
        "v": wait("j"),
        "a": task("j"),
        "w": wait("k"),
        "b": task("k"),
        "j": join("e"),
        "k": join("e"),
        "e": end(),
    }
    assert told(arms_of_two) == []


def test_a_third_wait_is_told_once() -> None:
    nodes = {"u": wait("v"), "v": wait("w"), "w": wait("e"), "e": end()}
    assert told(nodes) == [("SIGNAL_REUSED", "v"), ("SIGNAL_REUSED", "w")]


def test_a_receipt_with_the_key_of_another_wait_is_a_warning() -> None:
    receipt = {"signal": "receipt", "match": KEY}
    more = {"signals": {"receipt": {"body": STATE}}}
    polls = {"q": poll("r", final_signal=receipt), "r": poll("e", final_signal=receipt), "e": end()}
    (found,) = findings(polls, **more)
    assert (found.code, found.node, found.severity) == ("RECEIPT_REUSED", "r", Severity.WARNING)
    mixed = {"q": poll("w", final_signal=receipt), "w": wait("e", signal="receipt"), "e": end()}
    assert told(mixed, **more) == [("RECEIPT_REUSED", "q")]
    other = {"signal": "receipt", "match": ref("input.customer")}
    apart = {"q": poll("r", final_signal=receipt), "r": poll("e", final_signal=other), "e": end()}
    assert told(apart, **more) == []
