"""Expiry, cancel, detach, and a person's decision; and the table that all moves respect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbit_server.pulse.tasks.decide.move import Body, IllegalMove, to
from orbit_server.pulse.tasks.decide.start import due
from orbit_server.pulse.tasks.decide.stop import Resolution, Verdict, cancel, deadline, detach, resolve
from orbit_server.pulse.tasks.lifecycle import LEGAL_MOVES, TERMINAL, Recovery, Said, TaskState
from orbit_server.pulse.tasks.records import Attempt, Task
from tests.unit.pulse.making import NOW, SECOND, claimed, ends, ready, running

S = TaskState
R = Recovery


def scheduled() -> tuple[Task, Attempt | None]:
    return ready(due_at=NOW + SECOND, total_deadline_at=NOW + 9 * SECOND), None


def waiting() -> tuple[Task, Attempt | None]:
    return ready(total_deadline_at=NOW + 9 * SECOND), None


def offered() -> tuple[Task, Attempt | None]:
    return claimed(ready(total_deadline_at=NOW + 9 * SECOND))


def retrying() -> tuple[Task, Attempt | None]:
    task, attempt = running(total_deadline_at=NOW + 9 * SECOND)
    return ends(task, attempt, Said.RETRYABLE, effect_unknown=False).task, None


def verified() -> tuple[Task, Attempt | None]:
    task, attempt = running(recovery=R.VERIFIABLE, can_verify=True)
    return ends(task, attempt, Said.LEASE_LOST).task, None


def in_review() -> tuple[Task, Attempt | None]:
    task, attempt = running()
    return ends(task, attempt, Said.EXCEPTION).task, None


# --- expiry ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scheduled, waiting, retrying])
def test_what_has_not_started_in_time_expires(make: object) -> None:
    task, _ = make()  # type: ignore[operator]  # one of the makers above
    assert task.deadline_at == NOW + 9 * SECOND
    assert deadline(task, NOW + 9 * SECOND) is None
    move = deadline(task, NOW + 9 * SECOND + 1)
    assert move is not None
    assert (move.task.state, move.task.error_code) == (S.EXPIRED, "EXPIRED")
    doubted = deadline(replace(task, effect_possible=True), NOW + 9 * SECOND + 1)
    assert doubted is not None
    assert doubted.task.state is S.NEEDS_REVIEW


def test_the_deadline_does_not_cut_what_was_started() -> None:
    task, _ = running(total_deadline_at=NOW + SECOND)
    assert task.deadline_at is None
    assert deadline(task, NOW + 99 * SECOND) is None
    assert deadline(ready(), NOW) is None


def test_verification_has_a_time_of_its_own() -> None:
    task, _ = verified()
    limit = task.deadline_at or 0
    assert limit == NOW + 24 * 3600 * SECOND
    assert deadline(task, limit) is None
    move = deadline(task, limit + 1)
    assert move is not None
    assert (move.task.state, move.task.error_code) == (S.NEEDS_REVIEW, "VERIFICATION_EXHAUSTED")


# --- cancel ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scheduled, waiting, offered, retrying])
def test_what_has_not_started_is_cancelled_at_once(make: object) -> None:
    task, attempt = make()  # type: ignore[operator]  # one of the makers above
    done = cancel(task, attempt, NOW)
    assert done.move is not None
    assert (done.move.task.state, done.tell) == (S.CANCELLED, False)
    if attempt is not None:
        assert done.move.attempt is not None
        assert done.move.attempt.outcome is Said.NOT_STARTED
    doubted = cancel(replace(task, effect_possible=True), attempt, NOW)
    assert doubted.move is not None
    assert (doubted.move.task.state, doubted.move.task.cancel_requested) == (S.NEEDS_REVIEW, True)


def test_what_runs_is_asked_to_stop_once() -> None:
    task, attempt = running()
    done = cancel(task, attempt, NOW)
    assert done.move is not None
    assert (done.move.task.state, done.tell) == (S.CANCELLING, True)
    assert done.move.task.lease_until == task.lease_until
    assert cancel(done.move.task, attempt, NOW).move is None


def test_a_verification_that_waits_keeps_waiting_while_cancelling() -> None:
    task, _ = verified()
    done = cancel(task, None, NOW)
    assert done.move is not None
    after = done.move.task
    assert (after.state, after.blocked, done.tell) == (S.CANCELLING, 0, False)
    assert after.deadline_at == task.deadline_at


def test_a_review_keeps_the_intent_and_a_settled_task_nothing() -> None:
    task, _ = in_review()
    done = cancel(task, None, NOW)
    assert done.move is not None
    assert (done.move.task.state, done.move.task.cancel_requested) == (S.NEEDS_REVIEW, True)
    assert done.move.task.revision == task.revision + 1
    run, attempt = running()
    assert cancel(ends(run, attempt, Said.SUCCEEDED).task, None, NOW).move is None


# --- detach ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [scheduled, waiting, offered, retrying, verified, in_review])
def test_a_detached_task_that_does_not_run_is_cancelled(make: object) -> None:
    task, attempt = make()  # type: ignore[operator]  # one of the makers above
    move = detach(replace(task, effect_possible=True), attempt, NOW)
    assert move is not None
    assert (move.task.state, move.task.error_code) == (S.CANCELLED, "DETACHED")


def test_a_detached_task_that_runs_goes_on() -> None:
    task, attempt = running()
    move = detach(task, attempt, NOW)
    assert move is not None
    assert (move.task.state, move.task.detached, move.attempt) == (S.RUNNING, True, None)
    assert detach(move.task, attempt, NOW) is None
    assert detach(ends(task, attempt, Said.SUCCEEDED).task, None, NOW) is None


# --- review ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", Verdict)
def test_a_person_settles_a_review(verdict: Verdict) -> None:
    task, _ = in_review()
    move = resolve(task, Resolution(verdict, Body(result="{}"), "CODE"), NOW)
    assert move is not None
    assert move.task.state.value == verdict.value
    assert (move.task.review_class, move.task.settled_at) == (None, NOW)
    assert (move.task.error_code is None) is (verdict is Verdict.SUCCEEDED)


def test_only_a_review_is_settled_by_a_person() -> None:
    assert resolve(ready(), Resolution(Verdict.FAILED), NOW) is None


# --- the table ---------------------------------------------------------------------------------------------


def test_settled_states_have_no_way_out() -> None:
    assert {state for state, moves in LEGAL_MOVES.items() if not moves} == TERMINAL
    assert set(LEGAL_MOVES) == set(TaskState)


def test_a_move_outside_the_table_is_a_bug() -> None:
    task, attempt = running()
    done = ends(task, attempt, Said.SUCCEEDED).task
    with pytest.raises(IllegalMove, match="SUCCEEDED to READY"):
        to(done, S.READY, NOW)
    assert due(done, NOW) is None
