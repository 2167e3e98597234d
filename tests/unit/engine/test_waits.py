"""Signals and waits: early, late, twice, addressed, left over, and exactly at the limit."""

from __future__ import annotations

import pytest

from orbit_sdk.engine import (
    EngineLimits,
    ExpireSignals,
    ReviewClass,
    Signal,
    SignalState,
    StepState,
    TimePassed,
    match_key,
    wait_id,
)
from orbit_sdk.errors import Code
from tests.documents import document, end, failed, ref, task, timer, wait
from tests.workflows import SECOND, Workflow


def states(flow: Workflow) -> list[str]:
    return [signal.state.value for signal in flow.signals.values()]


def test_a_signal_that_comes_before_its_wait_is_kept_and_consumed_when_the_wait_opens() -> None:
    flow = Workflow(document({"a": task("w"), "w": wait("z"), "z": end(ref("w", "ok"))}))
    flow.start()
    flow.signal("approval", "m", {"ok": 7})
    assert states(flow) == ["PENDING"]
    flow.succeed("a")
    assert states(flow) == ["CONSUMED"]
    assert flow.status == "SUCCEEDED"
    assert flow.output == 7


def test_the_meta_of_a_consumed_signal_is_a_fact() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end(ref("w", "actor", of="meta"))}))
    flow.start()
    flow.signal("approval", "m", {})
    assert flow.output == "somebody"


def test_the_events_of_a_signal_matched_at_once_say_accepted_and_consumed() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {})
    accepted, changed = flow.events("workflow.signal.accepted")[0], flow.events("workflow.signal.changed")[0]
    assert (accepted.aggregate_kind, accepted.state, accepted.state_scope) == (
        "workflow",
        "PENDING",
        "SIGNAL",
    )
    assert changed.aggregate_kind == "workflow_signal"
    assert changed.payload == {
        "workflow_id": flow.id,
        "signal_id": changed.signal_id,
        "from": "PENDING",
        "state": "CONSUMED",
        "disposition": "WAIT_MATCHED",
        "consumed_wait_id": wait_id(flow.step("w").id),
    }


def test_a_signal_for_a_finished_instance_is_stored_as_rejected_and_changes_nothing() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.succeed("a")
    finished = flow.instance
    flow.signal("approval", "m", {})
    assert states(flow) == ["REJECTED"]
    assert flow.instance == finished
    assert [event.state for event in flow.events("workflow.signal.accepted")] == ["REJECTED"]
    assert not flow.events("workflow.signal.changed")
    flow.check()


def test_a_signal_that_races_the_last_result_ends_rejected_not_pending() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {})
    flow.succeed("a")
    assert states(flow) == ["REJECTED"]
    assert flow.instance.pending_signals == 0
    assert len([event for event in flow.events() if event.state == "SUCCEEDED"]) == 1


def test_many_pending_signals_are_each_rejected_once_at_the_end() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    for number in range(70):
        flow.signal("approval", f"other{number}", {})
    flow.succeed("a")
    assert len(flow.events("workflow.signal.changed")) == 70
    flow.check()


