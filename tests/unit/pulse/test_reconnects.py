"""A session that comes or goes: what its worker still holds, and offers that go back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.pulse.tasks.attempts import Held
from orbit_server.pulse.tasks.lifecycle import AttemptState, Recovery, Said, TaskState
from orbit_server.pulse.tasks.reconnect import BindAttempts, Bound, ReturnOffers
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASKS
from orbit_server.storage.book import Book
from tests.unit.pulse.books import book_of, run
from tests.unit.pulse.making import NONCE, NOW, SECOND, SESSION, TIMES, claimed, ready, running

SPACE = "1" * 32
OTHER = "6" * 32


def at_once(**changes: Any) -> tuple[Task, Attempt]:
    """A task that was started in the step of its offer."""
    return claimed(ready(recovery=Recovery.IDEMPOTENT, **changes), one_step=True)


def known(pair: tuple[Task, Attempt], *, now: int = NOW) -> Book:
    task, attempt = pair
    return book_of((TASKS, task), (ATTEMPTS, attempt), now=now)


def held(pair: tuple[Task, Attempt]) -> Held:
    task, attempt = pair
    return Held(task.id, attempt.id, attempt.generation)


def state_of(book: Book) -> TaskState:
    task = book.get(TASKS, "a" * 32)
    assert task is not None
    return task.state


def bound(book: Book, what: Held, session: str = OTHER, nonce: str = NONCE) -> Bound:
    answer: Bound = run(book, BindAttempts(SPACE, session, nonce, (what,)))[what.attempt_id]
    return answer


def returned(book: Book, session: str = SESSION, **named: Any) -> int:
    answer: int = run(book, ReturnOffers(SPACE, session, **named))
    return answer


# --- binding -----------------------------------------------------------------------------------------------


def test_a_running_attempt_goes_on_with_a_new_lease_in_the_new_session() -> None:
    pair = running()
    book = known(pair, now=NOW + SECOND)
    assert bound(book, held(pair)) == Bound("CONTINUE", TIMES.lease_ms)


def test_an_attempt_that_nobody_knows_is_to_stop() -> None:
    assert bound(book_of(), held(running())) == Bound("STOP")


def test_an_attempt_of_another_process_is_to_stop() -> None:
    pair = running()
    assert bound(known(pair), held(pair), nonce="8" * 32) == Bound("STOP")


def test_an_attempt_whose_lease_is_long_over_is_to_stop() -> None:
    pair = running()
    late = NOW + (TIMES.lease_ms + TIMES.lease_skew_ms) * 1_000 + 1
    assert bound(known(pair, now=late), held(pair)) == Bound("STOP")


def test_an_offer_that_was_not_started_is_taken_back() -> None:
    pair = claimed(ready())
    book = known(pair)
    assert bound(book, held(pair)) == Bound("STOP")
    assert state_of(book) is TaskState.READY


@pytest.mark.parametrize(
    ("outcome", "answer"), [(Said.SUCCEEDED, "SETTLED"), (Said.LEASE_LOST, "STOP"), (Said.TIMED_OUT, "STOP")]
)
def test_a_closed_attempt_is_settled_unless_it_was_lost(outcome: Said, answer: str) -> None:
    task, attempt = running()
    pair = (task, replace(attempt, state=AttemptState.CLOSED, outcome=outcome))
    assert bound(known(pair), held(pair)) == Bound(answer)


def test_a_start_that_never_arrived_is_given_back_uncharged() -> None:
    pair = at_once()
    book = known(pair)
    assert run(book, BindAttempts(SPACE, OTHER, NONCE, unlisted=(held(pair),))) == {}
    task = book.get(TASKS, "a" * 32)
    assert task is not None
    assert (task.attempt_id, task.attempts_used) == (None, 0)


# --- returning ---------------------------------------------------------------------------------------------


def test_an_offer_of_a_closing_session_goes_back_to_its_queue() -> None:
    pair = claimed(ready())
    book = known(pair)
    assert returned(book, offers=(held(pair),)) == 1
    assert state_of(book) is TaskState.READY


def test_offers_that_are_gone_or_started_or_of_another_session_stay_as_they_are() -> None:
    offered, begun = claimed(ready()), running()
    assert returned(book_of(), offers=(held(offered),)) == 0
    assert returned(known(begun), offers=(held(begun),)) == 0
    assert returned(known(offered), OTHER, offers=(held(offered),)) == 0


def test_an_undelivered_start_goes_back() -> None:
    pair = at_once()
    book = known(pair)
    assert returned(book, undelivered=(held(pair),)) == 1
    assert state_of(book) is not TaskState.RUNNING


def test_an_undelivered_offer_goes_back() -> None:
    pair = claimed(ready())
    book = known(pair)
    assert returned(book, undelivered=(held(pair),)) == 1
    assert state_of(book) is TaskState.READY


def test_an_undelivered_start_of_another_session_or_of_none_stays() -> None:
    pair = at_once()
    assert returned(known(pair), OTHER, undelivered=(held(pair),)) == 0
    assert returned(book_of(), undelivered=(held(pair),)) == 0


def test_a_start_that_was_asked_for_did_arrive_and_stays() -> None:
    task, attempt = at_once()
    pair = (task, replace(attempt, started_at=NOW + 1))
    assert returned(known(pair), undelivered=(held(pair),)) == 0


def test_what_is_no_longer_the_open_attempt_is_not_given_back() -> None:
    task, attempt = at_once()
    pair = (replace(task, attempt_id="d" * 32), attempt)
    assert returned(known(pair), undelivered=(held(pair),)) == 0


def test_unlisted_attempts_that_nobody_knows_are_passed_over() -> None:
    assert run(book_of(), BindAttempts(SPACE, OTHER, NONCE, unlisted=(held(at_once()),))) == {}
