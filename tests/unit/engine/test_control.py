"""Pause, resume and cancel, raced by everything else."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.engine import (
    Advance,
    ApplyReport,
    Cancel,
    CancelTask,
    CreateTask,
    EngineLimits,
    GateTasks,
    Pause,
    ReportEngineError,
    Resume,
    ReviewClass,
    SettleTask,
    TaskPhase,
    TimePassed,
    Verdict,
)
from orbit_sdk.errors import Code
from tests.documents import document, end, join, parallel, poll, task, timer, wait
from tests.workflows import Workflow


def chain(**more: Any) -> Workflow:
    flow = Workflow(document({"a": task("b", **more), "b": task("z"), "z": end()}))
    flow.start()
    return flow


def test_a_pause_closes_the_gate_on_what_was_ordered_and_stores_results_without_going_on() -> None:
    flow = chain()
    flow.pause()
    assert flow.task("a").gated
    flow.succeed("a", 1)
    assert flow.state_of("a") == "COMPLETED"
    assert flow.state_of("b") is None
    assert flow.instance.checkpoint == ("a:next",)
    assert flow.instance.advance_due_at is None
    assert (flow.status, flow.instance.paused) == ("RUNNING", True)
    flow.resume()
    assert flow.state_of("b") == "WAITING_TASK"
    flow.check()


def test_a_stored_checkpoint_is_not_continued_during_a_pause() -> None:
    flow = chain()
    flow.pause()
    flow.succeed("a", 1)
    assert not flow.do(Advance(flow.seed())).applied
    assert flow.state_of("b") is None


def test_a_resume_opens_the_gate_again() -> None:
    flow = chain()
    flow.pause()
    flow.resume()
    assert [effect.closed for effect in flow.effects(GateTasks)] == [True, False]
    assert not flow.task("a").gated


def test_a_pause_without_tasks_gates_nothing() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.pause()
    assert not flow.effects(GateTasks)


def test_a_signal_during_a_pause_is_consumed_once_and_followed_after_it() -> None:
    flow = Workflow(document({"w": wait("a"), "a": task("z"), "z": end()}))
    flow.start()
    step = flow.step("w")
    flow.pause()
    flow.signal("approval", "m", {})
    assert flow.state_of("w") == "COMPLETED"
    assert not flow.tasks
    flow.resume()
    assert not flow.do(TimePassed(step.id, flow.seed())).applied
    assert len(flow.tasks) == 1
    assert len(flow.events("workflow.signal.changed")) == 1
    flow.check()


def test_a_timer_due_during_a_pause_opens_nothing_until_the_resume_and_then_one_step() -> None:
    flow = Workflow(document({"t": timer("a"), "a": task("z"), "z": end()}))
    flow.start()
    step = flow.step("t")
    flow.pause()
    flow.pass_time(60)
    assert flow.do(TimePassed(step.id, flow.seed())).applied
    assert not flow.do(TimePassed(step.id, flow.seed())).applied
    assert not flow.tasks
    flow.resume()
    assert len(flow.tasks) == 1
    flow.check()


def test_what_no_scanner_saw_during_a_pause_is_looked_at_by_the_resume() -> None:
    flow = Workflow(document({"t": timer("a"), "a": task("z"), "z": end()}))
    flow.start()
    flow.pause()
    flow.pass_time(60)
    flow.resume()
    assert len(flow.tasks) == 1


@pytest.mark.parametrize("scanned", [True, False])
@pytest.mark.parametrize("on_time", [True, False])
def test_a_pause_does_not_stop_the_clock_of_a_wait(scanned: bool, on_time: bool) -> None:
    flow = Workflow(document({"w": wait("z", {"next": "late"}), "late": end(), "z": end()}))
    flow.start()
    flow.wait(1800)
    flow.pause()
    flow.pass_time(1800)
    if on_time:
        flow.signal("approval", "m", {})
    flow.pass_time(1800)
    if scanned:
        flow.scan()
    flow.resume()
    assert flow.status == "SUCCEEDED"
    assert flow.step("w").exit_taken == ("next" if on_time else "on_timeout")


@pytest.mark.parametrize("scanned", [True, False])
def test_a_pause_does_not_stop_the_clock_of_a_poll(scanned: bool) -> None:
    flow = Workflow(document({"p": poll("z"), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    if scanned:
        flow.wait(60)
        assert flow.instance.checkpoint == ("p:round",)
        flow.wait(1)
        assert flow.instance.checkpoint == ("p:round",)
    flow.pass_time(5400)
    flow.resume()
    assert flow.step("p").review_class is ReviewClass.TIMEOUT
    assert len(flow.tasks) == 1
    flow.check()


@pytest.mark.parametrize("scanned", [True, False])
def test_a_round_due_during_a_pause_is_asked_once_after_it(scanned: bool) -> None:
    flow = Workflow(document({"p": poll("z"), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    flow.pass_time(300)
    if scanned:
        flow.scan()
    flow.resume()
    assert [order.round for order in flow.effects(CreateTask)] == [1, 2]
    flow.check()


def test_a_round_noted_during_a_pause_is_forgotten_when_a_receipt_decides() -> None:
    flow = Workflow(document({"p": poll("z", receipt=True), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    flow.wait(60)
    flow.signal("receipt", "m", {"state": "done"})
    flow.resume()
    assert flow.status == "SUCCEEDED"
    assert len(flow.tasks) == 1
    flow.check()


def test_a_resume_looks_at_stored_results_in_the_order_they_were_stored() -> None:
    nodes = {
        "par": parallel("j", x="a", y="b"),
        "a": task("j", on_failure="FAIL"),
        "b": task("j", on_failure="FAIL"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    flow.pause()
    flow.write(flow.task("b"), TaskPhase.FAILED, code="FIRST")
    flow.pass_time(1)
    flow.write(flow.task("a"), TaskPhase.FAILED, code="SECOND")
    flow.resume()
    assert flow.error is not None
    assert flow.error[0] == "FIRST"
    flow.check()


def test_a_failure_during_a_pause_settles_the_workflow() -> None:
    flow = chain(on_failure="FAIL")
    flow.pause()
    flow.fail("a")
    assert flow.status == "FAILED"
    flow.check()


def test_an_arm_whose_exit_waits_for_the_resume_keeps_its_region_open() -> None:
    nodes = {
        "par": parallel("j", "LET_OTHERS_FINISH", x="a", y="b"),
        "a": task("c"),
        "b": task("j", on_failure="FAIL"),
        "c": task("j"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    flow.pause()
    flow.succeed("a")
    flow.fail("b")
    assert flow.state_of("j") == "PENDING"
    flow.resume()
    flow.succeed("c")
    assert flow.status == "FAILED"
    flow.check()


def test_a_noted_round_that_is_reached_after_the_deadline_is_not_asked() -> None:
    flow = Workflow(document({"p": poll("z"), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.pause()
    flow.wait(60)
    flow.limits = EngineLimits(transitions=0)
    flow.resume()
    flow.limits = EngineLimits()
    flow.pass_time(3600)
    flow.do(Advance(flow.seed()))
    assert flow.step("p").review_class is ReviewClass.TIMEOUT
    assert len(flow.tasks) == 1
    flow.check()


def test_stale_and_repeated_control_requests_are_refused_with_the_current_version() -> None:
    flow = chain()
    assert flow.instance.control_version == 1
    refusal = flow.refuse(Pause(0, flow.seed()))
    assert (refusal.code, refusal.details[0].field) == (Code.FAILED_PRECONDITION, "expected_control_version")
    assert "1" in refusal.message
    flow.do(Pause(1, flow.seed()))
    assert flow.instance.control_version == 2
    assert flow.refuse(Resume(1, flow.seed())).code is Code.FAILED_PRECONDITION
    assert flow.refuse(Pause(2, flow.seed())).message == "the workflow is paused already"
    flow.do(Resume(2, flow.seed()))
    assert flow.refuse(Resume(3, flow.seed())).message == "the workflow is not paused"
    flow.do(Cancel(None, flow.seed()))
    assert flow.refuse(Cancel(None, flow.seed())).message == "the workflow is being cancelled already"
    assert flow.refuse(Cancel(2, flow.seed())).details


def test_a_finished_workflow_refuses_every_control() -> None:
    flow = chain()
    flow.succeed("a")
    flow.succeed("b")
    for command in (Pause(1, flow.seed()), Resume(1, flow.seed()), Cancel(None, flow.seed())):
        assert "SUCCEEDED" in flow.refuse(command).message


def test_a_resume_is_no_absolution() -> None:
    nodes = {
        "par": parallel("j", x="a", y="b"),
        "a": task("j"),
        "b": task("j"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.cancel()
    flow.pause()
    flow.resume()
    head = flow.instance
    assert (head.state.value, head.cancel_requested, head.paused) == ("NEEDS_REVIEW", True, False)
    assert flow.state_of("a") == "NEEDS_REVIEW"
    flow.check()


def test_a_cancel_ends_waits_at_once() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "other", {})
    flow.cancel()
    assert flow.status == "CANCELLED"
    assert [signal.state.value for signal in flow.signals.values()] == ["REJECTED"]
    assert [event.type for event in flow.last().events if event.aggregate_kind == "workflow"] == [
        "workflow.controlled",
        "workflow.stopped",
    ]
    flow.check()


def test_a_cancel_waits_for_the_truth_about_what_runs() -> None:
    flow = chain()
    flow.cancel()
    assert flow.status == "CANCELLING"
    assert len(flow.effects(CancelTask)) == 1
    flow.report("a", TaskPhase.CANCELLED)
    assert flow.status == "CANCELLED"
    flow.check()


@pytest.mark.parametrize("phase", [TaskPhase.SUCCEEDED, TaskPhase.FAILED])
def test_a_result_after_the_cancel_is_kept_and_the_workflow_does_not_go_on(phase: TaskPhase) -> None:
    flow = chain()
    flow.cancel()
    flow.report("a", phase, result=1)
    assert flow.status == "CANCELLED"
    assert flow.state_of("a") == ("COMPLETED" if phase is TaskPhase.SUCCEEDED else "FAILED")
    assert flow.state_of("b") is None
    flow.check()


def test_a_cancel_says_which_effects_stay_done() -> None:
    flow = chain()
    flow.succeed("a", 1)
    flow.write(flow.task("b"), TaskPhase.SUCCEEDED, result=2)
    decision = flow.cancel()
    assert decision.effects_kept == ("a", "b")
    assert flow.status == "CANCELLED"
    flow.check()


def test_a_cancel_does_not_list_reads_as_effects_that_stay_done() -> None:
    flow = Workflow(
        document(
            {
                "a": task("b", "read"),
                "b": task("c", "read"),
                "c": task("d", "risky"),
                "d": task("z"),
                "z": end(),
            }
        )
    )
    flow.start()
    flow.succeed("a", 1)
    flow.succeed("b", 2)
    flow.succeed("c", 3)
    flow.write(flow.task("d"), TaskPhase.SUCCEEDED, result=4)
    assert flow.cancel().effects_kept == ("c", "d")
    read = chain(handler="read")
    read.write(read.task("a"), TaskPhase.SUCCEEDED, result=1)
    assert read.cancel().effects_kept == ()


def test_a_cancel_keeps_a_review_of_an_unknown_effect_and_ends_with_it() -> None:
    flow = chain()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.cancel()
    assert (flow.status, flow.instance.cancel_requested) == ("NEEDS_REVIEW", True)
    flow.conclude("a", 1)
    assert flow.status == "CANCELLED"
    assert flow.state_of("b") is None
    flow.check()


def test_a_task_lost_after_the_cancel_is_shown_in_review_before_the_cancel_ends() -> None:
    flow = chain()
    flow.cancel()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    assert flow.status == "NEEDS_REVIEW"
    refused = flow.refuse(flow.review("a", Verdict.RERUN, no_effect_proven=True))
    assert "stopped" in refused.message
    flow.conclude_failed("a")
    assert flow.status == "CANCELLED"
    flow.check()


def test_a_cancel_closes_reviews_that_hold_no_unknown_effect() -> None:
    nodes = {
        "par": parallel("j", "LET_OTHERS_FINISH", a="a", w="w", p="p", q="q", u="u"),
        "a": task("j"),
        "w": wait("j"),
        "p": poll("j", rounds=1),
        "q": poll("j"),
        "u": task("j", "read"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    flow.fail("a")
    flow.succeed("p", {"state": "pending"})
    flow.succeed("q", {"state": "on_hold"})
    flow.report("u", TaskPhase.NEEDS_REVIEW, review_class=ReviewClass.UNMAPPED)
    flow.wait(3601)
    decision = flow.cancel()
    assert {flow.state_of(key) for key in "awpqu"} == {"STOPPED"}
    assert flow.status == "CANCELLED"
    assert [effect.phase for effect in decision.effects if isinstance(effect, SettleTask)] == ["CANCELLED"]
    flow.check()


def test_a_cancel_during_a_pause_drops_what_waited_to_be_opened() -> None:
    flow = chain()
    flow.pause()
    flow.succeed("a", 1)
    flow.cancel()
    assert flow.status == "CANCELLED"
    assert flow.state_of("b") is None
    flow.check()


def test_a_cancel_wins_over_a_failure_that_is_being_settled() -> None:
    nodes = {
        "par": parallel("j", x="a", y="b"),
        "a": task("j", on_failure="FAIL"),
        "b": task("j"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    flow.fail("a")
    flow.cancel()
    flow.report("b", TaskPhase.CANCELLED)
    assert flow.status == "CANCELLED"
    assert flow.state_of("j") == "STOPPED"
    flow.check()


def test_a_report_for_a_cancelled_workflow_is_stale() -> None:
    flow = chain()
    task_ = flow.task("a")
    flow.cancel()
    flow.report("a", TaskPhase.CANCELLED)
    late = flow.write(task_, TaskPhase.SUCCEEDED, result=1)
    assert not flow.do(ApplyReport(late, flow.seed())).applied
    flow.check()


def test_a_pause_holds_the_task_of_a_step_that_is_in_review_too() -> None:
    """Its report could not be applied: the task itself may still begin, and must not."""
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.do(ReportEngineError(flow.step("a").id, "it broke", flow.seed()))
    flow.pause()
    assert flow.task("a").gated
    flow.resume()
    assert not flow.task("a").gated


def test_a_cancel_asks_the_task_of_a_step_whose_report_could_not_be_applied() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.do(ReportEngineError(flow.step("a").id, "it broke", flow.seed()))
    flow.cancel()
    assert (flow.status, flow.task("a").cancel) == ("NEEDS_REVIEW", True)