def test_two_signals_for_one_wait_are_never_both_consumed_by_it() -> None:
    flow = Workflow(document({"w": wait("v"), "v": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {"n": 1})
    flow.signal("approval", "m", {"n": 2})
    assert states(flow) == ["CONSUMED", "CONSUMED"]
    assert len({signal.consumed_wait_id for signal in flow.signals.values()}) == 2


def test_the_second_of_two_early_signals_is_a_leftover_that_the_next_wait_refuses() -> None:
    flow = Workflow(document({"a": task("w"), "w": wait("v"), "v": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {"n": 1})
    flow.signal("approval", "m", {"n": 2})
    flow.succeed("a")
    assert states(flow) == ["CONSUMED", "PENDING"]
    assert flow.pending()[0].leftover_of == "w"
    assert flow.state_of("v") == "WAITING_SIGNAL"
    flow.signal("approval", "m", {"n": 3})
    assert flow.status == "SUCCEEDED"
    assert states(flow) == ["CONSUMED", "REJECTED", "CONSUMED"]
    flow.check()


def test_a_wait_that_keeps_early_signals_takes_the_leftover() -> None:
    flow = Workflow(document({"a": task("w"), "w": wait("v"), "v": wait("z", early="KEEP"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {"n": 1})
    flow.signal("approval", "m", {"n": 2})
    flow.succeed("a")
    assert states(flow) == ["CONSUMED", "CONSUMED"]
    assert flow.status == "SUCCEEDED"


def test_a_signal_with_another_key_or_type_serves_nobody() -> None:
    flow = Workflow(document({"w": wait("z", match="1"), "z": end()}))
    flow.start()
    flow.signal("approval", 1, {})
    flow.signal("receipt", "1", {"state": "done"})
    assert states(flow) == ["PENDING", "PENDING"]
    assert match_key(1) != match_key("1")


def test_an_addressed_signal_serves_only_its_step() -> None:
    flow = Workflow(document({"w": wait("v"), "v": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {}, step_key="v")
    assert flow.state_of("w") == "WAITING_SIGNAL"
    flow.signal("approval", "m", {})
    assert flow.status == "SUCCEEDED"
    assert [signal.consumed_step for signal in flow.signals.values()] == ["v", "w"]


def test_a_signal_bound_to_an_activation_does_not_serve_the_next_one() -> None:
    flow = Workflow(document({"w": wait("z", match=ref("input")), "z": end()}))
    flow.start("m")
    flow.signal("approval", "m", {}, activation_id="f" * 32)
    assert states(flow) == ["PENDING"]
    flow.signal("approval", "m", {}, activation_id=flow.step("w").id)
    assert flow.status == "SUCCEEDED"


@pytest.mark.parametrize("swept", [True, False])
def test_the_last_instant_still_counts(swept: bool) -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.now = flow.step("w").deadline_at or 0
    if swept:
        assert flow.scan() == 0
    flow.signal("approval", "m", {})
    assert flow.status == "SUCCEEDED"


@pytest.mark.parametrize("swept", [True, False])
def test_one_microsecond_later_is_too_late_whoever_looked_first(swept: bool) -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.now = (flow.step("w").deadline_at or 0) + 1
    if swept:
        assert flow.scan() == 1
    flow.signal("approval", "m", {})
    assert states(flow) == ["EXPIRED"]
    flow.scan()
    assert flow.state_of("w") == "NEEDS_REVIEW"
    assert flow.step("w").review_class is ReviewClass.TIMEOUT
    flow.check()


@pytest.mark.parametrize("swept", [True, False])
def test_a_signal_too_late_for_a_wait_that_went_on_serves_no_later_wait(swept: bool) -> None:
    nodes = {
        "w": wait("z", {"next": "v"}),
        "v": wait("z", early="KEEP"),
        "z": end(),
    }
    flow = Workflow(document(nodes))
    flow.start()
    assert flow.plan.waits == {"approval": ("v", "w"), "receipt": ()}
    if swept:
        flow.pause()
    flow.now = (flow.step("w").deadline_at or 0) + 1
    if swept:
        assert flow.scan() == 1
        assert flow.state_of("w") == "FAILED"
    flow.signal("approval", "m", {})
    assert states(flow) == ["EXPIRED"]
    if swept:
        flow.resume()
    flow.scan()
    assert flow.state_of("v") == "WAITING_SIGNAL"
    flow.signal("approval", "m", {})
    assert flow.status == "SUCCEEDED"
    flow.check()


def test_a_signal_stored_on_time_wins_over_the_deadline_however_late_it_is_looked_at() -> None:
    flow = Workflow(document({"w": wait("z", "FAIL"), "z": end()}))
    flow.start()
    signal = Signal("b" * 32, flow.id, "approval", match_key("m"), SignalState.PENDING, flow.now)
    flow.signals[signal.id] = signal
    flow.bodies[signal.id] = flow.signal_command("approval", "m", {}).body
    flow.wait(4000)
    assert flow.status == "SUCCEEDED"


def test_a_timed_out_wait_takes_the_exit_for_it() -> None:
    flow = Workflow(document({"w": wait("z", {"next": "late"}), "late": end(), "z": end()}))
    flow.start()
    flow.wait(3601)
    assert flow.status == "SUCCEEDED"
    assert flow.state_of("w") == "FAILED"
    assert flow.step("w").exit_taken == "on_timeout"


def test_a_timed_out_wait_that_fails_says_so() -> None:
    flow = Workflow(document({"w": wait("z", "FAIL"), "z": end()}))
    flow.start()
    flow.wait(3601)
    assert flow.status == "FAILED"
    assert flow.error is not None
    assert flow.error[0] == "TIMED_OUT"
    flow.check()


def test_a_signal_whose_own_time_is_over_is_stored_expired() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {}, expires_at=flow.now - 1)
    assert states(flow) == ["EXPIRED"]
    assert flow.state_of("w") == "WAITING_SIGNAL"


def test_a_pending_signal_expires_when_it_is_looked_at() -> None:
    flow = Workflow(document({"a": task("w"), "w": wait("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {}, expires_at=flow.now + SECOND)
    flow.pass_time(2)
    flow.succeed("a")
    assert states(flow) == ["EXPIRED"]
    assert flow.state_of("w") == "WAITING_SIGNAL"
    assert flow.events("workflow.signal.changed")[0].payload["disposition"] == "EXPIRED"


def test_a_pending_signal_that_expired_is_not_called_rejected_at_the_end() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {}, expires_at=flow.now)
    flow.pass_time(1)
    flow.succeed("a")
    assert states(flow) == ["EXPIRED"]


def test_too_many_unmatched_signals_are_refused_but_not_one_that_is_waited_for() -> None:
    flow = Workflow(document({"w": wait("z"), "z": end()}), EngineLimits(pending_signals=2))
    flow.start()
    flow.signal("approval", "x", {})
    flow.signal("approval", "y", {})
    refusal = flow.refuse(flow.signal_command("approval", "x", {}))
    assert refusal.code is Code.RESOURCE_EXHAUSTED
    flow.signal("approval", "m", {})
    assert flow.status == "SUCCEEDED"


def test_a_timer_fires_when_it_is_due_and_only_once() -> None:
    flow = Workflow(document({"t": timer("a"), "a": task("z"), "z": end()}))
    flow.start()
    timer_step = flow.step("t")
    flow.pass_time(59.999999)
    assert not flow.do(TimePassed(timer_step.id, flow.seed())).applied
    flow.pass_time(0.000001)
    assert flow.do(TimePassed(timer_step.id, flow.seed())).applied
    assert not flow.do(TimePassed(timer_step.id, flow.seed())).applied
    assert len(flow.tasks) == 1


@pytest.mark.parametrize("text", ["2100-01-01T00:00:00Z", "1999-01-01T00:00:00Z"])
def test_a_timer_until_an_instant_waits_for_it_or_goes_straight_on(text: str) -> None:
    flow = Workflow(document({"t": {"kind": "TIMER", "until": ref("input"), "next": "z"}, "z": end()}))
    flow.start(text)
    assert flow.status == ("SUCCEEDED" if text < "2000" else "WAITING")


@pytest.mark.parametrize("value", [5, "tomorrow"])
def test_a_timer_until_something_that_is_no_instant_needs_a_person(value: object) -> None:
    flow = Workflow(document({"t": {"kind": "TIMER", "until": ref("input"), "next": "z"}, "z": end()}))
    flow.start(value)
    assert flow.step("t").review_class is ReviewClass.UNMAPPED
    flow.conclude("t")
    assert flow.status == "SUCCEEDED"


def test_the_oldest_wait_is_served_first() -> None:
    nodes = {
        "p": {"kind": "PARALLEL", "arms": {"x": "t", "y": "w"}, "join": "j", "on_arm_failure": "STOP_OTHERS"},
        "t": timer("b", 10),
        "b": wait("j"),
        "w": wait("j"),
        "j": {"kind": "JOIN", "next": "z"},
        "z": end(),
        "never": failed(),
    }
    nodes.pop("never")
    flow = Workflow(document(nodes))
    flow.start()
    flow.wait(10)
    flow.signal("approval", "m", {})
    assert flow.step("w").state is StepState.COMPLETED
    assert flow.step("b").state is StepState.WAITING_SIGNAL


@pytest.mark.parametrize("value", [None, True, 1.5, ["m"], "x" * 300])
def test_a_wait_that_could_not_tell_its_business_apart_needs_a_person(value: object) -> None:
    flow = Workflow(document({"w": wait("z", match=ref("input")), "z": end()}))
    flow.start(value)
    assert flow.step("w").review_class is ReviewClass.UNMAPPED


def test_a_whole_number_matches_however_it_is_written() -> None:
    flow = Workflow(document({"w": wait("z", match=ref("input")), "z": end()}))
    flow.start(7.0)
    flow.signal("approval", 7, {})
    assert flow.status == "SUCCEEDED"


def test_a_sweep_marks_expired_signals_once_and_leaves_the_others() -> None:
    flow = Workflow(document({"a": task("z"), "z": end()}))
    flow.start()
    flow.signal("approval", "m", {}, expires_at=flow.now)
    flow.signal("approval", "m", {})
    flow.pass_time(1)
    assert flow.do(ExpireSignals(flow.seed())).applied
    assert states(flow) == ["EXPIRED", "PENDING"]
    assert flow.instance.pending_signals == 1
    assert not flow.do(ExpireSignals(flow.seed())).applied
    flow.check()


def test_the_order_of_keys_in_a_match_means_nothing() -> None:
    assert match_key({"a": 1, "b": 2}) == match_key({"b": 2, "a": 1})
