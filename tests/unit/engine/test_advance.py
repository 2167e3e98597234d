"""Start, the advance and its budget, branches and merges, engine errors, what a decision asks for."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.definition.models import load_definition
from orbit_sdk.engine import (
    Advance,
    ApplyReport,
    Cancel,
    CreateTask,
    Decision,
    EngineLimits,
    Missing,
    Pause,
    Refusal,
    ReportEngineError,
    ReviewClass,
    StartInstance,
    TaskPhase,
    TimePassed,
    compile_plan,
    decide,
    needed_facts,
    parse_ref,
    step_id,
)
from orbit_sdk.errors import Code
from orbit_sdk.values.ids import IdSeed
from tests.documents import branch, document, end, failed, join, merge, parallel, poll, ref, task, timer, wait
from tests.workflows import START, Loaded, Workflow


def test_a_workflow_of_one_end_succeeds_at_once() -> None:
    flow = Workflow(document({"z": end(ref("input"))}))
    flow.start(5)
    assert (flow.status, flow.output) == ("SUCCEEDED", 5)
    assert [event.type for event in flow.events() if event.aggregate_kind == "workflow"] == [
        "workflow.started",
        "workflow.advanced",
    ]
    assert flow.instance.ended_at == flow.now
    flow.check()


def test_a_workflow_may_fail_at_once() -> None:
    flow = Workflow(document({"z": failed()}))
    flow.start()
    assert (flow.status, flow.error) == ("FAILED", ("GAVE_UP", "it did not work"))
    flow.check()


def test_an_input_that_does_not_fit_starts_nothing() -> None:
    flow = Workflow(document({"z": end()}, input={"type": "integer"}))
    command = StartInstance(flow.id, "ns", "text", flow.seed(), flow.id)
    refusal = flow.refuse(command)
    assert (refusal.code, refusal.details[0].field) == (Code.INVALID_ARGUMENT, "input")


def test_an_input_that_is_too_large_starts_nothing() -> None:
    flow = Workflow(document({"z": end()}), EngineLimits(input_bytes=10))
    refusal = flow.refuse(StartInstance(flow.id, "ns", "x" * 20, flow.seed(), flow.id))
    assert refusal.code is Code.PAYLOAD_TOO_LARGE


def test_the_same_command_makes_the_same_ids() -> None:
    plan = compile_plan(load_definition(document({"a": task("z"), "z": end()})))
    command = StartInstance("1" * 32, "ns", 1, IdSeed(START, "s"), "1" * 32)
    answers = [decide(plan, None, command, START, Loaded({})) for _ in range(2)]
    assert answers[0] == answers[1]


def test_step_events_name_the_step_as_their_aggregate() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    event = flow.events("workflow.step.changed")[0]
    assert (event.aggregate_id, event.aggregate_revision, event.step_key) == (step_id(flow.id, "a"), 1, "a")
    assert event.payload["activation_id"] == flow.step("a").id


@pytest.mark.parametrize(("value", "target"), [("x", "one"), ("y", "two"), ("w", "other")])
def test_a_branch_on_a_value_takes_its_case(value: str, target: str) -> None:
    nodes = {
        "b": branch(ref("input"), "other", x="one", y="two"),
        "one": end({"const": "one"}),
        "two": end({"const": "two"}),
        "other": end({"const": "other"}),
    }
    flow = Workflow(document(nodes))
    flow.start(value)
    assert flow.output == target


@pytest.mark.parametrize(("value", "target"), [(5, "big"), (1, "small")])
def test_a_branch_by_conditions_takes_the_first_that_holds(value: int, target: str) -> None:
    nodes: dict[str, Any] = {
        "b": {
            "kind": "BRANCH",
            "cases": [{"when": {"gt": [ref("input"), {"const": 3}]}, "next": "big"}],
            "otherwise": "small",
        },
        "big": end({"const": "big"}),
        "small": end({"const": "small"}),
    }
    flow = Workflow(document(nodes))
    flow.start(value)
    assert flow.output == target


def test_a_merge_takes_the_value_of_the_edge_it_was_reached_by() -> None:
    nodes = {
        "a": task("m", on_failure={"next": "m"}),
        "m": merge("w", ("a", "next", ref("a")), ("a", "on_failure", ref("a", "code", of="failure"))),
        "w": wait("z"),
        "z": end(ref("m")),
    }
    for good in (True, False):
        flow = Workflow(document(nodes))
        flow.start()
        if good:
            flow.succeed("a", "good")
        else:
            flow.fail("a", "BROKEN")
        flow.signal("approval", "m", {})
        assert flow.output == ("good" if good else "BROKEN")
        assert parse_ref(flow.step("m").result_ref or "")[0] == "P"


def long_chain(length: int) -> dict[str, Any]:
    nodes: dict[str, Any] = {}
    for number in range(length):
        nodes[f"b{number}"] = branch({"const": 1}, f"b{number + 1}" if number + 1 < length else "z")
        nodes[f"b{number}"]["cases"] = [{"equals": [2], "next": "z"}]
    return document(nodes | {"z": end()})


def test_a_long_advance_stops_at_its_budget_and_a_scan_goes_on() -> None:
    flow = Workflow(long_chain(100))
    flow.start()
    assert flow.last().transitions == 64
    assert flow.instance.checkpoint == ("b63:otherwise",)
    assert flow.instance.advance_due_at == flow.now
    assert flow.status == "RUNNING"
    flow.scan()
    assert flow.status == "SUCCEEDED"
    assert not flow.do(Advance(flow.seed())).applied
    flow.check()


def test_every_other_command_goes_on_with_the_checkpoint_too() -> None:
    nodes = {"par": parallel("j", x="a", y="b"), "a": task("j"), "b": task("j"), "j": join("z"), "z": end()}
    flow = Workflow(document(nodes), EngineLimits(transitions=2))
    flow.start()
    assert flow.instance.checkpoint == ("par:arms.y",)
    flow.succeed("a")
    assert flow.state_of("b") == "WAITING_TASK"


def test_a_report_that_cannot_be_applied_puts_its_step_into_review() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    decision = flow.do(ReportEngineError(flow.step("a").id, "a bug", flow.seed()))
    assert decision.applied
    step = flow.step("a")
    assert (step.review_class, step.effect_possible) == (ReviewClass.ENGINE_ERROR, True)
    assert not flow.succeed("a", 1).applied
    flow.cancel()
    assert flow.status == "NEEDS_REVIEW"
    flow.check()


def test_a_checkpoint_that_cannot_be_continued_puts_its_targets_into_review() -> None:
    nodes = {
        "par": parallel("j", x="a", y="t"),
        "a": task("j"),
        "t": timer("j"),
        "j": join("b"),
        "b": task("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes), EngineLimits(transitions=1))
    flow.start()
    assert flow.instance.checkpoint == ("par:arms.x", "par:arms.y")
    flow.do(ReportEngineError("f" * 32, "a bug", flow.seed()))
    assert flow.state_of("a") == flow.state_of("t") == "NEEDS_REVIEW"
    flow.rerun("a")
    flow.conclude("t")
    flow.limits = EngineLimits(transitions=0)
    flow.succeed("a")
    flow.do(ReportEngineError("f" * 32, "a bug", flow.seed()))
    assert flow.state_of("b") == "NEEDS_REVIEW"
    flow.check()


def test_an_engine_error_about_nothing_is_stale() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    before = flow.instance
    assert not flow.do(ReportEngineError("f" * 32, "a bug", flow.seed())).applied
    assert flow.instance == before


def test_an_engine_error_about_a_noted_round_puts_the_poll_into_review() -> None:
    flow = Workflow(document({"p": poll("z", receipt=True), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    flow.wait(60)
    flow.limits = EngineLimits(transitions=0)
    flow.resume()
    flow.do(ReportEngineError("f" * 32, "a bug", flow.seed()))
    assert flow.step("p").review_class is ReviewClass.ENGINE_ERROR
    flow.check()


def test_an_engine_error_about_a_round_that_was_decided_meanwhile_is_nothing() -> None:
    flow = Workflow(document({"p": poll("a", receipt=True), "a": task("z"), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    flow.wait(60)
    flow.signal("receipt", "m", {"state": "done"})
    flow.limits = EngineLimits(transitions=0)
    flow.resume()
    assert flow.instance.checkpoint == ("p:round", "p:next")
    flow.do(ReportEngineError("f" * 32, "a bug", flow.seed()))
    assert flow.state_of("a") == "NEEDS_REVIEW"
    flow.check()


def far_reader() -> Workflow:
    nodes = {
        "a": task("b"),
        "b": task("c"),
        "c": task("z", value=ref("a")),
        "z": end({"array": [ref("a"), ref("b"), ref("input")]}),
    }
    flow = Workflow(document(nodes))
    flow.start(1)
    return flow


def test_the_plan_knows_what_following_an_exit_may_read() -> None:
    plan = far_reader().plan
    a, b, given = FactKey("step", "a"), FactKey("step", "b"), FactKey("input")
    assert plan.reads[("a", "next")] == frozenset()
    assert plan.reads[("b", "next")] == {a}
    assert plan.reads[("c", "next")] == {a, b, given}
    assert plan.reads_of("c") == {a, b, given}
    assert plan.queues == ("jobs",)


def test_a_decision_names_what_it_misses_all_at_once() -> None:
    flow = far_reader()
    flow.succeed("a", 1)
    flow.succeed("b", 2)
    report = flow.write(flow.task("c"), TaskPhase.SUCCEEDED, result=3)
    answer = decide(flow.plan, flow.snapshot(), ApplyReport(report, flow.seed()), flow.now, Loaded({}))
    assert answer == Missing(facts=flow.plan.reads[("c", "next")])
    flow.apply(report)
    assert flow.output == [1, 2, 1]
    assert flow.reloads == 0


def test_a_signal_body_that_is_not_loaded_is_asked_for() -> None:
    flow = Workflow(document({"a": task("w"), "w": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {})
    report = flow.write(flow.task("a"), TaskPhase.SUCCEEDED)
    answer = decide(flow.plan, flow.snapshot(), ApplyReport(report, flow.seed()), flow.now, Loaded({}))
    assert answer == Missing(signals=frozenset(flow.signals))


def test_facts_missing_outside_an_advance_are_named_alone() -> None:
    flow = Workflow(document({"p": poll("z", value=ref("input")), "z": end()}))
    flow.start(1)
    flow.succeed("p", {"state": "pending"})
    flow.pass_time(30)
    command = TimePassed(flow.step("p").id, flow.seed())
    answer = decide(flow.plan, flow.snapshot(), command, flow.now, Loaded({}))
    assert answer == Missing(facts=frozenset({FactKey("input")}))


def test_needed_facts_of_commands_that_read_nothing() -> None:
    flow = far_reader()
    state = flow.snapshot()
    for command in (Pause(1, flow.seed()), Cancel(None, flow.seed()), ReportEngineError("", "", flow.seed())):
        assert needed_facts(flow.plan, state, command) == frozenset()
    assert needed_facts(flow.plan, None, Advance(flow.seed())) == frozenset()


def test_needed_facts_of_a_start_that_was_cut_at_once() -> None:
    flow = Workflow(document({"a": task("z", value=ref("input")), "z": end()}), EngineLimits(transitions=0))
    flow.start(7)
    assert flow.instance.checkpoint == (":",)
    flow.limits = EngineLimits()
    assert needed_facts(flow.plan, flow.snapshot(), Advance(flow.seed())) == {FactKey("input")}
    flow.scan()
    assert flow.effects(CreateTask)[0].parameters == {"value": 7}
    flow.check()


def test_a_reference_must_say_what_it_refers_to() -> None:
    for text in ("", "X:1", "T:", "T"):
        with pytest.raises(ValueError, match="reference"):
            parse_ref(text)


def test_answers_are_values_of_three_kinds() -> None:
    flow = far_reader()
    assert isinstance(flow.decide(Pause(1, flow.seed())), Decision)
    assert isinstance(flow.decide(Pause(9, flow.seed())), Refusal)
