"""Arms: joining once, stopping others, letting them finish, nesting, reviews that hold a region open."""

from __future__ import annotations

import pytest

from orbit_sdk.engine import (
    CancelTask,
    CreateTask,
    EngineLimits,
    ReviewClass,
    SettleTask,
    StepState,
    TaskPhase,
)
from tests.documents import document, end, failed, join, parallel, poll, task, timer, wait
from tests.workflows import Workflow

STOP, FINISH = "STOP_OTHERS", "LET_OTHERS_FINISH"


def two_arms(policy: str = STOP, **nodes: object) -> Workflow:
    usual = {
        "par": parallel("j", policy, x="a", y="b"),
        "a": task("j", on_failure="FAIL"),
        "b": task("j", on_failure="FAIL"),
        "j": join("after"),
        "after": task("z"),
        "z": end(),
    }
    flow = Workflow(document({**usual, **nodes}, "par"))  # type: ignore[dict-item]
    flow.start()
    return flow


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_the_last_arm_opens_the_successor_exactly_once(order: tuple[str, str]) -> None:
    flow = two_arms()
    reports = [flow.write(flow.task(key), TaskPhase.SUCCEEDED, result=1) for key in order]
    for report in (*reports, *reports):
        flow.apply(report)
    assert [effect.step_key for effect in flow.effects(CreateTask)].count("after") == 1
    assert flow.state_of("j") == "COMPLETED"
    flow.check()


def test_stop_others_stops_the_siblings_and_fails_when_they_are_settled() -> None:
    flow = two_arms()
    flow.fail("a")
    assert flow.status == "RUNNING"
    assert [effect.task_id for effect in flow.effects(CancelTask)] == [flow.step("b").task_id]
    flow.report("b", TaskPhase.CANCELLED)
    assert flow.state_of("b") == "STOPPED"
    assert flow.state_of("j") == "FAILED"
    assert (flow.status, flow.error) == ("FAILED", ("BROKEN", ""))
    assert "after" not in flow.steps
    flow.check()


def test_a_stopped_arm_that_succeeds_after_all_is_kept_but_not_followed() -> None:
    flow = two_arms()
    flow.fail("a")
    flow.succeed("b", 1)
    assert flow.state_of("b") == "COMPLETED"
    assert flow.status == "FAILED"
    assert "after" not in flow.steps


@pytest.mark.parametrize("phase", [TaskPhase.FAILED, TaskPhase.EXPIRED])
def test_a_stopped_arm_that_fails_as_well_changes_nothing_more(phase: TaskPhase) -> None:
    flow = two_arms()
    flow.fail("a")
    flow.report("b", phase, code="ALSO")
    assert flow.error == ("BROKEN", "")
    assert flow.status == "FAILED"


