"""Reports of tasks: success, definite failure and its policies, unknown effects, staleness, misfits."""

from __future__ import annotations

import pytest

from orbit_sdk.engine import (
    ApplyReport,
    CreateTask,
    EngineLimits,
    ReviewClass,
    TaskPhase,
    effect_key,
)
from tests.documents import document, end, failed, ref, retry, task
from tests.workflows import SECOND, Workflow


def one(handler: str = "risky", on_failure: object = "REVIEW", **more: object) -> Workflow:
    nodes = {"a": task("z", handler, on_failure, **more), "z": end(ref("a"))}
    if isinstance(on_failure, dict):
        nodes |= {"caught": end(ref("a", "code", of="failure"))}
    return Workflow(document(nodes))


def test_the_order_of_a_task_carries_its_policy_and_absolute_instants() -> None:
    flow = one(value=ref("input"), start_within_ms=60_000, priority=7)
    flow.start({"n": 1})
    (order,) = flow.effects(CreateTask)
    assert (order.handler, order.handler_version, order.queue, order.priority) == ("risky", 1, "jobs", 7)
    assert order.parameters == {"value": {"n": 1}}
    assert order.total_deadline_at == flow.now + 3600 * SECOND
    assert order.latest_start_at == flow.now + 60 * SECOND
    assert (order.attempts_max, order.attempt_timeout_ms) == (3, 60_000)
    assert order.effect_key == effect_key(flow.id, "a", 0)
    assert order.retry.backoff_ms == retry()["backoff_ms"]


def test_the_keys_of_a_task_are_texts_made_from_facts() -> None:
    flow = one(concurrency_key={"text": ["acct-", {"ref": "input"}]}, fairness_key={"const": "f"})
    flow.start(9)
    (order,) = flow.effects(CreateTask)
    assert (order.concurrency_key, order.fairness_key) == ("acct-9", "f")


@pytest.mark.parametrize("value", [9, "", "x" * 300])
def test_a_key_that_is_no_short_text_needs_a_person(value: object) -> None:
    flow = one(concurrency_key=ref("input"))
    flow.start(value)
    assert flow.step("a").review_class is ReviewClass.UNMAPPED


def test_a_null_key_is_no_key() -> None:
    flow = one(concurrency_key=ref("input"))
    flow.start(None)
    assert flow.effects(CreateTask)[0].concurrency_key is None


def test_success_goes_on_with_the_result() -> None:
    flow = one()
    flow.start()
    flow.succeed("a", [1, 2])
    assert (flow.status, flow.output) == ("SUCCEEDED", [1, 2])
    flow.check()


def test_a_retry_of_the_task_is_no_failure_of_the_step() -> None:
    flow = one()
    flow.start()
    flow.report("a", TaskPhase.OPEN, attempts=1)
    assert flow.state_of("a") == "WAITING_TASK"
    assert flow.status == "RUNNING"


@pytest.mark.parametrize("phase", [TaskPhase.FAILED, TaskPhase.EXPIRED])
def test_a_definite_failure_takes_the_catch_arm_with_its_code(phase: TaskPhase) -> None:
    flow = one(on_failure={"next": "caught"})
    flow.start()
    flow.report("a", phase, code="BROKEN", message="no")
    assert (flow.status, flow.output) == ("SUCCEEDED", "BROKEN")
    assert flow.state_of("a") == "FAILED"
    flow.check()


def test_a_definite_failure_may_end_the_workflow() -> None:
    flow = one(on_failure="FAIL")
    flow.start()
    flow.fail("a", "BROKEN", message="it broke")
    assert (flow.status, flow.error) == ("FAILED", ("BROKEN", "it broke"))
    assert [event.type for event in flow.last().events][-1] == "workflow.stopped"
    flow.check()


@pytest.mark.parametrize(
    ("phase", "kind"), [(TaskPhase.FAILED, ReviewClass.DEFINITE), (TaskPhase.EXPIRED, ReviewClass.EXPIRED)]
)
def test_a_definite_failure_may_ask_a_person(phase: TaskPhase, kind: ReviewClass) -> None:
    flow = one()
    flow.start()
    flow.report("a", phase, code="BROKEN")
    assert flow.step("a").review_class is kind
    assert flow.events("workflow.blocked")


