"""What a person may add to the budgets of a step in review, and what it is good for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbit_sdk.engine import CreateTask, TaskPhase, Verdict
from orbit_sdk.engine.commands import GrantBudget
from orbit_sdk.engine.state import Granted
from orbit_sdk.errors import Code
from tests.documents import document, end, poll, ref, task, wait
from tests.workflows import SECOND, Workflow


def started(node: object) -> Workflow:
    flow = Workflow(document({"a": node, "z": end()}))  # type: ignore[dict-item]
    flow.start()
    return flow


def grant(flow: Workflow, **more: int) -> GrantBudget:
    return GrantBudget("a", flow.step("a").revision, flow.seed(), **more)


def failed_task() -> Workflow:
    """A task that used all its attempts and definitely failed."""
    flow = started(task("z", "safe"))
    flow.fail("a", attempts=3)
    return flow


def test_granted_attempts_make_a_rerun_possible_and_are_all_that_it_gets() -> None:
    flow = failed_task()
    assert "have more granted" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.do(grant(flow, attempts=2))
    assert flow.step("a").state == "NEEDS_REVIEW"
    assert flow.step("a").granted == Granted(attempts=2)
    event = flow.events("workflow.recovered")[-1]
    assert (event.payload["verdict"], event.payload["attempts"]) == ("GRANT", 2)
    flow.rerun("a")
    assert flow.effects(CreateTask)[-1].attempts_max == 2
    flow.check()


def test_what_is_granted_is_added_and_never_reset() -> None:
    flow = failed_task()
    flow.do(grant(flow, attempts=1))
    flow.do(grant(flow, attempts=2, time_ms=1000))
    assert flow.step("a").granted == Granted(attempts=3, time_ms=1000)
    flow.rerun("a")
    flow.fail("a", attempts=3)
    assert "no attempt is left" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.check()


def test_granted_rounds_let_a_poll_ask_on_with_the_next_round() -> None:
    flow = started(poll("z", rounds=2))
    for _ in range(2):
        flow.succeed("a", {"state": "pending"})
        flow.wait(31)
    assert flow.step("a").reason == "ROUND_2:ROUNDS_EXHAUSTED"
    assert "no round is left" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.do(grant(flow, attempts=1))
    assert "no round is left" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    flow.do(grant(flow, rounds=1))
    flow.rerun("a")
    assert (flow.step("a").round, flow.step("a").attempts_spent) == (3, 0)
    assert flow.step("a").granted == Granted(rounds=1), "attempts were for the round before"
    flow.succeed("a", {"state": "pending"})
    assert flow.step("a").reason == "ROUND_3:ROUNDS_EXHAUSTED"
    flow.check()


def test_granted_time_moves_the_deadline_of_a_wait_and_opens_it_again() -> None:
    flow = started(wait("z"))
    until = flow.step("a").deadline_at
    flow.wait(2 * 3600)
    assert "no time is left" in flow.refuse(flow.review("a", Verdict.RERUN)).message
    short = flow.refuse(grant(flow, time_ms=1000))
    assert (short.code, short.details[0].field) == (Code.FAILED_PRECONDITION, "time_ms")
    flow.do(grant(flow, time_ms=2 * 3600 * 1000))
    assert flow.step("a").deadline_at == (until or 0) + 2 * 3600 * SECOND
    flow.rerun("a")
    assert flow.step("a").state == "WAITING_SIGNAL"
    flow.check()


def test_granted_time_lets_a_late_poll_ask_its_next_round() -> None:
    flow = started(poll("z", rounds=5))
    flow.wait(2 * 3600)
    assert flow.step("a").reason == "ROUND_1:DEADLINE_PASSED"
    flow.do(grant(flow, time_ms=2 * 3_600_000))
    flow.rerun("a")
    assert flow.step("a").round == 2
    flow.check()


@pytest.mark.parametrize(
    ("node", "more", "field"),
    [
        (task("z", "safe"), {"rounds": 1}, "rounds"),
        (wait("z"), {"attempts": 1}, "attempts"),
        (wait("z"), {}, "attempts"),
        (task("z", "safe"), {"attempts": -1}, "attempts"),
    ],
)
def test_what_a_step_has_not_is_not_granted(node: object, more: dict[str, int], field: str) -> None:
    flow = started(node)
    if "handler" in node:  # type: ignore[operator]
        flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    else:
        flow.wait(2 * 3600)
    refused = flow.refuse(grant(flow, **more))
    assert (refused.code, refused.details[0].field) == (Code.INVALID_ARGUMENT, field)


def test_grants_are_capped_in_all_and_need_the_revision_that_was_seen() -> None:
    flow = failed_task()
    flow.do(grant(flow, attempts=15))
    refused = flow.refuse(grant(flow, attempts=6))
    assert (refused.code, refused.details[0].field) == (Code.FAILED_PRECONDITION, "attempts")
    assert "at most 20" in refused.message
    stale = replace(grant(flow, attempts=1), expected_revision=flow.step("a").revision - 1)
    assert flow.refuse(stale).details[0].field == "expected_revision"


def test_what_is_being_stopped_and_what_is_in_no_review_is_granted_nothing() -> None:
    flow = Workflow(document({"a": task("z", "risky"), "z": end(ref("a"))}))
    flow.start()
    assert "not in review" in flow.refuse(grant(flow, attempts=1)).message
    flow.report("a", TaskPhase.NEEDS_REVIEW, effect_possible=True)
    flow.cancel()
    assert "being stopped" in flow.refuse(grant(flow, attempts=1)).message


def test_more_than_was_granted_is_a_violation() -> None:
    flow = failed_task()
    flow.do(grant(flow, attempts=2))
    flow.rerun("a")
    flow.check()
    last = flow.history[-1]
    forged = tuple(
        replace(change, after=replace(change.after, granted=Granted(attempts=9))) for change in last.steps
    )
    flow.history[-1] = replace(last, steps=forged)
    with pytest.raises(AssertionError, match="got more than it was granted"):
        flow.check()