def test_a_stopped_arm_with_an_unknown_effect_holds_the_workflow_in_review() -> None:
    flow = two_arms()
    flow.fail("a")
    flow.report("b", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    assert flow.status == "NEEDS_REVIEW"
    flow.conclude("b", 1)
    assert flow.status == "FAILED"
    assert [effect.phase for effect in flow.effects(SettleTask)] == ["SUCCEEDED"]
    flow.check()


def test_a_stopped_arm_in_review_may_be_concluded_as_failed() -> None:
    flow = two_arms()
    flow.fail("a")
    flow.report("b", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.conclude_failed("b")
    assert flow.status == "FAILED"
    flow.check()


def test_a_stopped_arm_whose_task_is_in_review_without_unknown_effect_is_settled() -> None:
    flow = two_arms()
    flow.fail("a")
    flow.report("b", TaskPhase.NEEDS_REVIEW, review_class=ReviewClass.UNMAPPED)
    assert [effect.phase for effect in flow.effects(SettleTask)] == ["CANCELLED"]
    assert flow.status == "FAILED"
    flow.check()


def test_a_sibling_in_review_for_a_definite_failure_is_stopped_too() -> None:
    flow = two_arms(b=task("j", on_failure="REVIEW"))
    flow.fail("b")
    flow.fail("a")
    assert flow.state_of("b") == "STOPPED"
    assert flow.status == "FAILED"
    flow.check()


def test_let_others_finish_lets_the_sibling_go_all_its_way() -> None:
    flow = two_arms(FINISH, b=task("c"), c=task("j"))
    flow.fail("a")
    assert not flow.effects(CancelTask)
    flow.succeed("b")
    assert flow.state_of("c") == "WAITING_TASK"
    flow.succeed("c")
    assert flow.state_of("j") == "FAILED"
    assert flow.status == "FAILED"
    flow.check()


def test_an_arm_in_review_has_not_failed() -> None:
    flow = two_arms(a=task("j"))
    flow.fail("a")
    assert flow.status == "NEEDS_REVIEW"
    assert not flow.effects(CancelTask)
    flow.succeed("b")
    flow.conclude("a", 1)
    assert flow.state_of("after") == "WAITING_TASK"
    flow.check()


def test_an_end_that_fails_inside_an_arm_fails_that_arm() -> None:
    flow = two_arms(a=task("j", on_failure={"next": "no"}), no=failed("NO_STOCK"))
    flow.fail("a")
    flow.report("b", TaskPhase.CANCELLED)
    assert flow.error == ("NO_STOCK", "it did not work")
    flow.check()


def test_stopping_closes_waits_timers_polls_and_what_was_not_yet_opened() -> None:
    flow = Workflow(
        document(
            {
                "par": parallel("j", STOP, a="a", w="w", t="t", p="p", q="q"),
                "a": task("j", on_failure="FAIL"),
                "w": wait("j"),
                "t": timer("j"),
                "p": poll("j"),
                "q": poll("j", receipt=True),
                "j": join("z"),
                "z": end(),
            }
        )
    )
    flow.start()
    flow.succeed("p", {"state": "pending"})
    flow.fail("a")
    assert [flow.state_of(key) for key in "wtp"] == ["STOPPED"] * 3
    assert flow.state_of("q") == "WAITING_TASK"
    assert flow.step("q").due_at is None
    flow.succeed("q", {"state": "pending"})
    assert flow.state_of("q") == "STOPPED"
    assert flow.status == "FAILED"
    flow.check()


@pytest.mark.parametrize(
    ("answer", "state"), [("done", "COMPLETED"), ("rejected", "FAILED"), ("on_hold", "STOPPED")]
)
def test_a_stopped_query_tells_the_truth_it_found(answer: str, state: str) -> None:
    flow = two_arms(b=poll("j"))
    flow.fail("a")
    flow.succeed("b", {"state": answer})
    assert flow.state_of("b") == state
    assert flow.status == "FAILED"


def test_a_stopped_query_that_fails_is_stopped() -> None:
    flow = two_arms(b=poll("j"))
    flow.fail("a")
    flow.fail("b")
    assert flow.state_of("b") == "STOPPED"


def test_a_receipt_no_longer_serves_a_stopped_poll() -> None:
    flow = two_arms(b=poll("j", receipt=True))
    flow.fail("a")
    flow.signal("receipt", "m", {"state": "done"})
    assert [signal.state.value for signal in flow.signals.values()] == ["PENDING"]


def test_a_task_ordered_and_stopped_in_one_decision_is_never_created() -> None:
    flow = Workflow(
        document(
            {
                "t": timer("par"),
                "par": parallel("j", STOP, x="b", y="no"),
                "b": task("j"),
                "no": failed(),
                "j": join("z"),
                "z": end(),
            }
        )
    )
    nodes_fail_inside = flow.plan.nodes["no"]
    assert nodes_fail_inside.arms[0].name == "y"
    flow.start()
    flow.wait(60)
    assert flow.status == "FAILED"
    assert not flow.tasks
    assert flow.state_of("b") == "STOPPED"
    flow.check()


def nested(policy_in: str, policy_out: str) -> Workflow:
    nodes = {
        "out": parallel("jo", policy_out, p="in", q="d"),
        "in": parallel("ji", policy_in, x="a", y="b"),
        "a": task("ji", on_failure="FAIL"),
        "b": task("ji", on_failure="FAIL"),
        "ji": join("c"),
        "c": task("jo"),
        "d": task("jo", on_failure="FAIL"),
        "jo": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    return flow


def test_nested_regions_join_inside_out() -> None:
    flow = nested(STOP, STOP)
    for key in "abcd":
        flow.succeed(key)
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_an_inner_failure_goes_outward_only_when_the_inner_region_is_settled() -> None:
    flow = nested(STOP, STOP)
    flow.fail("a")
    assert {effect.task_id for effect in flow.effects(CancelTask)} == {flow.step("b").task_id}
    flow.report("b", TaskPhase.CANCELLED)
    assert flow.state_of("ji") == "FAILED"
    assert flow.effects(CancelTask)[-1].task_id == flow.step("d").task_id
    flow.report("d", TaskPhase.CANCELLED)
    assert flow.status == "FAILED"
    flow.check()


def test_an_inner_failure_waits_for_the_inner_arm_that_may_finish() -> None:
    flow = nested(FINISH, FINISH)
    flow.fail("a")
    flow.succeed("d")
    flow.succeed("b")
    assert "c" not in flow.steps
    assert flow.status == "FAILED"
    flow.check()


def test_an_outer_failure_stops_the_whole_inner_region() -> None:
    flow = nested(STOP, STOP)
    flow.succeed("a")
    flow.fail("d")
    flow.report("b", TaskPhase.CANCELLED)
    assert flow.state_of("ji") == "STOPPED"
    assert flow.state_of("jo") == "FAILED"
    assert flow.status == "FAILED"
    flow.check()


def test_a_stopped_exit_that_waited_in_the_checkpoint_is_never_followed() -> None:
    nodes = {
        "t": task("par"),
        "par": parallel("j", STOP, x="no", y="b"),
        "no": failed(),
        "b": task("j"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes), EngineLimits(transitions=1))
    flow.start()
    flow.succeed("t")
    flow.scan()
    assert flow.status == "FAILED"
    assert "b" not in flow.steps
    flow.check()


def test_the_state_of_mixed_arms_puts_the_review_first_and_waiting_last() -> None:
    nodes = {
        "par": parallel("j", FINISH, x="a", y="b", w="w"),
        "a": task("j"),
        "b": task("j"),
        "w": wait("j"),
        "j": join("z"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    assert flow.status == "RUNNING"
    flow.fail("a")
    assert flow.status == "NEEDS_REVIEW"
    assert [flow.state_of(key) for key in "abw"] == ["NEEDS_REVIEW", "WAITING_TASK", "WAITING_SIGNAL"]
    flow.conclude("a")
    assert flow.status == "RUNNING"
    flow.succeed("b")
    assert flow.status == "WAITING"
    flow.pause()
    assert (flow.status, flow.instance.paused) == ("WAITING", True)


def test_both_arms_may_fail_retryably_and_go_on() -> None:
    flow = two_arms()
    for key in "ab":
        flow.report(key, TaskPhase.OPEN, attempts=1)
    assert not flow.effects(CancelTask)
    for key in "ab":
        flow.succeed(key)
    assert flow.step("after").state is StepState.WAITING_TASK
