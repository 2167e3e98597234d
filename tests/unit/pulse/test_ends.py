"""What the end of an attempt means, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.pulse.tasks.decide.finish import Report, late, lease_ended
from orbit_server.pulse.tasks.decide.start import claim, due
from orbit_server.pulse.tasks.decide.stop import cancel
from orbit_server.pulse.tasks.lifecycle import Recovery, ReviewClass, Said, TaskState
from orbit_server.pulse.tasks.records import Attempt, Task
from tests.unit.pulse.making import (
    NOW,
    SECOND,
    TIMES,
    attempt_id,
    begun,
    ends,
    ground,
    marked,
    ready,
    running,
    who,
)

S = TaskState
R = Recovery
UNKNOWN_ENDS = (Said.EXCEPTION, Said.LEASE_LOST, Said.TIMED_OUT)


def after(recovery: Recovery, word: Said, *, mark: bool = False, **changes: Any) -> Task:
    report = {name: changes.pop(name) for name in ("effect_unknown", "code") if name in changes}
    task, attempt = running(recovery=recovery, **changes)
    return ends(task, marked(attempt) if mark else attempt, word, **report).task


@pytest.mark.parametrize("recovery", R)
def test_a_returned_value_is_success(recovery: Recovery) -> None:
    assert after(recovery, Said.SUCCEEDED).state is S.SUCCEEDED


@pytest.mark.parametrize("recovery", R)
def test_a_final_error_is_a_definite_failure_with_the_handlers_code(recovery: Recovery) -> None:
    task = after(recovery, Said.FINAL, code="NO_FUNDS")
    assert (task.state, task.error_code, task.effect_possible) == (S.FAILED, "NO_FUNDS", False)


@pytest.mark.parametrize("recovery", R)
def test_an_error_without_effect_is_tried_again(recovery: Recovery) -> None:
    task = after(recovery, Said.RETRYABLE, effect_unknown=False)
    assert (task.state, task.due_at, task.attempt_id) == (S.RETRY_WAIT, NOW + SECOND, None)


@pytest.mark.parametrize("word", UNKNOWN_ENDS)
@pytest.mark.parametrize(
    ("recovery", "changes", "state"),
    [
        (R.READ_ONLY, {}, S.RETRY_WAIT),
        (R.IDEMPOTENT, {}, S.RETRY_WAIT),
        (R.VERIFIABLE, {"can_verify": True}, S.VERIFYING),
        (R.VERIFIABLE, {}, S.NEEDS_REVIEW),
        (R.MARKED, {}, S.RETRY_WAIT),
        (R.MARKED, {"mark": True}, S.NEEDS_REVIEW),
        (R.MARKED, {"mark": True, "can_verify": True}, S.VERIFYING),
        (R.CONSERVATIVE, {}, S.NEEDS_REVIEW),
        (R.CONSERVATIVE, {"can_verify": True}, S.NEEDS_REVIEW),
        (R.READ_ONLY, {"attempts_max": 1}, S.FAILED),
        (R.MARKED, {"attempts_max": 1}, S.FAILED),
        (R.IDEMPOTENT, {"attempts_max": 1}, S.NEEDS_REVIEW),
    ],
)
def test_an_unknown_end_is_decided_by_the_recovery_level(
    word: Said, recovery: Recovery, changes: dict[str, Any], state: TaskState
) -> None:
    assert after(recovery, word, **changes).state is state


def test_a_retryable_error_of_unknown_effect_counts_as_an_unknown_end() -> None:
    assert after(R.CONSERVATIVE, Said.RETRYABLE).state is S.NEEDS_REVIEW
    assert after(R.IDEMPOTENT, Said.RETRYABLE).effect_possible


@pytest.mark.parametrize(("can_verify", "state"), [(True, S.VERIFYING), (False, S.NEEDS_REVIEW)])
def test_a_handler_may_ask_to_be_verified(can_verify: bool, state: TaskState) -> None:
    task = after(R.IDEMPOTENT, Said.NEEDS_VERIFICATION, can_verify=can_verify)
    assert task.state is state


def test_a_handler_may_ask_for_a_person() -> None:
    unknown = after(R.CONSERVATIVE, Said.NEEDS_PERSON, code="LOOK_AT_IT")
    definite = after(R.READ_ONLY, Said.NEEDS_PERSON)
    assert (unknown.state, unknown.review_class, unknown.error_code) == (
        S.NEEDS_REVIEW,
        ReviewClass.UNKNOWN,
        "LOOK_AT_IT",
    )
    assert (definite.review_class, definite.error_code) == (ReviewClass.DEFINITE, "NEEDS_PERSON")


def test_an_unusable_result_goes_to_a_person_with_its_body_as_evidence() -> None:
    task, attempt = running(recovery=R.IDEMPOTENT)
    move = ends(task, attempt, Said.INVALID_RESULT, result='{"big":1}', digest="d")
    assert (move.task.state, move.task.review_class) == (S.NEEDS_REVIEW, ReviewClass.UNMAPPED)
    assert move.task.effect_possible
    (note,) = move.notes
    assert (note.body, note.digest) == ('{"big":1}', "d")


def test_a_stop_that_nobody_asked_for_is_an_exception() -> None:
    task, attempt = running(recovery=R.CONSERVATIVE)
    move = ends(task, attempt, Said.CANCELLED)
    assert move.task.state is S.NEEDS_REVIEW
    assert move.attempt is not None
    assert move.attempt.outcome is Said.EXCEPTION


# --- failed means definite ---------------------------------------------------------------------------------


def test_the_last_attempt_without_effect_fails_only_if_no_earlier_one_may_have_had_one() -> None:
    task, attempt = running(recovery=R.IDEMPOTENT, attempts_max=2)
    lost = ends(task, attempt, Said.LEASE_LOST).task
    again, second = begun(become_due(lost), now=lost.due_at or 0)
    assert ends(again, second, Said.RETRYABLE, effect_unknown=False).task.state is S.NEEDS_REVIEW
    assert ends(again, second, Said.FINAL, code="NO").task.state is S.FAILED


def test_time_that_would_end_before_the_next_attempt_ends_the_task_now() -> None:
    task, attempt = running(recovery=R.READ_ONLY, total_deadline_at=NOW + SECOND - 1)
    move = ends(task, attempt, Said.RETRYABLE, effect_unknown=False)
    assert (move.task.state, move.task.error_code) == (S.FAILED, "EXPIRED")


def test_a_late_success_forbids_a_definite_failure() -> None:
    task, attempt = running(recovery=R.IDEMPOTENT)
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.attempt is not None
    noted = late(lost.task, lost.attempt, Report(Said.SUCCEEDED, result="{}", digest="x"), None)
    assert noted is not None
    assert noted.task.late_success
    again, second = begun(become_due(noted.task), now=noted.task.due_at or 0)
    failed = ends(again, second, Said.FINAL, code="NO").task
    assert (failed.state, failed.error_code) == (S.NEEDS_REVIEW, "LATE_SUCCESS")
    assert ends(again, second, Said.SUCCEEDED).task.state is S.SUCCEEDED


def test_a_late_success_of_a_read_only_handler_is_evidence_alone() -> None:
    task, attempt = running(recovery=R.READ_ONLY)
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.attempt is not None
    noted = late(lost.task, lost.attempt, Report(Said.SUCCEEDED, result="{}", digest="x"), None)
    assert noted is not None
    assert not noted.task.late_success


def test_a_late_success_sends_a_handler_that_is_not_repeatable_to_a_person_before_it_starts() -> None:
    task = replace(ready(recovery=R.MARKED), late_success=True)
    move = claim(task, (), who(), attempt_id(1), NOW, TIMES)
    assert move is not None
    assert move.attempt is None
    assert (move.task.state, move.task.error_code) == (S.NEEDS_REVIEW, "LATE_SUCCESS")


def test_a_stricter_worker_does_not_repeat_what_a_laxer_one_may_have_done() -> None:
    task, attempt = running(recovery=R.IDEMPOTENT)
    waiting = become_due(ends(task, attempt, Said.EXCEPTION).task)
    move = claim(waiting, (), who(recovery=R.CONSERVATIVE), attempt_id(2), waiting.virtual_start, TIMES)
    assert move is not None
    assert (move.attempt, move.task.state, move.task.error_code) == (None, S.NEEDS_REVIEW, "EFFECT_UNKNOWN")
    assert begun(waiting, now=waiting.virtual_start)[0].state is S.RUNNING


@pytest.mark.parametrize(
    ("state", "word", "contradicts"),
    [
        (S.SUCCEEDED, Said.SUCCEEDED, False),
        (S.FAILED, Said.SUCCEEDED, True),
        (S.CANCELLED, Said.SUCCEEDED, True),
        (S.FAILED, Said.EXCEPTION, False),
        (S.RETRY_WAIT, Said.SUCCEEDED, False),
    ],
)
def test_late_evidence_says_whether_it_contradicts(state: TaskState, word: Said, contradicts: bool) -> None:
    task, attempt = running(recovery=R.IDEMPOTENT)
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.attempt is not None
    noted = late(replace(lost.task, state=state), lost.attempt, Report(word, error="{}", digest="x"), "y")
    assert noted is not None
    assert noted.notes[0].contradiction is contradicts


def test_a_repeated_report_is_nothing_new() -> None:
    for word in (Said.SUCCEEDED, Said.FINAL):
        task, attempt = running()
        move = ends(task, attempt, word)
        assert move.attempt is not None
        same = Report(word, result="{}", error=move.attempt.error, digest="same")
        assert late(move.task, move.attempt, same, "same") is None


def test_a_different_report_of_a_settled_attempt_is_evidence() -> None:
    task, attempt = running()
    move = ends(task, attempt, Said.SUCCEEDED)
    assert move.attempt is not None
    noted = late(move.task, move.attempt, Report(Said.FINAL, error="{}", digest="z"), "digest")
    assert noted is not None
    assert noted.task is move.task
    assert noted.notes[0].contradiction


# --- handed back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [Said.HAND_BACK, Said.DISCARDED, Said.NOT_DELIVERED])
def test_what_is_handed_back_is_ready_again_and_not_charged(word: Said) -> None:
    task, attempt = running()
    move = ends(task, attempt, word)
    assert move.attempt is not None
    assert (move.task.state, move.task.attempts_used, move.task.uncharged) == (S.READY, 0, 1)
    assert not move.attempt.charged


def test_the_sixth_hand_back_is_charged() -> None:
    task, attempt = running(attempts_max=2)
    for _ in range(5):
        task, attempt = begun(ends(task, attempt, Said.HAND_BACK).task)
    sixth = ends(task, attempt, Said.HAND_BACK)
    assert sixth.attempt is not None
    assert (sixth.task.state, sixth.task.attempts_used) == (S.RETRY_WAIT, 1)
    assert sixth.attempt.charged


# --- leases ------------------------------------------------------------------------------------------------


def test_a_lease_is_honoured_for_the_allowance_after_its_end() -> None:
    task, attempt = running(recovery=R.READ_ONLY)
    end = task.lease_until or 0
    assert lease_ended(task, attempt, ground(end + 2 * SECOND)) is None
    move = lease_ended(task, attempt, ground(end + 2 * SECOND + 1))
    assert move is not None
    assert move.attempt is not None
    assert (move.task.state, move.attempt.outcome) == (S.RETRY_WAIT, Said.LEASE_LOST)


def test_a_lease_that_ends_with_the_attempts_time_is_a_timeout() -> None:
    task, attempt = running(recovery=R.READ_ONLY, attempt_timeout_ms=5_000)
    assert task.lease_until == NOW + 5 * SECOND
    move = lease_ended(task, attempt, ground(NOW + 8 * SECOND))
    assert move is not None
    assert move.attempt is not None
    assert move.attempt.outcome is Said.TIMED_OUT


# --- verification ------------------------------------------------------------------------------------------


def verifying(**changes: Any) -> tuple[Task, Attempt]:
    """A verification under way, the run before it lost."""
    values: dict[str, Any] = {"recovery": R.VERIFIABLE, "can_verify": True}
    task, attempt = running(**(values | changes))
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.task.state is S.VERIFYING
    assert lost.attempt is not None
    return begun(lost.task, earlier=(lost.attempt,))


def test_a_verification_asks_about_the_last_run() -> None:
    task, attempt = verifying()
    assert (attempt.kind, attempt.asked_generation, attempt.generation) == ("VERIFY", 1, 2)
    assert (task.state, task.attempts_used, attempt.charged) == (S.VERIFYING, 1, False)


@pytest.mark.parametrize(
    ("word", "changes", "state"),
    [
        (Said.HAPPENED, {}, S.SUCCEEDED),
        (Said.CANNOT_HAPPEN_ANY_MORE, {}, S.RETRY_WAIT),
        (Said.CANNOT_HAPPEN_ANY_MORE, {"attempts_max": 1}, S.FAILED),
        (Said.CANNOT_TELL, {}, S.VERIFYING),
        (Said.EXCEPTION, {}, S.VERIFYING),
        (Said.HAND_BACK, {}, S.VERIFYING),
        (Said.LEASE_LOST, {}, S.VERIFYING),
        (Said.NEEDS_PERSON, {}, S.NEEDS_REVIEW),
        (Said.INVALID_RESULT, {}, S.NEEDS_REVIEW),
    ],
)
def test_an_answer_of_verification_decides(word: Said, changes: dict[str, Any], state: TaskState) -> None:
    assert ends(*verifying(**changes), word).task.state is state


def test_cannot_happen_any_more_clears_the_doubt_unless_a_success_is_stored() -> None:
    task, attempt = verifying()
    assert not ends(task, attempt, Said.CANNOT_HAPPEN_ANY_MORE).task.effect_possible
    doubted = replace(task, late_success=True)
    assert ends(doubted, attempt, Said.CANNOT_HAPPEN_ANY_MORE).task.state is S.NEEDS_REVIEW


def test_verification_is_asked_again_with_backoff_until_its_own_time_is_over() -> None:
    task, attempt = verifying()
    again = ends(task, attempt, Said.CANNOT_TELL).task
    assert again.due_at == NOW + SECOND
    assert claim(again, (), who(), attempt_id(3), NOW, TIMES) is None
    waited = due(again, NOW + SECOND)
    assert waited is not None
    assert waited.task.blocked == 0
    limit = task.verify_deadline_at or 0
    assert ends(task, attempt, Said.CANNOT_TELL, now=limit).task.state is S.NEEDS_REVIEW


def test_an_answer_about_another_generation_is_evidence() -> None:
    task, attempt = verifying()
    move = ends(task, attempt, Said.HAPPENED, asked_generation=7)
    assert move.task.state is S.VERIFYING
    assert move.notes[0].kind == "VERIFY_OTHER_GENERATION"


# --- cancelling --------------------------------------------------------------------------------------------


def cancelling(*, mark: bool = False, **changes: Any) -> tuple[Task, Attempt]:
    task, attempt = running(**changes)
    done = cancel(task, attempt, NOW)
    assert done.tell
    assert done.move is not None
    return done.move.task, marked(attempt) if mark else attempt


@pytest.mark.parametrize(
    ("recovery", "word", "changes", "state"),
    [
        (R.CONSERVATIVE, Said.SUCCEEDED, {}, S.SUCCEEDED),
        (R.CONSERVATIVE, Said.FINAL, {}, S.FAILED),
        (R.CONSERVATIVE, Said.CANCELLED, {}, S.CANCELLED),
        (R.CONSERVATIVE, Said.HAND_BACK, {}, S.CANCELLED),
        (R.CONSERVATIVE, Said.EXCEPTION, {}, S.NEEDS_REVIEW),
        (R.CONSERVATIVE, Said.LEASE_LOST, {}, S.NEEDS_REVIEW),
        (R.CONSERVATIVE, Said.NEEDS_PERSON, {}, S.NEEDS_REVIEW),
        (R.IDEMPOTENT, Said.LEASE_LOST, {}, S.NEEDS_REVIEW),
        (R.READ_ONLY, Said.LEASE_LOST, {}, S.CANCELLED),
        (R.VERIFIABLE, Said.LEASE_LOST, {"can_verify": True}, S.VERIFYING),
        (R.VERIFIABLE, Said.NEEDS_VERIFICATION, {"can_verify": True}, S.VERIFYING),
        (R.MARKED, Said.LEASE_LOST, {}, S.CANCELLED),
        (R.MARKED, Said.LEASE_LOST, {"mark": True}, S.NEEDS_REVIEW),
    ],
)
def test_a_cancelled_run_ends_as_what_really_happened(
    recovery: Recovery, word: Said, changes: dict[str, Any], state: TaskState
) -> None:
    task, attempt = cancelling(recovery=recovery, **changes)
    assert ends(task, attempt, word).task.state is state


def test_a_cancelled_run_stopped_without_effect_is_cancelled() -> None:
    task, attempt = cancelling()
    assert ends(task, attempt, Said.RETRYABLE, effect_unknown=False).task.state is S.CANCELLED


def test_a_stop_is_no_cancel_when_an_earlier_attempt_may_have_had_an_effect() -> None:
    task, attempt = cancelling(recovery=R.IDEMPOTENT)
    task = replace(task, effect_possible=True)
    assert ends(task, attempt, Said.CANCELLED).task.state is S.NEEDS_REVIEW
    assert ends(task, attempt, Said.HAND_BACK).task.state is S.NEEDS_REVIEW


def test_verification_with_a_cancel_intended_ends_cancelled_when_it_cannot_happen() -> None:
    task, attempt = cancelling(recovery=R.VERIFIABLE, can_verify=True)
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.attempt is not None
    asked, verify = begun(lost.task, earlier=(lost.attempt,))
    assert ends(asked, verify, Said.CANNOT_HAPPEN_ANY_MORE).task.state is S.CANCELLED
    assert ends(asked, verify, Said.HAPPENED).task.state is S.SUCCEEDED
    again = ends(asked, verify, Said.CANNOT_TELL).task
    assert (again.state, again.cancel_requested) == (S.VERIFYING, True)


def test_a_verification_under_way_survives_the_cancel() -> None:
    task, attempt = verifying()
    done = cancel(task, attempt, NOW)
    assert done.move is not None
    assert done.move.task.state is S.CANCELLING
    assert ends(done.move.task, attempt, Said.CANNOT_TELL).task.state is S.VERIFYING
    assert ends(done.move.task, attempt, Said.CANNOT_HAPPEN_ANY_MORE).task.state is S.CANCELLED


# --- detached ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "state"),
    [
        (Said.SUCCEEDED, S.SUCCEEDED),
        (Said.FINAL, S.FAILED),
        (Said.EXCEPTION, S.CANCELLED),
        (Said.NEEDS_PERSON, S.CANCELLED),
        (Said.LEASE_LOST, S.CANCELLED),
        (Said.HAND_BACK, S.CANCELLED),
        (Said.INVALID_RESULT, S.CANCELLED),
    ],
)
def test_a_detached_query_never_becomes_a_review(word: Said, state: TaskState) -> None:
    task, attempt = running(recovery=R.IDEMPOTENT)
    assert ends(replace(task, detached=True), attempt, word).task.state is state


@pytest.mark.parametrize(
    "word", [Said.CANNOT_TELL, Said.NEEDS_PERSON, Said.INVALID_RESULT, Said.CANNOT_HAPPEN_ANY_MORE]
)
def test_a_detached_verification_ends_cancelled(word: Said) -> None:
    task, attempt = verifying()
    move = ends(replace(task, detached=True), attempt, word)
    assert (move.task.state, move.task.error_code) == (S.CANCELLED, "DETACHED")


def become_due(task: Task) -> Task:
    move = due(task, task.due_at or 0)
    assert move is not None
    return move.task
