"""What changed between two versions, for whom, and how much care it needs."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.check.diff import Change, Party, Verdict, compare, markdown_table, worst
from tests.unit.check.documents import (
    BOOLEAN,
    INTEGER,
    TEXT,
    const,
    definition,
    end,
    fail,
    handler,
    optional,
    poll,
    record,
    ref,
    task,
    wait,
)

STATUS = record(state={"enum": ["BAD", "OK", "RUN"]})
NODES = {
    "a": task("w", "pay@1", input={"x": const(1)}, on_failure={"next": "f"}),
    "w": wait("p"),
    "p": poll("e"),
    "e": end(const(1)),
    "f": fail(),
}
HANDLERS = {
    "pay@1": handler(parameters={"x": INTEGER}, required=["x"], result=INTEGER, recovery="IDEMPOTENT"),
    "ask.it@1": handler(recovery="READ_ONLY", result=STATUS),
}
SIGNALS = {"decided": {"body": record(ok=BOOLEAN)}, "receipt": {"body": STATUS}}
BASE: dict[str, Any] = {
    "input": record(order=TEXT),
    "output": INTEGER,
    "handlers": HANDLERS,
    "signals": SIGNALS,
}


def changes(nodes: dict[str, Any] | None = None, **more: Any) -> tuple[Change, ...]:
    before = definition(NODES, **BASE)
    return compare(before, definition(nodes or NODES, **{**BASE, **more}))


def told(nodes: dict[str, Any] | None = None, **more: Any) -> list[tuple[str, Party, Verdict]]:
    return [(each.path, each.affects, each.verdict) for each in changes(nodes, **more)]


def test_the_same_is_no_change() -> None:
    assert told(version=2) == []
    assert worst(()) is Verdict.SAFE


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"title": "A"}, ("title", Party.OPERATORS, Verdict.SAFE)),
        ({"input": record(order=TEXT, more=TEXT)}, ("input", Party.CALLERS, Verdict.BREAKING)),
        ({"input": record(order=optional(TEXT))}, ("input", Party.CALLERS, Verdict.SAFE)),
        ({"output": {"anyOf": [INTEGER, TEXT]}}, ("output", Party.CONSUMERS, Verdict.BREAKING)),
        ({"output": {"const": 1}}, ("output", Party.CONSUMERS, Verdict.SAFE)),
        (
            {"signals": {**SIGNALS, "decided": {"body": record(ok=BOOLEAN, by=TEXT)}}},
            ("signals.decided", Party.SENDERS, Verdict.BREAKING),
        ),
        (
            {"signals": {**SIGNALS, "decided": {"body": record()}}},
            ("signals.decided", Party.SENDERS, Verdict.SAFE),
        ),
        (
            {"signals": {**SIGNALS, "more": {"body": TEXT}}},
            ("signals.more", Party.SENDERS, Verdict.CAREFUL),
        ),
        (
            {"signals": {"decided": SIGNALS["decided"]}},
            ("signals.receipt", Party.SENDERS, Verdict.CAREFUL),
        ),
        (
            {"handlers": {**HANDLERS, "new@1": handler()}},
            ('handlers["new@1"]', Party.WORKERS, Verdict.CAREFUL),
        ),
    ],
)
def test_what_others_see_is_judged_by_type(
    more: dict[str, Any], expected: tuple[str, Party, Verdict]
) -> None:
    assert told(**more) == [expected]


@pytest.mark.parametrize(
    ("more", "path", "verdict"),
    [
        ({"parameters": {"x": INTEGER, "y": TEXT}}, "parameters.y", Verdict.BREAKING),
        ({"parameters": {"x": optional(INTEGER)}}, "parameters.x", Verdict.BREAKING),
        ({"required": []}, "parameters.x", Verdict.BREAKING),
        ({"result": {"const": 1}}, "result", Verdict.BREAKING),
        ({"recovery": "CONSERVATIVE"}, "recovery", Verdict.BREAKING),
        ({"errors": ["CLOSED"]}, "errors", Verdict.CAREFUL),
        ({"verify": True}, "verify", Verdict.CAREFUL),
    ],
)
def test_a_contract_that_changes_under_its_version_hurts_workers(
    more: dict[str, Any], path: str, verdict: Verdict
) -> None:
    found = told(handlers={**HANDLERS, "pay@1": {**HANDLERS["pay@1"], **more}})
    assert found == [(f'handlers["pay@1"].{path}', Party.WORKERS, verdict)]


def test_a_wider_result_or_a_narrower_argument_is_no_change_for_workers() -> None:
    wider = {**HANDLERS["pay@1"], "result": {"anyOf": [INTEGER, TEXT]}, "parameters": {"x": {"const": 1}}}
    assert told(handlers={**HANDLERS, "pay@1": wider}) == []


@pytest.mark.parametrize(
    ("key", "more", "expected"),
    [
        ("w", {"signal": "receipt"}, ("nodes.w.signal", Party.SENDERS, Verdict.BREAKING)),
        ("w", {"match": const("x")}, ("nodes.w.match", Party.SENDERS, Verdict.BREAKING)),
        ("w", {"timeout_ms": 1000}, ("nodes.w.timeout_ms", Party.SENDERS, Verdict.CAREFUL)),
        ("w", {"timeout_ms": 9_000_000}, ("nodes.w.timeout_ms", Party.SENDERS, Verdict.SAFE)),
        ("w", {"early": "KEEP"}, ("nodes.w.early", Party.SENDERS, Verdict.CAREFUL)),
        ("w", {"on_timeout": "FAIL"}, ("nodes.w.on_timeout", Party.OPERATORS, Verdict.CAREFUL)),
        ("a", {"queue": "other"}, ("nodes.a.queue", Party.WORKERS, Verdict.CAREFUL)),
        ("a", {"priority": 9}, ("nodes.a.priority", Party.OPERATORS, Verdict.SAFE)),
        ("a", {"start_within_ms": 60_000}, ("nodes.a.start_within_ms", Party.OPERATORS, Verdict.SAFE)),
        ("a", {"input": {"x": const(2)}}, ("nodes.a.input", Party.OPERATORS, Verdict.SAFE)),
        ("a", {"next": "e"}, ("nodes.a", Party.OPERATORS, Verdict.SAFE)),
        (
            "p",
            {"final_signal": {"signal": "receipt", "match": ref("input.order")}},
            ("nodes.p.final_signal", Party.SENDERS, Verdict.BREAKING),
        ),
    ],
)
def test_a_step_that_changed_is_told_to_whom_it_concerns(
    key: str, more: dict[str, Any], expected: tuple[str, Party, Verdict]
) -> None:
    assert told({**NODES, key: {**NODES[key], **more}}) == [expected]


def test_steps_come_go_and_become_something_else() -> None:
    found = changes(
        {"x": task("a", "ask.it@1"), **NODES, "w": task("p", "ask.it@1"), "g": fail("NO_STOCK")}, start="x"
    )
    said = {each.path: each.what for each in found}
    assert said["start"] == "It starts at 'x' instead of 'a'."
    assert said["nodes.x"] == "Step 'x' is new: a TASK."
    assert said["nodes.w"] == "Step 'w' is a TASK instead of a WAIT."
    assert said["nodes"] == 'It may fail with "NO_STOCK", which it never did.'
    assert worst(found) is Verdict.CAREFUL
    back = compare(definition(NODES, **BASE), definition({**NODES, "f": fail("OTHER")}, **BASE))
    assert [each.verdict for each in back if each.affects is Party.CALLERS] == [Verdict.CAREFUL, Verdict.SAFE]


def test_a_handler_in_another_version_is_new_for_workers_and_the_old_one_must_stay_for_a_while() -> None:
    handlers = {"ask.it@1": HANDLERS["ask.it@1"], "pay@2": HANDLERS["pay@1"]}
    found = changes({**NODES, "a": {**NODES["a"], "handler": "pay@2"}}, handlers=handlers)
    assert [(each.path, each.verdict) for each in found] == [
        ('handlers["pay@1"]', Verdict.SAFE),
        ('handlers["pay@2"]', Verdict.CAREFUL),
        ("nodes.a.handler", Verdict.SAFE),
        ("nodes.a.queue", Verdict.CAREFUL),
    ]


def test_one_name_may_mean_different_types_in_both() -> None:
    before = definition(
        NODES, **{**BASE, "types": {"Order": record(order=TEXT)}, "input": {"$ref": "#/types/Order"}}
    )
    after = definition(
        NODES, **{**BASE, "types": {"Order": record(order=INTEGER)}, "input": {"$ref": "#/types/Order"}}
    )
    assert [each.verdict for each in compare(before, after)] == [Verdict.BREAKING]
    renamed = definition(
        NODES, **{**BASE, "types": {"Job": record(order=TEXT)}, "input": {"$ref": "#/types/Job"}}
    )
    assert compare(before, renamed) == ()


def test_one_table_holds_all_changes_the_worst_first() -> None:
    found = changes(title="A|B", input=record(order=TEXT, more=TEXT))
    lines = markdown_table([("test.flow@1→2", found)]).splitlines()
    assert lines[0] == "| Workflow | Change | Affects | Verdict |"
    assert "breaking" in lines[2]
    assert "safe" in lines[3]
    assert len(lines) == 4
    assert found[0].to_json()["affects"] == "operators"
