"""POLL: rounds, budgets, the deadline, the receipt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.engine import CreateTask, DetachTask, ReviewClass, TaskPhase, TimePassed, Verdict, effect_key
from tests.documents import STATUS, document, end, failed, poll, ref, task
from tests.workflows import SECOND, Workflow


def polling(on_failed: Any = "REVIEW", **more: Any) -> Workflow:
    nodes = {"p": poll("z", on_failed, **more), "z": end(ref("p", "state")), "no": failed("REJECTED")}
    if on_failed != {"next": "no"}:
        nodes.pop("no")
    flow = Workflow(document(nodes))
    flow.start()
    return flow


def rounds(flow: Workflow) -> list[int]:
    return [order.round for order in flow.effects(CreateTask)]


def test_a_pending_answer_leads_to_the_next_round_an_interval_after_it_was_stored() -> None:
    flow = polling()
    flow.pass_time(5)
    flow.succeed("p", {"state": "pending"})
    assert flow.step("p").due_at == flow.now + 30 * SECOND
    assert flow.status == "WAITING"
    flow.wait(29)
    assert rounds(flow) == [1]
    flow.wait(1)
    assert rounds(flow) == [1, 2]
    flow.succeed("p", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_an_overdue_round_is_asked_once_and_missed_intervals_are_not_made_up() -> None:
    flow = polling()
    report = flow.write(flow.task("p"), TaskPhase.SUCCEEDED, result={"state": "pending"})
    flow.pass_time(200)
    flow.apply(report)
    assert rounds(flow) == [1, 2]


def test_two_scanners_wake_one_poll_and_one_round_comes_of_it() -> None:
    flow = polling()
    flow.succeed("p", {"state": "pending"})
    flow.pass_time(30)
    step = flow.step("p")
    for _ in range(2):
        flow.do(TimePassed(step.id, flow.seed()))
    assert rounds(flow) == [1, 2]
    flow.check()


def test_the_deadline_is_fixed_when_the_poll_opens_and_stands_on_every_round() -> None:
    flow = polling()
    deadline = flow.step("p").deadline_at
    flow.succeed("p", {"state": "pending"})
    flow.wait(1800)
    assert flow.step("p").deadline_at == deadline
    assert {order.total_deadline_at for order in flow.effects(CreateTask)} == {deadline}


def test_each_round_has_its_own_effect_key_and_full_attempts() -> None:
    flow = polling()
    flow.succeed("p", {"state": "pending"}, attempts=2)
    flow.wait(30)
    first, second = flow.effects(CreateTask)
    assert first.effect_key == effect_key(flow.id, "p", 1)
    assert second.effect_key == effect_key(flow.id, "p", 2)
    assert second.attempts_max == 3


def test_pending_after_the_last_round_needs_a_person_who_sees_the_last_value() -> None:
    flow = polling(rounds=2)
    flow.succeed("p", {"state": "pending"})
    flow.wait(30)
    flow.succeed("p", {"state": "pending"})
    step = flow.step("p")
    assert (step.review_class, step.reason) == (ReviewClass.TIMEOUT, "ROUND_2:ROUNDS_EXHAUSTED")
    assert step.result_ref == f"T:{step.task_id}"


def test_exhausted_attempts_in_a_round_name_the_round_and_give_no_free_new_one() -> None:
    flow = polling()
    for _ in range(3):
        flow.succeed("p", {"state": "pending"})
        flow.wait(30)
    flow.fail("p", "ATTEMPTS_EXHAUSTED", attempts=3)
    assert flow.step("p").reason == "ROUND_4:ATTEMPTS_EXHAUSTED"
    flow.wait(600)
    assert rounds(flow) == [1, 2, 3, 4]
    refused = flow.refuse(flow.review("p", Verdict.RERUN))
    assert "attempt" in refused.message
    flow.check()


def test_a_round_run_again_keeps_its_number_its_attempts_and_its_deadline() -> None:
    flow = polling()
    deadline = flow.step("p").deadline_at
    flow.succeed("p", {"state": "pending"})
    flow.wait(30)
    flow.succeed("p", {"state": "on_hold"}, attempts=2)
    flow.rerun("p")
    step, order = flow.step("p"), flow.effects(CreateTask)[-1]
    assert (step.activation_no, step.round, step.deadline_at) == (2, 2, deadline)
    assert (order.round, order.attempts_max) == (2, 1)
    assert order.effect_key == effect_key(flow.id, "p", 2)
    flow.succeed("p", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    flow.check()


@pytest.mark.parametrize("answer", [{"state": "on_hold"}, "no object at all", {"other": 1}])
def test_an_answer_outside_the_mapping_needs_a_person(answer: Any) -> None:
    flow = polling()
    flow.succeed("p", answer)
    assert flow.step("p").review_class is ReviewClass.UNMAPPED
    flow.wait(60)
    assert rounds(flow) == [1]


@pytest.mark.parametrize(
    ("phase", "kind"),
    [
        (TaskPhase.FAILED, ReviewClass.DEFINITE),
        (TaskPhase.EXPIRED, ReviewClass.EXPIRED),
        (TaskPhase.CANCELLED, ReviewClass.DEFINITE),
        (TaskPhase.NEEDS_REVIEW, ReviewClass.UNKNOWN),
    ],
)
def test_a_query_that_does_not_answer_needs_a_person(phase: TaskPhase, kind: ReviewClass) -> None:
    flow = polling()
    flow.report("p", phase)
    step = flow.step("p")
    assert step.review_class is kind
    assert step.reason is not None
    assert step.reason.startswith("ROUND_1:")


def test_a_query_that_expired_with_the_poll_is_a_time_out() -> None:
    flow = polling()
    flow.pass_time(3601)
    flow.report("p", TaskPhase.EXPIRED)
    assert flow.step("p").review_class is ReviewClass.TIMEOUT


def test_a_report_that_its_task_is_open_moves_nothing() -> None:
    flow = polling()
    flow.report("p", TaskPhase.OPEN)
    assert flow.state_of("p") == "WAITING_TASK"


def test_a_failed_state_takes_the_exit_for_it() -> None:
    flow = polling({"next": "no"})
    flow.succeed("p", {"state": "rejected"})
    assert (flow.status, flow.error) == ("FAILED", ("REJECTED", "it did not work"))


def test_a_failed_state_may_fail_the_workflow() -> None:
    flow = polling("FAIL")
    flow.succeed("p", {"state": "rejected"})
    assert flow.status == "FAILED"
    assert flow.error is not None
    assert flow.error[0] == "POLL_FAILED"


def test_a_failed_state_may_ask_a_person() -> None:
    flow = polling()
    flow.succeed("p", {"state": "rejected"})
    assert flow.step("p").review_class is ReviewClass.DEFINITE
    flow.conclude_failed("p")
    assert flow.status == "FAILED"


def test_the_deadline_gives_no_new_round_and_lets_the_running_query_go() -> None:
    flow = polling(within=60, every=50)
    flow.wait(61)
    step = flow.step("p")
    assert (step.review_class, step.reason) == (ReviewClass.TIMEOUT, "ROUND_1:DEADLINE_PASSED")
    assert [order.task_id for order in flow.effects(DetachTask)] == [step.task_id]
    late = flow.report("p", TaskPhase.SUCCEEDED, result={"state": "done"})
    assert not late.applied
    assert flow.state_of("p") == "NEEDS_REVIEW"
    flow.check()


def test_an_answer_stored_on_time_counts_though_the_deadline_scan_sees_it_first() -> None:
    flow = polling(within=60, every=50)
    flow.pass_time(60)
    flow.write(flow.task("p"), TaskPhase.SUCCEEDED, result={"state": "done"})
    flow.pass_time(30)
    flow.scan()
    assert flow.status == "SUCCEEDED"


def test_an_answer_stored_too_late_is_evidence_only() -> None:
    flow = polling(within=60, every=50)
    flow.pass_time(61)
    flow.succeed("p", {"state": "done"})
    step = flow.step("p")
    assert (step.review_class, step.result_ref) == (ReviewClass.TIMEOUT, f"T:{step.task_id}")
    assert not flow.effects(DetachTask)


def test_a_pending_answer_looked_at_after_the_deadline_gives_no_new_round() -> None:
    flow = polling(within=60, every=50)
    report = flow.write(flow.task("p"), TaskPhase.SUCCEEDED, result={"state": "pending"})
    flow.pass_time(61)
    flow.apply(report)
    assert flow.step("p").review_class is ReviewClass.TIMEOUT
    assert rounds(flow) == [1]


def test_the_next_round_never_lies_behind_the_deadline() -> None:
    flow = polling(within=60, every=50)
    flow.pass_time(20)
    flow.succeed("p", {"state": "pending"})
    flow.wait(39)
    assert flow.state_of("p") == "WAITING_TIME"
    flow.wait(2)
    assert flow.step("p").reason == "ROUND_1:DEADLINE_PASSED"
    assert rounds(flow) == [1]


def test_a_receipt_ends_the_poll_and_lets_the_query_go() -> None:
    flow = polling(receipt=True)
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    assert len(flow.effects(DetachTask)) == 1
    late = flow.write(next(iter(flow.tasks.values())), TaskPhase.SUCCEEDED, result={"state": "rejected"})
    assert not flow.apply(late).applied
    flow.check()


def test_an_answer_ends_the_poll_and_a_later_receipt_overwrites_nothing() -> None:
    flow = polling({"next": "no"}, receipt=True)
    flow.succeed("p", {"state": "rejected"})
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.status == "FAILED"
    assert [signal.state.value for signal in flow.signals.values()] == ["REJECTED"]


def test_an_answer_stored_before_the_receipt_wins_though_nobody_consumed_it_yet() -> None:
    flow = polling({"next": "no"}, receipt=True)
    flow.write(flow.task("p"), TaskPhase.SUCCEEDED, result={"state": "rejected"})
    flow.pass_time(1)
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.status == "FAILED"


def test_a_receipt_that_is_there_already_spares_the_query() -> None:
    flow = Workflow(document({"a": task("p"), "p": poll("z", receipt=True), "z": end(ref("p", "state"))}))
    flow.start()
    flow.signal("receipt", "m", {"state": "done"})
    flow.succeed("a")
    assert (flow.status, flow.output) == ("SUCCEEDED", "done")
    assert len(flow.tasks) == 1


def test_a_pending_receipt_moves_nothing() -> None:
    flow = polling(receipt=True)
    flow.signal("receipt", "m", {"state": "pending"})
    assert flow.state_of("p") == "WAITING_TASK"
    assert [signal.disposition for signal in flow.signals.values()] == ["STILL_PENDING"]
    flow.succeed("p", {"state": "pending"})
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    assert not flow.effects(DetachTask)


def test_a_receipt_outside_the_mapping_needs_a_person() -> None:
    flow = polling(receipt=True)
    flow.signal("receipt", "m", {"state": "on_hold"})
    assert flow.step("p").review_class is ReviewClass.UNMAPPED
    flow.conclude("p", {"state": "done"})
    assert flow.status == "SUCCEEDED"


def test_a_receipt_during_the_review_of_an_exhausted_poll_waits_for_the_person() -> None:
    flow = polling(receipt=True, rounds=1)
    flow.succeed("p", {"state": "pending"})
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.state_of("p") == "NEEDS_REVIEW"
    assert [signal.state.value for signal in flow.signals.values()] == ["PENDING"]


def test_a_concluded_poll_must_be_in_a_state_that_means_it() -> None:
    flow = polling(rounds=1)
    flow.succeed("p", {"state": "pending"})
    refusal = flow.refuse(flow.review("p", Verdict.SUCCEEDED, result={"state": "rejected"}))
    assert refusal.details[0].field == "result"
    flow.conclude("p", {"state": "done"})
    assert flow.status == "SUCCEEDED"


def test_a_poll_concluded_as_failed_with_a_catch_arm_needs_the_value_the_arm_reads() -> None:
    flow = polling({"next": "no"}, rounds=1)
    flow.succeed("p", {"state": "pending"})
    flow.refuse(flow.review("p", Verdict.FAILED, code="X", result=None))
    flow.conclude_failed("p", result={"state": "rejected"})
    assert flow.status == "FAILED"
    flow.check()


def test_a_round_whose_parameters_do_not_fit_needs_a_person() -> None:
    document_ = document({"p": poll("z", value=ref("input", "a", "b")), "z": end()})
    flow = Workflow(document_)
    flow.start({"a": "text"})
    assert flow.step("p").reason == "INPUT_DOES_NOT_FIT"
    assert flow.step("p").failure_ref is not None


def test_a_poll_may_bound_the_start_of_each_round() -> None:
    flow = polling(start_within_ms=10_000)
    assert flow.effects(CreateTask)[0].latest_start_at == flow.now + 10 * SECOND


def test_a_round_ordered_and_overtaken_by_a_receipt_in_one_decision_is_never_created() -> None:
    flow = polling(receipt=True)
    flow.write(flow.task("p"), TaskPhase.SUCCEEDED, result={"state": "pending"})
    flow.pass_time(60)
    flow.signal("receipt", "m", {"state": "done"})
    assert flow.status == "SUCCEEDED"
    assert rounds(flow) == [1]
    assert flow.step("p").task_id is None
    flow.check()


def test_a_newer_report_of_a_round_that_was_answered_moves_nothing() -> None:
    flow = polling()
    first = flow.task("p")
    flow.succeed("p", {"state": "pending"})
    assert not flow.apply(flow.write(first, TaskPhase.SUCCEEDED, result={"state": "done"})).applied
    assert flow.state_of("p") == "WAITING_TIME"


def test_a_state_below_something_that_is_no_object_needs_a_person() -> None:
    nodes = {"p": poll("z", "FAIL"), "z": end()}
    nodes["p"]["state"]["path"] = ["state", "inner"]
    flow = Workflow(document(nodes))
    flow.start()
    flow.succeed("p", {"state": "done"})
    assert flow.step("p").reason == "ROUND_1:UNKNOWN_STATE"


def test_a_receipt_that_was_stored_too_late_does_not_decide_at_the_deadline() -> None:
    flow = polling(receipt=True, within=60, every=50)
    signal = flow.signal_command("receipt", "m", {"state": "done"}).signal
    flow.signals[signal.id] = replace(signal, accepted_at=flow.now + 61 * SECOND)
    flow.wait(62)
    assert flow.step("p").review_class is ReviewClass.TIMEOUT


def test_a_handler_without_parameters_takes_none() -> None:
    bare = {"parameters": {}, "required": [], "result": STATUS, "recovery": "READ_ONLY", "verify": False}
    flow = Workflow(document({"p": poll("z"), "z": end()}, handlers={"status@1": bare}))
    flow.start()
    assert flow.effects(CreateTask)[0].parameters == {}
    needed = bare | {"parameters": {"value": {}}, "required": ["value"]}
    flow = Workflow(document({"p": poll("z"), "z": end()}, handlers={"status@1": needed}))
    flow.start()
    assert flow.step("p").review_class is ReviewClass.UNMAPPED
