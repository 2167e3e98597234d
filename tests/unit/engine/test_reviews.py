"""What a person may decide on a step in review, and what is refused with a reason."""

from __future__ import annotations

import pytest

from orbit_sdk.engine import (
    CreateTask,
    DecideReview,
    DetachTask,
    EngineLimits,
    ReportEngineError,
    ReviewClass,
    SettleTask,
    TaskPhase,
    Verdict,
    effect_key,
)
from orbit_sdk.errors import Code
from tests.documents import branch, document, end, failed, join, merge, parallel, poll, ref, task, timer, wait
from tests.workflows import SECOND, Workflow


def lost(handler: str = "risky", on_failure: object = "REVIEW", **more: object) -> Workflow:
    """A task that may have had an effect, in review."""
    nodes = {"a": task("z", handler, on_failure, **more), "z": end(ref("a"))}
    if isinstance(on_failure, dict):
        nodes |= {"caught": end(ref("a", "code", of="failure"))}
    flow = Workflow(document(nodes))
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    return flow


def test_concluding_as_succeeded_settles_the_task_and_goes_on_with_the_result() -> None:
    flow = lost()
    flow.conclude("a", {"n": 1})
    assert (flow.status, flow.output) == ("SUCCEEDED", {"n": 1})
    (settled,) = flow.effects(SettleTask)
    assert (settled.phase, settled.result) == ("SUCCEEDED", {"n": 1})
    assert flow.events("workflow.recovered")[0].payload["verdict"] == "SUCCEEDED"
    flow.check()


def test_concluding_without_a_report_at_hand_settles_the_task_that_is_in_review() -> None:
    flow = lost()
    flow.do(DecideReview("a", flow.step("a").revision, Verdict.SUCCEEDED, flow.seed(), result=1))
    assert len(flow.effects(SettleTask)) == 1


def test_concluding_as_failed_takes_the_catch_arm() -> None:
    flow = lost(on_failure={"next": "caught"})
    flow.conclude_failed("a", "NO_FUNDS", message="checked with the bank")
    assert flow.output == "NO_FUNDS"
    assert flow.effects(SettleTask)[0].error_code == "NO_FUNDS"
    flow.check()


@pytest.mark.parametrize("policy", ["REVIEW", "FAIL"])
def test_concluding_as_failed_without_a_catch_arm_fails_the_workflow(policy: str) -> None:
    flow = lost(on_failure=policy)
    flow.conclude_failed("a", "NO_FUNDS", message="checked")
    assert (flow.status, flow.error) == ("FAILED", ("NO_FUNDS", "checked"))
    flow.check()


def test_a_code_that_the_catch_arm_does_not_know_is_refused() -> None:
    flow = lost("strict", {"next": "caught"}, value={"const": 1})
    refusal = flow.refuse(flow.review("a", Verdict.FAILED, code="OTHER"))
    assert (refusal.code, refusal.details[0].field) == (Code.INVALID_ARGUMENT, "code")
    flow.conclude_failed("a", "CLOSED")


def test_a_failure_without_a_code_is_refused() -> None:
    assert lost().refuse(lost().review("a", Verdict.FAILED)).details[0].field == "code"


def test_a_result_of_the_wrong_type_or_size_is_refused() -> None:
    flow = lost("strict", value={"const": 1})
    refusal = flow.refuse(flow.review("a", Verdict.SUCCEEDED, result="text"))
    assert (refusal.code, refusal.details[0].field) == (Code.INVALID_ARGUMENT, "result")
    flow = lost()
    flow.limits = EngineLimits(payload_bytes=10)
    assert flow.refuse(flow.review("a", Verdict.SUCCEEDED, result="x" * 20)).code is Code.PAYLOAD_TOO_LARGE


def test_a_decision_names_the_revision_it_is_about() -> None:
    flow = lost()
    stale = DecideReview("a", 1, Verdict.SUCCEEDED, flow.seed())
    assert flow.refuse(stale).details[0].field == "expected_revision"


def test_only_steps_in_review_are_decided_on() -> None:
    flow = lost()
    assert "not in review" in flow.refuse(DecideReview("nowhere", 1, Verdict.FAILED, flow.seed())).message
    flow.conclude("a")
    assert "SUCCEEDED" in flow.refuse(DecideReview("a", 1, Verdict.FAILED, flow.seed())).message
    waiting = Workflow(document({"a": task("z"), "z": end()}))
    waiting.start()
    assert "not in review" in waiting.refuse(DecideReview("a", 1, Verdict.FAILED, waiting.seed())).message


