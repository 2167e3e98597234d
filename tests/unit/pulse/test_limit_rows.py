"""Permits and backlogs inside a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.errors import ResourceExhausted
from orbit_server.pulse.tasks.limits.operations import (
    LaneHeld,
    LimitFreed,
    backlog_ids,
    count_in,
    count_out,
    give_back,
    may_take,
    permits_of,
    take,
    waits,
)
from orbit_server.pulse.tasks.limits.records import Counted, LimitRow, limit_id_of
from orbit_server.pulse.tasks.limits.rows import LIMITS
from orbit_server.storage.book import Book
from tests.unit.pulse.books import book_of
from tests.unit.pulse.making import NOW

SPACE = "1" * 32
QUEUE = limit_id_of(SPACE, "jobs")
WHOLE = limit_id_of(SPACE)
ROW = LimitRow(QUEUE, SPACE, "jobs", None, 0, None, 0, None, 1_000, 0, 0, NOW, NOW, 1, NOW)


def holding(*rows: LimitRow) -> Book:
    book = book_of(*((LIMITS, row) for row in rows))
    book.put("limits", book.missing("limits", [QUEUE, WHOLE]), {})
    return book


def row_of(book: Book, row_id: str = QUEUE) -> LimitRow:
    row = book.get(LIMITS, row_id)
    assert row is not None
    return row


def limited(**changes: Any) -> LimitRow:
    return replace(ROW, **changes)


def whole(**changes: Any) -> LimitRow:
    return replace(ROW, id=WHOLE, queue=None, **changes)


def test_a_full_limit_gives_nothing_and_leaves_word() -> None:
    book = holding(limited(running_max=1, running=1))
    assert not may_take(book, [WHOLE, QUEUE])
    assert book.hints == [LaneHeld(SPACE, "jobs", None)]


def test_where_no_limit_was_set_every_permit_is_given_and_none_is_held() -> None:
    book = holding()
    assert may_take(book, [QUEUE, WHOLE])
    assert take(book, [QUEUE, WHOLE]) is None


def test_a_row_that_limits_only_the_backlog_is_left_as_it_is_by_a_claim() -> None:
    book = holding(limited(backlog_max=5))
    assert take(book, [QUEUE]) is None
    assert row_of(book) == limited(backlog_max=5)


def test_a_token_is_spent_and_not_held() -> None:
    book = holding(limited(rate=1, burst=1, level=1_000_000))
    assert take(book, [QUEUE]) is None
    assert row_of(book).level == 0
    assert [row.id for row, _ in waits([row_of(book)], NOW)] == [QUEUE]


def test_a_permit_of_a_full_row_that_comes_back_wakes_who_waits() -> None:
    book = holding(limited(running_max=1), whole(running_max=5))
    held = take(book, [QUEUE, WHOLE])
    assert held is not None
    assert permits_of(held) == (QUEUE, WHOLE)
    give_back(book, held)
    assert (row_of(book).running, row_of(book, WHOLE).running) == (0, 0)
    assert book.hints == [LimitFreed(SPACE, "jobs")]


def test_a_permit_of_a_row_that_is_gone_comes_back_to_nobody() -> None:
    book = holding()
    give_back(book, f'["{QUEUE}"]')
    assert book.hints == []
    assert book.written() == []


def test_a_task_counts_in_each_backlog_that_is_limited_and_leaves_it_again() -> None:
    book = holding(limited(backlog_max=2), whole(backlog_max=2))
    counted = count_in(book, [QUEUE, WHOLE])
    assert counted == Counted.QUEUE | Counted.NAMESPACE
    assert (row_of(book).backlog, row_of(book, WHOLE).backlog) == (1, 1)
    count_out(book, backlog_ids(SPACE, "jobs", counted))
    assert (row_of(book).backlog, row_of(book, WHOLE).backlog) == (0, 0)


def test_a_task_counts_nowhere_where_no_backlog_is_limited() -> None:
    assert count_in(holding(limited(running_max=1)), [QUEUE, WHOLE]) == Counted.NOWHERE


@pytest.mark.parametrize(
    ("counted", "ids"),
    [
        (Counted.NOWHERE, []),
        (Counted.QUEUE, [QUEUE]),
        (Counted.NAMESPACE, [WHOLE]),
        (Counted.QUEUE | Counted.NAMESPACE, [QUEUE, WHOLE]),
    ],
)
def test_the_backlogs_of_a_task_are_found_from_where_it_counts(counted: Counted, ids: list[str]) -> None:
    assert backlog_ids(SPACE, "jobs", counted) == ids


def test_leaving_a_backlog_whose_row_is_gone_changes_nothing() -> None:
    book = holding()
    count_out(book, [QUEUE, WHOLE])
    assert book.written() == []


@pytest.mark.parametrize(
    ("row", "whose"),
    [(limited(backlog_max=1, backlog=1), "queue jobs"), (whole(backlog_max=1, backlog=1), "the namespace")],
)
def test_a_full_backlog_refuses_and_says_whose_it_is(row: LimitRow, whose: str) -> None:
    with pytest.raises(ResourceExhausted, match=whose):
        count_in(holding(row), [QUEUE, WHOLE])
