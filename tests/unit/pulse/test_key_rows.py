"""Concurrency keys inside a transaction: places, room, and looking at a key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbit_server.pulse.keys.commands import Admit
from orbit_server.pulse.tasks.hints import TaskReady
from orbit_server.pulse.tasks.keys.decide import UNCLAIMED_US
from orbit_server.pulse.tasks.keys.operations import KeyRoom, place_row, rows_of, settle
from orbit_server.pulse.tasks.keys.records import KeyRow, PlaceRow, class_id_of, key_id_of
from orbit_server.pulse.tasks.keys.rows import KEYS, PLACES
from orbit_server.pulse.tasks.lifecycle import Block
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage.book import Book
from tests.unit.pulse.books import book_of, run
from tests.unit.pulse.making import NOW, claimed, ready

SPACE = "1" * 32
KEY = key_id_of(SPACE, "jobs", "car:7")
CLASS = class_id_of(SPACE, "jobs", "car")
A, B = "a" * 32, "b" * 32


def keyed(**changes: Any) -> Task:
    return ready(concurrency_key="car:7", **changes)


def waiter(task_id: str = B) -> Task:
    return replace(keyed(id=task_id), blocked=int(Block.KEY))


def key(held: int, waiting: int, admit_at: int | None = None) -> KeyRow:
    return KeyRow(KEY, SPACE, keyed().queue_id, CLASS, "car:7", held, waiting, admit_at, NOW)


def look(book: Book, *waiters: str, unclaimed: tuple[str, ...] = ()) -> int:
    admitted: int = run(book, Admit(KEY, CLASS, waiters, unclaimed))
    return admitted


def test_a_task_without_a_key_needs_no_rows_and_has_no_place() -> None:
    assert rows_of(ready()) == {}
    assert place_row(ready(), KEY, NOW) == PlaceRow(A, None)


def test_a_task_has_a_place_only_until_it_is_claimed() -> None:
    assert place_row(keyed(), KEY, NOW).admitted_at == NOW
    assert place_row(waiter(), KEY, NOW).admitted_at is None
    assert place_row(claimed(keyed())[0], KEY, NOW) == PlaceRow(A, None)


def test_a_task_that_comes_back_to_an_empty_line_leaves_its_key_as_it_is() -> None:
    before, _ = claimed(keyed())
    book = book_of((KEYS, key(1, 0)))
    book.put("key_classes", [CLASS], {})
    after = settle(book, before, keyed())
    assert after.blocked == 0
    assert book.get(KEYS, KEY) == key(1, 0)
    assert book.get(PLACES, A) == PlaceRow(A, KEY, NOW, after.priority, after.virtual_start)


def test_a_key_that_is_gone_admits_nobody() -> None:
    assert look(book_of((TASKS, waiter())), B) == 0


def test_room_admits_the_best_of_those_who_wait() -> None:
    book = book_of((TASKS, waiter()), (KEYS, key(0, 1, NOW)))
    assert look(book, B) == 1
    assert book.get(KEYS, KEY) == key(1, 0)
    assert [type(hint) for hint in book.hints] == [TaskReady]


def test_a_key_with_room_is_looked_at_again_when_those_who_were_read_are_gone() -> None:
    book = book_of((KEYS, key(0, 1, NOW)))
    assert look(book, B) == 0
    assert book.hints == [KeyRoom(KEY)]


def test_an_admission_that_nobody_claimed_goes_to_the_end_of_the_line() -> None:
    place = PlaceRow(A, KEY, NOW - UNCLAIMED_US)
    book = book_of((TASKS, keyed()), (PLACES, place), (TASKS, waiter()), (KEYS, key(1, 1)), now=NOW + 1)
    assert look(book, B, unclaimed=(A,)) == 1
    back = book.get(TASKS, A)
    assert back is not None
    assert back.blocked == Block.KEY


def test_an_admission_without_a_place_or_claimed_since_or_recent_is_not_taken_back() -> None:
    line = ((TASKS, waiter()), (KEYS, key(1, 1, NOW + 1)))
    old, recent = PlaceRow(A, KEY, NOW - UNCLAIMED_US), PlaceRow(A, KEY, NOW)
    assert look(book_of((TASKS, keyed()), *line), B, unclaimed=(A,)) == 0
    assert look(book_of((TASKS, claimed(keyed())[0]), (PLACES, old), *line), B, unclaimed=(A,)) == 0
    assert look(book_of((TASKS, keyed()), (PLACES, recent), *line), B, unclaimed=(A,)) == 0
