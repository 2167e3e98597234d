"""Why a task is where it is: from facts to sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.pulse.keys.queries import KeyFacts
from orbit_server.pulse.queues.queries import Paused
from orbit_server.pulse.tasks.decide.start import progressed
from orbit_server.pulse.tasks.keys.decide import UNCLAIMED_US
from orbit_server.pulse.tasks.keys.records import KeyRow
from orbit_server.pulse.tasks.lifecycle import Block, Recovery, ReviewClass, TaskState
from orbit_server.pulse.tasks.limits.records import LimitRow
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.why.explain import Explanation, explain
from orbit_server.pulse.why.facts import Facts, Session
from tests.unit.pulse.making import NOW, SECOND, SESSION, TIMES, begun, claimed, ready, running

SKEW = TIMES.lease_skew_ms * 1_000


def serving(*names: str, queue: str = "jobs", blocked: bool = False, **declared: Any) -> Session:
    handlers = {name: {"recovery": "CONSERVATIVE"} | declared for name in names}
    return Session("w", "b", frozenset({queue}), handlers, blocked)


def why(task: Task, **known: Any) -> Explanation:
    values: dict[str, Any] = {
        "now": NOW,
        "attempt": None,
        "queue_paused": False,
        "queue_pause": None,
        "gate": None,
        "key": None,
        "limits": (),
        "sessions": (serving("work@1"),),
        "ahead": 0,
    }
    return explain(Facts(task=task, **(values | known)), TIMES)


def codes(found: Explanation) -> list[str]:
    return [one.code for one in found.conditions]


def only(found: Explanation) -> str:
    (condition,) = found.conditions
    return condition.message


def limit(**changes: Any) -> LimitRow:
    row = LimitRow("9" * 32, "1" * 32, "jobs", None, 0, None, 0, None, 1_000, 0, 0, NOW, NOW, 1, NOW)
    return replace(row, **changes)


def key(most: int, holders: tuple[Task, ...], ahead: int = 0, admit_at: int | None = None) -> KeyFacts:
    row = KeyRow("8" * 32, "1" * 32, "2" * 32, "3" * 32, "car:7", len(holders), 1, admit_at, NOW)
    return KeyFacts(row=row, most=most, holders=holders, ahead=ahead)


def waiting_for_key() -> Task:
    return replace(ready(concurrency_key="car:7"), blocked=int(Block.KEY))


def verifying(**changes: Any) -> Task:
    return replace(ready(), state=TaskState.VERIFYING, verify_deadline_at=NOW + SECOND, **changes)


# --- at rest -----------------------------------------------------------------------------------------------


def test_a_settled_task_stays_as_it_is() -> None:
    found = why(replace(ready(), state=TaskState.CANCELLED, settled_at=NOW))
    assert (found.moves, found.next) == (False, None)
    assert only(found) == "the task is CANCELLED and stays so"


@pytest.mark.parametrize(
    ("review_class", "code", "words"),
    [
        (ReviewClass.DEFINITE, "CARD_REFUSED", "(DEFINITE: CARD_REFUSED)"),
        (None, None, "(UNKNOWN: no code)"),
    ],
)
def test_a_review_waits_for_a_person(review_class: ReviewClass | None, code: str | None, words: str) -> None:
    found = why(
        replace(ready(), state=TaskState.NEEDS_REVIEW, review_class=review_class, error_code=code, last=NOW)
    )
    assert (found.moves, found.next) == (False, None)
    assert only(found) == f"a person has to decide {words}"
    assert found.conditions[0].since == NOW


# --- under way ---------------------------------------------------------------------------------------------


def test_an_offer_waits_for_its_worker_until_the_lease_ends() -> None:
    task, attempt = claimed(ready())
    found = why(task, attempt=attempt)
    assert found.moves
    assert only(found) == "offered to worker w (build b), which has not asked to start yet"
    assert found.next is not None
    assert found.next.at == attempt.lease_until + SKEW


def test_an_attempt_whose_row_is_gone_counts_as_offered_to_some_worker() -> None:
    task, _ = claimed(ready())
    found = why(replace(task, lease_until=None))
    assert only(found) == "offered to a worker, which has not asked to start yet"
    assert found.conditions[0].until == NOW


def test_a_running_attempt_names_its_worker_and_when_its_lease_ends() -> None:
    task, attempt = running()
    found = why(task, attempt=attempt)
    assert only(found) == "worker w (build b) runs it"
    assert found.next is not None
    assert found.next.message == (
        "a result comes, or its lease ends unless it is renewed: then a person is asked (EFFECT_UNKNOWN)"
    )


def test_an_attempt_with_little_time_left_ends_with_its_time() -> None:
    task, attempt = running(attempt_timeout_ms=1_000)
    found = why(task, attempt=attempt)
    assert found.next is not None
    assert found.next.message.startswith("a result comes, or its time is over: then ")


def test_a_running_attempt_that_is_to_stop_says_that_the_worker_was_told() -> None:
    task, attempt = running()
    found = why(replace(task, state=TaskState.CANCELLING, cancel_requested=True), attempt=attempt)
    assert codes(found) == ["RUNNING", "CANCELLING"]


def test_a_verification_under_way_is_called_one() -> None:
    task, attempt = running()
    found = why(replace(task, state=TaskState.VERIFYING), attempt=attempt)
    assert only(found) == "worker w (build b) verifies it"


# --- not due, paused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TaskState.SCHEDULED, "it is not due yet"),
        (TaskState.RETRY_WAIT, "it backs off before attempt 1"),
        (TaskState.READY, "it backs off before it is offered again"),
    ],
)
def test_a_task_that_is_not_due_says_what_it_waits_for(state: TaskState, words: str) -> None:
    found = why(replace(ready(), state=state, due_at=NOW + SECOND))
    assert (found.moves, only(found)) == (False, words)
    assert found.next is not None
    assert (found.next.message, found.next.at) == (
        "it becomes ready",
        NOW + SECOND,
    )


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (None, ""),
        (Paused(NOW, "ann", None), " by ann"),
        (Paused(NOW, "ann", "stock count"), " by ann: stock count"),
    ],
)
def test_a_pause_names_who_and_why_as_far_as_known(who: Paused | None, words: str) -> None:
    task = ready(gated=True, instance_id="4" * 32)
    found = why(task, gate=who, queue_paused=True, queue_pause=who)
    assert codes(found) == ["PAUSED_WORKFLOW", "PAUSED_QUEUE"]
    assert [one.message for one in found.conditions] == [
        f"workflow {'4' * 32} is paused{words}",
        f"queue jobs is paused{words}",
    ]
    assert found.next is None


def test_a_paused_workflow_does_not_stop_a_verification() -> None:
    found = why(verifying(gate=1), sessions=(serving("work@1", verify=True),))
    assert codes(found) == ["TURN"]


# --- keys and limits ---------------------------------------------------------------------------------------


def test_a_full_key_names_who_holds_it_and_who_goes_before() -> None:
    holder, _ = running(id="c" * 32)
    found = why(waiting_for_key(), key=key(1, (holder,), ahead=2, admit_at=NOW + SECOND))
    assert only(found) == (
        f"key car:7 admits 1 task at a time and is held by task {'c' * 32} (RUNNING), 2 wait before it"
    )
    assert found.conditions[0].tasks == ("c" * 32,)
    assert found.conditions[0].until == holder.lease_until
    assert found.next is not None
    assert found.next.at == NOW + SECOND


def test_a_key_that_nobody_holds_any_more_is_looked_at_again() -> None:
    found = why(waiting_for_key(), key=key(3, ()))
    assert only(found) == "key car:7 admits 3 tasks at a time and is held by no task any more"
    assert found.next is not None
    assert found.next.at == NOW + UNCLAIMED_US


def test_a_key_is_no_reason_for_a_task_that_it_admitted() -> None:
    assert codes(why(ready(concurrency_key="car:7"), key=key(1, ()))) == ["TURN"]


def test_full_limits_say_whose_they_are_and_that_a_running_task_has_to_end() -> None:
    rows = (limit(running_max=2, running=2), limit(queue=None, running_max=5, running=5), limit())
    found = why(ready(), limits=rows)
    assert [one.message for one in found.conditions] == [
        "queue jobs runs 2 of at most 2 tasks",
        "the namespace runs 5 of at most 5 tasks",
    ]
    assert found.next is not None
    assert (found.next.message, found.next.at) == ("it takes its turn when a running task ends", None)


def test_a_full_limit_brings_no_turn_while_the_queue_is_paused() -> None:
    found = why(ready(), limits=(limit(running_max=1, running=1),), queue_paused=True)
    assert codes(found) == ["PAUSED_QUEUE", "LIMIT"]
    assert found.next is None


def test_a_spent_rate_says_when_the_next_start_is_allowed() -> None:
    found = why(ready(), limits=(limit(rate=2, burst=2),))
    assert only(found) == "queue jobs has spent its rate (2 per 1000 ms, 2 at once)"
    assert found.next is not None
    assert found.next.at == NOW + SECOND // 2


# --- workers -----------------------------------------------------------------------------------------------


def test_a_queue_without_workers_is_named() -> None:
    found = why(ready(), sessions=(serving("work@1", queue="other"),))
    assert only(found) == "no connected worker takes from queue jobs"
    assert found.next is None


def test_other_versions_on_offer_are_named_in_order() -> None:
    found = why(ready(), sessions=(serving("work@10", "work@2", "other@3"),))
    assert only(found) == "no worker on queue jobs offers version 1 of work (offered: 2, 10)"


def test_a_handler_that_nobody_knows_is_said_to_have_no_other_version() -> None:
    found = why(ready(), sessions=(serving("other@1"),))
    assert only(found) == "no worker on queue jobs offers version 1 of work, nor any other version"


def test_a_verification_needs_a_worker_that_can_verify() -> None:
    found = why(verifying())
    assert only(found) == "no worker on queue jobs can verify work@1"
    assert found.next is not None
    assert found.next.message == "a person is asked: no attempt may start after that"


def test_a_verification_of_a_handler_that_nobody_has_names_the_version() -> None:
    assert codes(why(verifying(), sessions=(serving("work@2"),))) == ["NO_HANDLER"]


def test_workers_that_are_all_of_blocked_builds_do_not_help() -> None:
    nameless = replace(serving("work@1", blocked=True), build=None)
    found = why(ready(), sessions=(serving("work@1", blocked=True), nameless))
    assert only(found) == "every worker that offers work@1 has a blocked build (?, b)"


# --- its turn ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(0, "it is next in line"), (1, "1 task goes before it"), (7, "7 tasks go before it")],
)
def test_a_task_that_lacks_nothing_says_how_many_go_before_it(ahead: int, words: str) -> None:
    found = why(ready(), ahead=ahead)
    assert (found.moves, only(found)) == (True, f"1 worker offers work@1; {words}")
    assert found.next is not None
    assert found.next.message == "the next free slot of a worker takes it"


def test_a_worker_that_declares_another_recovery_level_is_pointed_out() -> None:
    found = why(
        ready(recovery=Recovery.IDEMPOTENT),
        sessions=(serving("work@1"), serving("work@1", recovery="MARKED")),
    )
    assert codes(found) == ["TURN", "RECOVERY", "RECOVERY"]
    assert found.conditions[0].message.startswith("2 workers offer work@1")
    assert found.conditions[2].message == (
        "it was accepted as IDEMPOTENT, a worker declares MARKED: MARKED counts"
    )


@pytest.mark.parametrize(("doubted", "words"), [(False, "it expires"), (True, "a person is asked")])
def test_a_task_that_nobody_takes_ends_with_its_latest_start(doubted: bool, words: str) -> None:
    task = replace(ready(latest_start_at=NOW + SECOND), effect_possible=doubted)
    found = why(task, sessions=())
    assert found.next is not None
    assert (found.next.message, found.next.at) == (
        f"{words}: no attempt may start after that",
        NOW + SECOND,
    )


def test_a_handler_that_has_to_report_is_shown_with_the_time_that_it_has_left() -> None:
    task, attempt = begun(ready(), progress_timeout_ms=5_000)
    found = why(task, attempt=attempt)
    assert codes(found) == ["RUNNING", "PROGRESS"]
    assert (found.conditions[1].since, found.conditions[1].until) == (NOW, NOW + 5 * SECOND)
    assert "has said nothing yet" in found.conditions[1].message
    assert found.next is not None
    assert "its time without progress is over: then " in found.next.message
    later = progressed(task, attempt, SESSION, NOW + SECOND, TIMES)
    assert later is not None
    heard = why(later[0], attempt=later[1]).conditions[1]
    assert (heard.since, heard.until) == (NOW + SECOND, NOW + 6 * SECOND)
    assert "last reported" in heard.message


def test_a_handler_that_is_refused_for_its_types_is_named_with_its_worker_and_the_reason() -> None:
    session = replace(serving("other@1"), refused={"work@1": "other types"})
    found = why(ready(), sessions=(session,))
    assert codes(found) == ["NO_HANDLER"]
    assert only(found) == "work@1 of w on queue jobs is refused: other types; then start it anew"


# --- every state -------------------------------------------------------------------------------------------

OPEN = {"id": "e" * 32, "attempts_max": 3}
TURN = "the next free slot of a worker takes it"
LEASE = "a result comes, or its lease ends unless it is renewed: then "


def attempted(level: Recovery, **changes: Any) -> tuple[Task, dict[str, Any]]:
    task, attempt = begun(ready(recovery=level, **OPEN), recovery=level)
    return replace(task, **changes), {"attempt": attempt}


def case(state: TaskState) -> list[tuple[Task, dict[str, Any], str, str | None, int | None]]:
    """Tasks in this state: what is said first, what happens next, and when."""
    later = NOW + SECOND
    waiting = ready(latest_start_at=later)
    offered, offer = claimed(ready())
    lost = offer.lease_until + SKEW
    ends: dict[TaskState, str | None] = {
        TaskState.SUCCEEDED: None,
        TaskState.FAILED: "CARD_REFUSED",
        TaskState.EXPIRED: "EXPIRED",
        TaskState.CANCELLED: "CANCELLED",
    }
    if state in ends:
        code = ends[state]
        told = f"the task is {state}{f' ({code})' if code else ''} and stays so"
        return [(replace(ready(), state=state, settled_at=NOW, error_code=code), {}, told, None, None)]
    runs = "worker w (build b) runs it"
    asked = "what happened is asked again after a pause"
    verifies = {"sessions": (serving("work@1", verify=True),)}
    table = {
        TaskState.SCHEDULED: [
            (
                replace(ready(), state=state, due_at=later),
                {},
                "it is not due yet",
                "it becomes ready",
                later,
            )
        ],
        TaskState.RETRY_WAIT: [
            (
                replace(ready(), state=state, attempts_used=1, due_at=later),
                {},
                "it backs off before attempt 2",
                "it becomes ready",
                later,
            )
        ],
        TaskState.READY: [
            (
                waiting,
                {},
                "1 worker offers work@1; it is next in line",
                f"{TURN}, or it expires: no attempt may start after that",
                later,
            )
        ],
        TaskState.OFFERED: [
            (
                offered,
                {"attempt": offer},
                "offered to worker w (build b), which has not asked to start yet",
                "the offer is taken back and made to another worker",
                lost,
            )
        ],
        TaskState.RUNNING: [
            (*attempted(Recovery.IDEMPOTENT), runs, f"{LEASE}it is tried again", lost),
            (*attempted(Recovery.MARKED), runs, f"{LEASE}it is tried again", lost),
            (
                *attempted(Recovery.VERIFIABLE, can_verify=True),
                runs,
                f"{LEASE}a verify handler is asked what happened",
                lost,
            ),
            (*attempted(Recovery.CONSERVATIVE), runs, f"{LEASE}a person is asked (EFFECT_UNKNOWN)", lost),
            (
                *attempted(Recovery.READ_ONLY, attempts_max=1),
                runs,
                f"{LEASE}it fails (ATTEMPTS_EXHAUSTED)",
                lost,
            ),
        ],
        TaskState.VERIFYING: [
            (verifying(due_at=NOW + 1), verifies, asked, "its verify handler may be asked", NOW + 1),
            (
                verifying(),
                verifies,
                "1 worker verifies work@1; it is next in line",
                f"{TURN}, or a person is asked: no attempt may start after that",
                later,
            ),
        ],
        TaskState.CANCELLING: [
            (
                *attempted(Recovery.READ_ONLY, state=state, cancel_requested=True),
                runs,
                f"{LEASE}it is CANCELLED (CANCELLED)",
                lost,
            ),
            (
                verifying(cancel_requested=True, due_at=NOW + 1),
                verifies,
                asked,
                "its verify handler may be asked",
                NOW + 1,
            ),
        ],
        TaskState.NEEDS_REVIEW: [
            (
                replace(ready(), state=state, review_class=ReviewClass.UNKNOWN, error_code="EFFECT_UNKNOWN"),
                {},
                "a person has to decide (UNKNOWN: EFFECT_UNKNOWN)",
                None,
                None,
            )
        ],
    }
    return table[state]  # type: ignore[return-value]


@pytest.mark.parametrize("state", TaskState)
def test_every_state_says_what_is_so_and_what_happens_next_by_itself(state: TaskState) -> None:
    for task, known, first, then, at in case(state):
        found = why(task, **known)
        assert found.conditions[0].message == first
        told = (None, None) if found.next is None else (found.next.message, found.next.at)
        assert told == (then, at)
        assert ("CANCELLING" in codes(found)) is task.cancel_requested


def test_a_cancel_of_a_task_in_review_is_said_to_wait_for_the_same_decision() -> None:
    found = why(replace(ready(), state=TaskState.NEEDS_REVIEW, cancel_requested=True))
    assert codes(found) == ["REVIEW", "CANCELLING"]
    assert found.conditions[1].message == "a cancel was asked for; it waits for the same decision"