def test_a_rerun_keeps_effect_key_deadline_and_what_was_spent() -> None:
    flow = lost("safe")
    before = flow.step("a")
    flow.pass_time(10)
    flow.rerun("a")
    step, order = flow.step("a"), flow.effects(CreateTask)[-1]
    assert (step.activation_no, step.deadline_at, step.attempts_spent) == (2, before.deadline_at, 1)
    assert step.revision > before.revision
    assert (order.attempts_max, order.total_deadline_at) == (2, before.deadline_at)
    assert order.effect_key == effect_key(flow.id, "a", 0)
    assert flow.activations[before.id].reason == "RESOLVED_BY_RECOVERY"
    assert [(s.phase, s.reason) for s in flow.effects(SettleTask)] == [("FAILED", "RESOLVED_BY_RECOVERY")]
    flow.succeed("a", 1)
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_a_report_of_the_old_activation_is_stale_after_a_rerun() -> None:
    flow = lost("safe")
    old = flow.task("a")
    flow.rerun("a")
    late = flow.write(old, TaskPhase.SUCCEEDED, result=1)
    assert not flow.apply(late).applied
    assert flow.state_of("a") == "WAITING_TASK"


def test_what_may_have_had_an_effect_is_not_run_again_without_proof() -> None:
    flow = lost()
    assert "effect" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.rerun("a", no_effect_proven=True)
    assert flow.state_of("a") == "WAITING_TASK"
    flow.report("a", TaskPhase.NEEDS_REVIEW)
    assert "effect" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.check()


def test_what_had_no_effect_may_be_run_again() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.fail("a")
    flow.rerun("a")
    assert flow.state_of("a") == "WAITING_TASK"
    flow.check()


def test_a_task_that_succeeded_is_not_run_again() -> None:
    flow = Workflow(document({"a": task("z", "strict", value={"const": 1}), "z": end()}))
    flow.start()
    flow.succeed("a", "text")
    refusal = flow.refuse(flow.review("a", Verdict.RERUN, no_effect_proven=True))
    assert "succeeded" in refusal.message


def test_without_attempts_or_time_only_concluding_is_left() -> None:
    flow = lost("safe", attempts=1)
    assert "attempt" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow = lost("safe")
    flow.pass_time(3601)
    assert "time" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow = lost("safe", start_within_ms=10_000)
    flow.pass_time(10)
    flow.review("a", Verdict.RERUN)
    flow.pass_time(0.000001)
    assert "latest start" in flow.refuse(flow.review("a", Verdict.RERUN)).message


def test_nothing_is_run_again_during_a_pause_but_concluding_is_possible() -> None:
    flow = lost("safe")
    flow.pause()
    assert "paused" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.conclude("a", 1)
    assert flow.status == "RUNNING"
    flow.resume()
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_a_timed_out_wait_is_concluded_not_run_again() -> None:
    flow = Workflow(document({"w": wait("b"), "b": timer("z"), "z": end(ref("w"))}))
    flow.start()
    flow.wait(3601)
    assert "time" in flow.refuse(flow.review("w", Verdict.RERUN)).message
    flow.conclude("w", "by phone")
    flow.wait(60)
    assert flow.output == "by phone"
    flow.check()


def test_a_timed_out_wait_concluded_as_failed_fails_the_workflow() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.wait(3601)
    flow.conclude_failed("w", "NOBODY_ANSWERED")
    assert flow.error is not None
    assert flow.error[0] == "NOBODY_ANSWERED"


def test_the_meta_of_a_wait_that_a_person_concluded_is_null() -> None:
    nodes = {"w": wait("a"), "a": task("z", value=ref("w", of="meta")), "z": end(ref("w", of="meta"))}
    flow = Workflow(document(nodes))
    flow.start()
    flow.wait(3601)
    flow.conclude("w")
    assert flow.effects(CreateTask)[0].parameters == {"value": None}
    flow.succeed("a")
    assert (flow.status, flow.output) == ("SUCCEEDED", None)


def test_a_wait_blocked_by_an_engine_error_opens_again_and_takes_its_own_leftover() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.do(ReportEngineError(flow.step("w").id, "a bug", flow.seed()))
    assert flow.step("w").review_class is ReviewClass.ENGINE_ERROR
    flow.signal("approval", "m", {})
    assert flow.state_of("w") == "NEEDS_REVIEW"
    flow.rerun("w")
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_a_merge_that_does_not_fit_is_concluded_with_a_value() -> None:
    nodes = {"a": task("m"), "m": merge("z", ("a", "next", ref("a", "x", "y"))), "z": end(ref("m"))}
    flow = Workflow(document(nodes))
    flow.start()
    flow.succeed("a", {"x": "text"})
    assert "MERGE" in flow.refuse(flow.review("m", Verdict.RERUN)).message
    flow.conclude("m", 5)
    assert flow.output == 5
    flow.check()