@pytest.mark.parametrize("policy", ["FAIL", {"next": "caught"}])
def test_an_unknown_effect_always_asks_a_person(policy: object) -> None:
    flow = one(on_failure=policy)
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    assert (flow.status, flow.step("a").review_class) == ("NEEDS_REVIEW", ReviewClass.UNKNOWN)
    flow.check()


def test_a_task_whose_review_was_settled_moves_its_step() -> None:
    flow = one()
    flow.start()
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.report("a", TaskPhase.OPEN, attempts=1)
    assert flow.state_of("a") == "WAITING_TASK"
    flow.succeed("a", 1)
    assert flow.status == "SUCCEEDED"
    assert flow.step("a").attempts_spent == 3
    flow.check()


def test_a_task_that_was_cancelled_by_nobody_here_needs_a_person() -> None:
    flow = one()
    flow.start()
    flow.report("a", TaskPhase.CANCELLED)
    assert flow.step("a").reason == "TASK_CANCELLED"


def test_a_code_outside_a_closed_list_needs_a_person() -> None:
    flow = one("strict", {"next": "caught"}, value={"const": 1})
    flow.start()
    flow.fail("a", "SOMETHING")
    assert (flow.step("a").review_class, flow.step("a").reason) == (ReviewClass.UNMAPPED, "UNDECLARED_CODE")


@pytest.mark.parametrize("code", ["NO_FUNDS", "ATTEMPTS_EXHAUSTED"])
def test_declared_codes_and_orbits_own_are_caught(code: str) -> None:
    flow = one("strict", {"next": "caught"}, value={"const": 1})
    flow.start()
    flow.fail("a", code)
    assert flow.output == code


def test_a_result_of_another_type_needs_a_person_and_says_what_is_wrong() -> None:
    flow = one("strict", value={"const": 1})
    flow.start()
    flow.succeed("a", "text")
    step = flow.step("a")
    assert (step.review_class, step.reason, step.effect_possible) == (
        ReviewClass.UNMAPPED,
        "RESULT_DOES_NOT_FIT",
        True,
    )
    assert step.failure_ref is not None
    flow.conclude("a", 5)
    assert (flow.status, flow.output) == ("SUCCEEDED", 5)


def test_a_result_that_is_too_large_needs_a_person() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}), EngineLimits(payload_bytes=2000))
    flow.start()
    flow.succeed("a", ["x" * 900] * 3)
    assert flow.step("a").review_class is ReviewClass.UNMAPPED


def test_a_value_that_json_cannot_carry_needs_a_person() -> None:
    flow = one()
    flow.start()
    flow.succeed("a", {"deep": float("nan")})
    assert flow.step("a").review_class is ReviewClass.UNMAPPED


def test_parameters_that_do_not_fit_need_a_person_and_order_nothing() -> None:
    flow = one("strict", value=ref("input"))
    flow.start("text")
    assert (flow.step("a").reason, len(flow.tasks)) == ("INPUT_DOES_NOT_FIT", 0)
    assert flow.status == "NEEDS_REVIEW"


def test_stale_reports_are_told_apart() -> None:
    flow = one()
    flow.start()
    old = flow.write(flow.task("a"), TaskPhase.OPEN)
    new = flow.write(flow.task("a"), TaskPhase.NEEDS_REVIEW)
    assert flow.apply(new).applied
    assert not flow.apply(new).applied
    assert not flow.apply(old).applied
    flow.succeed("a", 1)
    assert not flow.do(ApplyReport(new, flow.seed())).applied


def test_a_failed_report_without_a_code_is_called_by_its_phase() -> None:
    flow = one(on_failure="FAIL")
    flow.start()
    flow.report("a", TaskPhase.FAILED, code=None)
    assert flow.step("a").reason == "FAILED"


def test_the_catch_arm_may_fail_the_workflow_with_its_own_words() -> None:
    flow = Workflow(
        document({"a": task("z", on_failure={"next": "no"}), "z": end(), "no": failed("NO_STOCK")})
    )
    flow.start()
    flow.fail("a")
    assert flow.error == ("NO_STOCK", "it did not work")
