"""Submitting, becoming due, claiming, starting, marking and renewing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.pulse.tasks.decide.finish import lease_ended
from orbit_server.pulse.tasks.decide.policy import (
    DEFAULT_POLICY,
    RetryPolicy,
    backoff_us,
    policy_of,
    verify_backoff_us,
)
from orbit_server.pulse.tasks.decide.start import (
    Started,
    Withdrawn,
    bind,
    claim,
    claimable,
    due,
    gate,
    mark,
    renew,
    start,
    withdraw,
)
from orbit_server.pulse.tasks.lifecycle import AttemptState, Block, Recovery, Said, TaskState, stricter
from orbit_server.pulse.tasks.records import Attempt, Task
from tests.unit.pulse.making import (
    ASKER,
    NONCE,
    NOW,
    SECOND,
    SESSION,
    TIMES,
    attempt_id,
    begun,
    claimed,
    ends,
    ground,
    ready,
    running,
    who,
)

S = TaskState
R = Recovery


def started(task: Task, attempt: Attempt, now: int = NOW) -> Started | Withdrawn:
    return start(task, attempt, ASKER, now, TIMES)[1]


# --- submit and due ----------------------------------------------------------------------------------------


def test_a_task_without_a_delay_is_ready_and_one_with_a_delay_is_scheduled() -> None:
    assert ready().state is S.READY
    later = ready(due_at=NOW + SECOND)
    assert (later.state, later.due_at) == (S.SCHEDULED, NOW + SECOND)
    assert ready(due_at=NOW).state is S.READY


def test_the_deadline_to_watch_is_the_earlier_of_latest_start_and_total_deadline() -> None:
    assert ready().deadline_at is None
    assert ready(latest_start_at=5, total_deadline_at=9).deadline_at == 5
    assert ready(total_deadline_at=9).deadline_at == 9


def test_a_task_becomes_ready_when_it_is_due_and_not_before() -> None:
    task = ready(due_at=NOW + SECOND)
    assert due(task, NOW + SECOND - 1) is None
    move = due(task, NOW + SECOND)
    assert move is not None
    assert (move.task.state, move.task.virtual_start, move.task.due_at) == (S.READY, NOW + SECOND, None)
    assert due(move.task, NOW + SECOND) is None


def test_a_task_that_is_due_too_late_expires() -> None:
    task = ready(due_at=NOW + SECOND, latest_start_at=NOW + SECOND)
    move = due(task, NOW + SECOND + 1)
    assert move is not None
    assert move.task.state is S.EXPIRED


def test_a_paused_workflows_task_becomes_ready_but_stays_blocked() -> None:
    task = ready(due_at=NOW + SECOND, gated=True)
    move = due(task, NOW + SECOND)
    assert move is not None
    assert (move.task.state, move.task.blocked) == (S.READY, Block.GATE)
    assert claimable(move.task) is None


# --- claim and start ---------------------------------------------------------------------------------------


def test_a_claim_opens_an_attempt_and_the_start_runs_it() -> None:
    task, attempt = claimed(ready())
    assert (task.state, task.generation, task.attempts_used) == (S.OFFERED, 1, 0)
    assert task.lease_until == NOW + 30 * SECOND
    move, answer = start(task, attempt, ASKER, NOW + SECOND, TIMES)
    assert isinstance(answer, Started)
    assert move is not None
    assert move.attempt is not None
    assert (move.task.state, move.task.attempts_used) == (S.RUNNING, 1)
    assert (move.attempt.state, move.attempt.limit_at) == (AttemptState.RUNNING, NOW + 61 * SECOND)


def test_the_same_process_is_granted_the_same_start_again_and_nobody_else_any() -> None:
    task, attempt = begun(ready())
    move, answer = start(task, attempt, ASKER, NOW, TIMES)
    assert move is None
    assert isinstance(answer, Started)
    assert isinstance(start(task, attempt, (SESSION, "0" * 32), NOW, TIMES)[1], Withdrawn)
    assert isinstance(start(task, attempt, ("0" * 32, NONCE), NOW, TIMES)[1], Withdrawn)


@pytest.mark.parametrize("recovery", R)
def test_only_repeatable_work_starts_with_its_claim(recovery: Recovery) -> None:
    task, attempt = claimed(ready(recovery=recovery), one_step=True)
    at_once = recovery in (R.READ_ONLY, R.IDEMPOTENT)
    assert (task.state is S.RUNNING) is at_once
    assert (attempt.started_at is not None) is at_once
    assert attempt.charged is at_once


def test_a_lease_never_outlives_the_attempts_time() -> None:
    task, attempt = begun(ready(recovery=R.READ_ONLY, attempt_timeout_ms=1_000), one_step=True)
    assert task.lease_until == attempt.limit_at == NOW + SECOND


@pytest.mark.parametrize("name", ["latest_start_at", "total_deadline_at"])
def test_a_start_is_allowed_up_to_its_last_instant(name: str) -> None:
    limits: dict[str, Any] = {name: NOW + SECOND}
    task, attempt = claimed(ready(**limits))
    assert isinstance(started(task, attempt, NOW + SECOND), Started)
    move, answer = start(task, attempt, ASKER, NOW + SECOND + 1, TIMES)
    assert isinstance(answer, Withdrawn)
    assert move is not None
    assert move.attempt is not None
    assert (move.task.state, move.attempt.outcome) == (S.EXPIRED, Said.NOT_STARTED)
    late = claim(ready(**limits), (), who(), attempt_id(1), NOW + SECOND + 1, TIMES)
    assert late is not None
    assert (late.task.state, late.attempt) == (S.EXPIRED, None)


def test_a_start_after_the_lease_is_withdrawn_and_the_task_offered_again_after_a_backoff() -> None:
    task, attempt = claimed(ready())
    end = task.lease_until or 0
    assert isinstance(started(task, attempt, end), Started)
    move, answer = start(task, attempt, ASKER, end + 1, TIMES)
    assert isinstance(answer, Withdrawn)
    assert move is not None
    assert (move.task.state, move.task.blocked, move.task.attempts_used) == (S.READY, Block.NOT_DUE, 0)
    again = due(move.task, move.task.due_at or 0)
    assert again is not None
    assert claimable(again.task) is not None


def test_a_start_is_withdrawn_while_the_workflow_is_paused() -> None:
    task, attempt = claimed(ready())
    assert isinstance(started(replace(task, gate=1), attempt), Withdrawn)


def test_a_start_is_withdrawn_when_a_late_success_came_in_between() -> None:
    task, attempt = claimed(ready())
    move, answer = start(replace(task, late_success=True), attempt, ASKER, NOW, TIMES)
    assert isinstance(answer, Withdrawn)
    assert move is not None
    assert move.task.state is S.NEEDS_REVIEW


def test_a_closed_offer_is_never_started() -> None:
    task, attempt = claimed(ready())
    move = withdraw(task, attempt, NOW, TIMES)
    assert move.attempt is not None
    assert isinstance(started(move.task, move.attempt), Withdrawn)


def test_what_is_not_ready_is_not_claimed() -> None:
    for task in (ready(due_at=NOW + 1), ready(gated=True), claimed(ready())[0], begun(ready())[0]):
        assert claim(task, (), who(), attempt_id(9), NOW, TIMES) is None


def test_an_offer_whose_lease_ended_is_offered_again_without_a_charge() -> None:
    task, attempt = claimed(ready())
    move = lease_ended(task, attempt, ground(NOW + 33 * SECOND))
    assert move is not None
    assert (move.task.state, move.task.attempts_used, move.task.uncharged) == (S.READY, 0, 0)


def test_the_worker_can_make_recovery_stricter_but_not_laxer() -> None:
    assert claimed(ready(recovery=R.READ_ONLY), recovery=R.CONSERVATIVE)[1].recovery is R.CONSERVATIVE
    assert claimed(ready(recovery=R.CONSERVATIVE), recovery=R.READ_ONLY)[1].recovery is R.CONSERVATIVE
    assert stricter(R.VERIFIABLE, R.MARKED) is R.CONSERVATIVE
    assert stricter(R.MARKED, R.MARKED) is R.MARKED


def test_a_withdrawn_verification_is_asked_again() -> None:
    task, attempt = running(recovery=R.VERIFIABLE, can_verify=True)
    lost = ends(task, attempt, Said.LEASE_LOST)
    assert lost.attempt is not None
    offered, verify = claimed(lost.task, earlier=(lost.attempt,))
    assert (offered.state, offered.attempt_id) == (S.VERIFYING, verify.id)
    move = withdraw(offered, verify, NOW, TIMES)
    assert (move.task.state, move.task.blocked) == (S.VERIFYING, Block.NOT_DUE)
    assert move.task.verify_deadline_at == offered.verify_deadline_at


def test_a_worker_that_can_verify_makes_the_task_verifiable() -> None:
    task, attempt = begun(ready(recovery=R.VERIFIABLE), can_verify=True)
    assert ends(task, attempt, Said.LEASE_LOST).task.state is S.VERIFYING


# --- gate --------------------------------------------------------------------------------------------------


def test_the_gate_withdraws_an_offer_and_lets_what_was_started_go_on() -> None:
    task, attempt = claimed(ready())
    closed = gate(task, attempt, True, NOW)
    assert closed is not None
    assert closed.attempt is not None
    assert (closed.task.state, closed.task.blocked, closed.attempt.outcome) == (
        S.READY,
        Block.GATE,
        Said.NOT_STARTED,
    )
    opened = gate(closed.task, None, False, NOW)
    assert opened is not None
    assert claimable(opened.task) is not None
    task, attempt = running()
    going = gate(task, attempt, True, NOW)
    assert going is not None
    assert (going.task.state, going.attempt, going.task.lease_until) == (S.RUNNING, None, task.lease_until)


def test_the_gate_keeps_backoff_and_verification_as_they_are() -> None:
    waiting = ready(due_at=NOW + SECOND)
    closed = gate(waiting, None, True, NOW)
    assert closed is not None
    assert (closed.task.state, closed.task.due_at) == (S.SCHEDULED, NOW + SECOND)
    task, attempt = running(recovery=R.VERIFIABLE, can_verify=True)
    lost = ends(task, attempt, Said.LEASE_LOST).task
    free = gate(lost, None, True, NOW)
    assert free is not None
    assert claimable(free.task) is not None


def test_the_gate_of_a_task_that_is_settled_or_already_so_is_left_alone() -> None:
    assert gate(ready(), None, False, NOW) is None
    task, attempt = running()
    assert gate(ends(task, attempt, Said.SUCCEEDED).task, None, True, NOW) is None
    review = ends(task, attempt, Said.EXCEPTION).task
    closed = gate(review, None, True, NOW)
    assert closed is not None
    assert (closed.task.gate, closed.task.revision) == (1, review.revision)


# --- mark, renew, bind -------------------------------------------------------------------------------------


def test_a_mark_is_granted_once_and_again_to_the_holder() -> None:
    task, attempt = running(recovery=R.MARKED)
    first, answer = mark(task, attempt, ASKER, NOW)
    assert answer == "GRANTED"
    assert first is not None
    assert mark(task, first, ASKER, NOW) == (None, "GRANTED")


def test_a_mark_is_refused_without_lease_time_or_right() -> None:
    task, attempt = running(recovery=R.MARKED, attempt_timeout_ms=5_000)
    offered = claimed(ready(recovery=R.MARKED))
    assert mark(*offered, ASKER, NOW)[1] == "LOST"
    assert mark(task, attempt, ("0" * 32, NONCE), NOW)[1] == "LOST"
    assert mark(task, attempt, ASKER, NOW + 5 * SECOND)[1] == "LOST"
    assert mark(replace(task, lease_until=NOW - 1), attempt, ASKER, NOW)[1] == "LOST"
    assert mark(replace(task, cancel_requested=True), attempt, ASKER, NOW)[1] == "CANCELLED"


def test_renewing_never_outlives_the_attempts_time() -> None:
    task, attempt = running(attempt_timeout_ms=40_000)
    longer = renew(task, attempt, SESSION, NOW + 5 * SECOND, TIMES)
    assert longer is not None
    assert longer.lease_until == NOW + 35 * SECOND
    assert longer.revision == task.revision
    capped = renew(task, attempt, SESSION, NOW + 20 * SECOND, TIMES)
    assert capped is not None
    assert capped.lease_until == NOW + 40 * SECOND
    assert renew(capped, attempt, SESSION, NOW + 41 * SECOND, TIMES) is None


def test_a_lease_is_renewed_only_by_its_holder_and_not_after_the_allowance() -> None:
    task, attempt = running()
    end = task.lease_until or 0
    assert renew(task, attempt, "0" * 32, NOW, TIMES) is None
    assert renew(task, attempt, SESSION, end + 2 * SECOND, TIMES) is not None
    assert renew(task, attempt, SESSION, end + 2 * SECOND + 1, TIMES) is None
    done = ends(task, attempt, Said.SUCCEEDED)
    assert done.attempt is not None
    assert renew(done.task, done.attempt, SESSION, NOW, TIMES) is None


def test_an_attempt_is_bound_to_another_session_with_a_new_lease() -> None:
    task, attempt = running()
    move = bind(task, attempt, "8" * 32, NOW + SECOND, TIMES)
    assert move is not None
    assert move.attempt is not None
    assert (move.attempt.session_id, move.task.lease_until) == ("8" * 32, NOW + 31 * SECOND)
    assert bind(task, attempt, "8" * 32, NOW + 60 * SECOND, TIMES) is None


# --- back-off ----------------------------------------------------------------------------------------------


def test_backoff_doubles_up_to_its_cap_and_jitter_only_shortens() -> None:
    plain = RetryPolicy(1_000, 200, 5_000, 0)
    assert [backoff_us(plain, n, "a", 0) for n in (1, 2, 3, 4, 99)] == [
        1 * SECOND,
        2 * SECOND,
        4 * SECOND,
        5 * SECOND,
        5 * SECOND,
    ]
    jittered = [backoff_us(replace(plain, jitter_percent=20), 1, str(salt), 0) for salt in range(50)]
    assert all(SECOND * 8 // 10 <= wait <= SECOND for wait in jittered)
    assert len(set(jittered)) > 10
    assert backoff_us(replace(plain, backoff_ms=0), 3, "a", 100) == SECOND // 10


def test_a_handler_may_ask_for_a_longer_wait_than_the_policys() -> None:
    task, attempt = running()
    assert ends(task, attempt, Said.RETRYABLE, effect_unknown=False, retry_after_ms=9_000).task.due_at == (
        NOW + 9 * SECOND
    )


def test_verification_backs_off_with_the_time_it_has_taken() -> None:
    waits = [
        verify_backoff_us(asked, "a", min_ms=1_000, max_ms=600_000) for asked in (0, 100 * SECOND, 10**12)
    ]
    assert waits[0] == SECOND
    assert 40 * SECOND <= waits[1] <= 60 * SECOND
    assert waits[2] == 600 * SECOND


def test_a_policy_reads_back_as_it_was_stored() -> None:
    policy = RetryPolicy(5, 150, 70, 3)
    assert policy_of(policy.to_json()) == policy
    assert policy_of(None) == DEFAULT_POLICY