def test_an_output_that_does_not_fit_is_concluded_by_a_person() -> None:
    flow = Workflow(document({"z": end(ref("input"))}, output={"type": "integer"}))
    flow.start("text")
    assert flow.step("z").review_class is ReviewClass.UNMAPPED
    flow.conclude("z", 5)
    assert (flow.status, flow.output) == ("SUCCEEDED", 5)
    flow.check()


def test_a_branch_without_a_case_is_run_again_or_failed_never_concluded() -> None:
    flow = Workflow(document({"b": branch(ref("input"), x="z"), "z": end()}))
    flow.start("y")
    assert "BRANCH" in flow.refuse(flow.review("b", Verdict.SUCCEEDED)).message
    flow.rerun("b")
    assert flow.step("b").activation_no == 2
    flow.conclude_failed("b")
    assert flow.status == "FAILED"
    flow.check()


def test_a_task_that_still_runs_has_to_settle_before_it_is_decided_on() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.report("a", TaskPhase.OPEN)
    flow.do(ReportEngineError(flow.step("a").id, "a bug", flow.seed()))
    assert "not settled" in flow.refuse(flow.review("a", Verdict.SUCCEEDED)).message


def test_a_query_that_still_runs_is_let_go_when_its_poll_is_decided_on() -> None:
    flow = Workflow(document({"p": poll("z"), "z": end()}))
    flow.start()
    flow.report("p", TaskPhase.OPEN)
    flow.do(ReportEngineError(flow.step("p").id, "a bug", flow.seed()))
    flow.conclude("p", {"state": "done"})
    assert len(flow.effects(DetachTask)) == 1
    assert flow.status == "SUCCEEDED"


def test_a_poll_in_error_lets_its_query_go_when_it_is_cancelled() -> None:
    flow = Workflow(document({"p": poll("z"), "z": end()}))
    flow.start()
    flow.do(ReportEngineError(flow.step("p").id, "a bug", flow.seed()))
    flow.cancel()
    assert flow.status == "CANCELLED"
    assert len(flow.effects(DetachTask)) == 1


def test_a_poll_without_rounds_left_is_concluded() -> None:
    flow = Workflow(document({"p": poll("z", rounds=1), "z": end()}))
    flow.start()
    flow.succeed("p", {"state": "pending"})
    assert "round" in flow.refuse(flow.review("p", Verdict.RERUN)).message


def test_a_concluded_arm_joins_like_any_other() -> None:
    nodes = {"par": parallel("j", x="a", y="b"), "a": task("j"), "b": task("j"), "j": join("z"), "z": end()}
    flow = Workflow(document(nodes))
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.succeed("b")
    flow.conclude("a")
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_a_blocked_node_without_a_result_cannot_be_concluded_as_succeeded() -> None:
    nodes = {"a": task("no"), "no": failed()}
    flow = Workflow(document(nodes), EngineLimits(transitions=1))
    flow.start()
    flow.pause()
    flow.succeed("a")
    flow.limits = EngineLimits(transitions=0)
    flow.resume()
    flow.do(ReportEngineError("f" * 32, "a bug", flow.seed()))
    assert "END" in flow.refuse(flow.review("no", Verdict.SUCCEEDED)).message
    flow.limits = EngineLimits()
    flow.rerun("no")
    assert flow.status == "FAILED"
    assert flow.now // SECOND > 0
    flow.check()


def test_what_a_task_spent_counts_though_its_report_could_not_be_applied() -> None:
    flow = Workflow(document({"a": task("z", "safe"), "z": end()}))
    flow.start()
    flow.do(ReportEngineError(flow.step("a").id, "a bug", flow.seed()))
    flow.write(flow.task("a"), TaskPhase.FAILED, code="BROKEN", attempts=2)
    flow.rerun("a")
    assert flow.effects(CreateTask)[-1].attempts_max == 1
    flow.check()


def test_what_was_spent_before_a_review_is_not_counted_twice() -> None:
    flow = lost("safe")
    flow.write(flow.task("a"), TaskPhase.NEEDS_REVIEW, attempts=0)
    flow.rerun("a")
    assert flow.effects(CreateTask)[-1].attempts_max == 2
