"""Submitting a task, and a person's orders about one, on rows in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.errors import FailedPrecondition, InvalidArgument, NotFound
from orbit_sdk.values.ids import IdSeed
from orbit_server.platform.audit import AUDIT
from orbit_server.pulse.ids import retry_id_of
from orbit_server.pulse.tasks.commands import By, CancelTask, ResolveReview, RetryTask, SubmitTask
from orbit_server.pulse.tasks.decide.stop import Verdict
from orbit_server.pulse.tasks.decide.submit import submit
from orbit_server.pulse.tasks.lifecycle import ReviewClass, TaskState
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASK_SPECS, TASKS
from orbit_server.storage.book import Book
from tests.unit.pulse.books import book_of, run
from tests.unit.pulse.making import NOW, SECOND, new, ready

SPACE = "1" * 32
A = "a" * 32
BY = By("ann", "checked by hand", IdSeed(NOW, "x"))


def settled(state: TaskState = TaskState.FAILED, **changes: Any) -> Task:
    return replace(ready(**changes), state=state, settled_at=NOW)


def in_review() -> Task:
    return replace(ready(), state=TaskState.NEEDS_REVIEW, review_class=ReviewClass.DEFINITE)


def stored(task: Task) -> Book:
    spec = submit(new(), NOW)[1]
    return book_of((TASKS, task), (TASK_SPECS, spec))


def retry(task: Task, **changes: Any) -> RetryTask:
    return RetryTask(None, SPACE, A, changes.pop("revision", task.revision), BY, 3, **changes)


# --- submit ------------------------------------------------------------------------------------------------


def test_a_task_that_is_known_already_is_answered_and_not_made_again() -> None:
    book = book_of((TASKS, settled()))
    assert run(book, SubmitTask(None, new()))["state"] == "FAILED"
    assert book.written() == []


def test_relative_times_count_from_when_the_task_may_start() -> None:
    book = book_of()
    command = SubmitTask(None, new(), delay_ms=1_000, start_within_ms=2_000, total_timeout_ms=3_000)
    assert run(book, command)["state"] == "SCHEDULED"
    task = book.get(TASKS, A)
    assert task is not None
    assert (task.due_at, task.latest_start_at, task.total_deadline_at) == (
        NOW + SECOND,
        NOW + 3 * SECOND,
        NOW + 4 * SECOND,
    )


# --- cancel and resolve ------------------------------------------------------------------------------------


def test_cancelling_twice_leaves_one_trace() -> None:
    book = book_of((TASKS, ready()))
    assert run(book, CancelTask(None, SPACE, A, BY))["state"] == "CANCELLED"
    assert run(book, CancelTask(None, SPACE, A, BY))["state"] == "CANCELLED"
    assert len(book.known(AUDIT)) == 1


def test_a_task_of_another_namespace_is_not_found() -> None:
    with pytest.raises(NotFound):
        run(book_of((TASKS, ready())), CancelTask(None, "2" * 32, A, BY))


def test_a_task_of_a_workflow_is_managed_by_its_workflow() -> None:
    with pytest.raises(FailedPrecondition, match="workflow's own cancel"):
        run(book_of((TASKS, ready(instance_id="4" * 32))), CancelTask(None, SPACE, A, BY))


def test_a_task_that_is_not_in_review_cannot_be_resolved() -> None:
    with pytest.raises(FailedPrecondition, match="not in review"):
        run(stored(ready()), ResolveReview(None, SPACE, A, ready().revision, Verdict.FAILED, BY))


def test_a_success_needs_a_result() -> None:
    task = in_review()
    with pytest.raises(InvalidArgument, match="succeeded"):
        run(stored(task), ResolveReview(None, SPACE, A, task.revision, Verdict.SUCCEEDED, BY))


def test_a_decision_about_an_unknown_effect_needs_basis_evidence_and_reason() -> None:
    task = replace(in_review(), effect_possible=True)
    by = replace(BY, reason=" ")
    with pytest.raises(InvalidArgument) as caught:
        run(stored(task), ResolveReview(None, SPACE, A, task.revision, Verdict.FAILED, by))
    assert [detail.field for detail in caught.value.details] == ["reason", "basis", "evidence"]


# --- retry -------------------------------------------------------------------------------------------------


def test_a_task_that_is_not_there_cannot_be_retried() -> None:
    with pytest.raises(NotFound):
        run(book_of(), retry(ready()))


def test_a_failed_task_is_retried_as_a_new_one_and_stays_as_it_is() -> None:
    task = settled()
    book = stored(task)
    assert run(book, retry(task, total_timeout_ms=1_000))["task_id"] == retry_id_of(A)
    again = book.get(TASKS, retry_id_of(A))
    assert again is not None
    assert again.total_deadline_at == NOW + SECOND
    assert book.get(TASKS, A) == task


def test_the_retry_of_a_task_with_a_fairness_key_stands_in_its_line() -> None:
    task = settled(fairness_key="customer 5")
    book = stored(task)
    run(book, retry(task))
    again = book.get(TASKS, retry_id_of(A))
    assert again is not None
    assert (again.fairness_key, again.virtual_start) == ("customer 5", 0)


def test_a_task_in_review_is_settled_by_its_retry() -> None:
    task = in_review()
    book = stored(task)
    run(book, retry(task))
    before = book.get(TASKS, A)
    assert before is not None
    assert (before.state, before.error_code) == (TaskState.FAILED, "RESOLVED_BY_RETRY")


def test_a_task_is_retried_once() -> None:
    task = settled()
    book = stored(task)
    run(book, retry(task))
    with pytest.raises(FailedPrecondition, match="newest retry"):
        run(book, retry(task))


@pytest.mark.parametrize("state", [TaskState.SUCCEEDED, TaskState.READY])
def test_a_task_that_succeeded_or_goes_on_cannot_be_retried(state: TaskState) -> None:
    task = replace(ready(), state=state)
    with pytest.raises(FailedPrecondition, match=f"{state} cannot be retried"):
        run(stored(task), retry(task))


def test_a_retry_names_the_revision_that_it_looked_at() -> None:
    task = settled()
    with pytest.raises(FailedPrecondition, match="revision"):
        run(stored(task), retry(task, revision=task.revision + 1))


def test_a_task_whose_parameters_are_gone_cannot_be_retried() -> None:
    task = settled()
    with pytest.raises(NotFound, match="no parameters"):
        run(book_of((TASKS, task)), retry(task))
