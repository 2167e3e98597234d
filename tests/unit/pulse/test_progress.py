"""The time without progress: a handler that reports nothing is over, judged by what it may repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbit_server.pulse.tasks.decide.finish import lease_ended
from orbit_server.pulse.tasks.decide.start import bind, progressed, renew
from orbit_server.pulse.tasks.lifecycle import AttemptState, Recovery, Said, TaskState
from orbit_server.pulse.tasks.records import Attempt, Task
from tests.unit.pulse.making import NOW, SECOND, SESSION, TIMES, begun, claimed, ground, ready

PATIENCE = 40
"""Seconds: longer than a lease."""
SKEW = TIMES.lease_skew_ms * 1_000


def reporting(recovery: Recovery = Recovery.CONSERVATIVE, seconds: int = PATIENCE) -> tuple[Task, Attempt]:
    task = ready(recovery=recovery, attempt_timeout_ms=600_000)
    return begun(task, recovery=recovery, progress_timeout_ms=seconds * 1_000)


def later(task: Task, attempt: Attempt, seconds: float) -> int:
    """The lease that a renewal grants, in seconds from the start of the attempt; 0: none."""
    after = renew(task, attempt, SESSION, NOW + int(seconds * SECOND), TIMES)
    return 0 if after is None or after.lease_until is None else (after.lease_until - NOW) // SECOND


def test_a_lease_never_outlives_the_time_without_progress() -> None:
    task, attempt = reporting(seconds=5)
    assert task.lease_until == attempt.lease_until == NOW + 5 * SECOND
    task, attempt = reporting()
    assert task.lease_until == NOW + 30 * SECOND
    assert later(task, attempt, 5) == 35
    assert later(task, attempt, 20) == 40


def test_progress_starts_the_time_anew_and_renews_the_lease() -> None:
    task, attempt = reporting()
    found = progressed(task, attempt, SESSION, NOW + 25 * SECOND, TIMES)
    assert found is not None
    task, attempt = found
    assert attempt.progress_at == NOW + 25 * SECOND
    assert task.lease_until == NOW + 55 * SECOND
    assert later(task, attempt, 50) == 65


def test_progress_that_comes_after_the_lease_or_from_another_session_renews_nothing() -> None:
    task, attempt = reporting(seconds=5)
    assert progressed(task, attempt, SESSION, NOW + 5 * SECOND, TIMES) is not None
    assert progressed(task, attempt, SESSION, NOW + 5 * SECOND + 1, TIMES) is None
    assert progressed(task, attempt, "6" * 32, NOW + SECOND, TIMES) is None


def test_without_the_rule_progress_writes_no_lease() -> None:
    task, attempt = begun(ready())
    assert progressed(task, attempt, SESSION, NOW + SECOND, TIMES) is None
    assert attempt.progress_until is None


def test_a_start_in_one_step_counts_from_the_claim() -> None:
    task, attempt = claimed(ready(recovery=Recovery.IDEMPOTENT), one_step=True, progress_timeout_ms=31_000)
    assert attempt.progress_until == NOW + 31 * SECOND
    assert task.lease_until == attempt.lease_until == NOW + 30 * SECOND


@pytest.mark.parametrize(
    ("attempt_s", "patience_ms", "state"),
    [
        (30, None, AttemptState.RUNNING),
        (29, None, AttemptState.OFFERED),
        (60, 30_000, AttemptState.RUNNING),
        (60, 29_999, AttemptState.OFFERED),
    ],
)
def test_what_has_less_time_than_a_lease_is_started_in_two_steps(
    attempt_s: int, patience_ms: int | None, state: AttemptState
) -> None:
    task = ready(recovery=Recovery.IDEMPOTENT, attempt_timeout_ms=attempt_s * 1_000)
    assert claimed(task, one_step=True, progress_timeout_ms=patience_ms)[1].state is state


def test_another_connection_of_the_process_does_not_lengthen_the_time() -> None:
    task, attempt = reporting()
    move = bind(task, attempt, "6" * 32, NOW + 29 * SECOND, TIMES)
    assert move is not None
    assert move.task.lease_until == NOW + PATIENCE * SECOND


@pytest.mark.parametrize(
    ("recovery", "state"),
    [
        (Recovery.READ_ONLY, TaskState.RETRY_WAIT),
        (Recovery.IDEMPOTENT, TaskState.RETRY_WAIT),
        (Recovery.MARKED, TaskState.RETRY_WAIT),
        (Recovery.CONSERVATIVE, TaskState.NEEDS_REVIEW),
    ],
)
def test_a_handler_that_reports_nothing_is_judged_like_one_whose_time_is_over(
    recovery: Recovery, state: TaskState
) -> None:
    task, attempt = reporting(recovery, seconds=5)
    assert lease_ended(task, attempt, ground(NOW + 5 * SECOND + SKEW)) is None
    move = lease_ended(task, attempt, ground(NOW + 5 * SECOND + SKEW + 1))
    assert move is not None
    assert move.attempt is not None
    assert (move.task.state, move.attempt.outcome) == (state, Said.NO_PROGRESS)
    assert move.attempt.charged


def test_a_verification_has_no_time_without_progress() -> None:
    task, attempt = reporting(Recovery.VERIFIABLE, seconds=5)
    task = replace(task, can_verify=True)
    move = lease_ended(task, attempt, ground(NOW + 10 * SECOND))
    assert move is not None
    assert move.task.state is TaskState.VERIFYING
    assert move.attempt is not None
    _, asking = claimed(move.task, now=NOW + 10 * SECOND, progress_timeout_ms=5_000, earlier=[move.attempt])
    assert asking.progress_timeout_ms is None


def test_a_lost_lease_and_the_time_of_the_attempt_keep_their_own_names() -> None:
    task, attempt = reporting()
    lost = lease_ended(task, attempt, ground(NOW + 33 * SECOND))
    assert lost is not None
    assert lost.attempt is not None
    assert lost.attempt.outcome is Said.LEASE_LOST
    task, attempt = begun(ready(attempt_timeout_ms=3_000), progress_timeout_ms=5_000)
    over = lease_ended(task, attempt, ground(NOW + 33 * SECOND))
    assert over is not None
    assert over.attempt is not None
    assert over.attempt.outcome is Said.TIMED_OUT
