from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbit_server.storage.book import Book, BookError, MissingRow
from orbit_server.storage.events import EVENTS
from tests.storage.ledger import COUNTERS, NOTES, cid, counter, event, note

KINDS: dict[str, Any] = {kind.name: kind for kind in (COUNTERS, NOTES, EVENTS)}


def book(*names: str, absent: tuple[str, ...] = ()) -> Book:
    """A book that holds these counters and their (no) notes, and knows the absent ones to be absent."""
    own = Book(KINDS, 100)
    ids = [cid(name) for name in (*names, *absent)]
    own.put("counters", ids, {cid(name): counter(name) for name in names})
    own.put("notes", ids, {})
    return own


def test_a_row_that_was_not_loaded_is_missing_and_an_absent_one_is_none() -> None:
    own = book("a", absent=("b",))
    assert own.get(COUNTERS, cid("a")) == counter("a")
    assert own.get("counters", cid("b")) is None
    with pytest.raises(MissingRow) as missing:
        own.get(COUNTERS, cid("c"))
    assert missing.value.needs == {"counters": (cid("c"),)}


def test_members_are_missing_until_their_owner_was_asked_for() -> None:
    own = Book(KINDS)
    with pytest.raises(MissingRow):
        own.members(NOTES, cid("a"))
    with pytest.raises(BookError):
        own.get(NOTES, note("a", "1").id)
    own.put("notes", [cid("a")], {cid("a"): (note("a", "1"),)})
    assert own.members("notes", cid("a")) == (note("a", "1"),)
    assert own.member(NOTES, cid("a"), note("a", "1").id) == note("a", "1")
    assert own.member("notes", cid("a"), "x") is None
    assert own.get(NOTES, note("a", "1").id) == note("a", "1")


def test_a_member_is_added_only_to_an_owner_that_the_book_holds() -> None:
    own = Book(KINDS)
    with pytest.raises(MissingRow):
        own.insert(NOTES, note("a", "1"))
    own.insert(COUNTERS, counter("a"))
    own.insert(NOTES, note("a", "1"))
    assert own.members(NOTES, cid("a")) == (note("a", "1"),)
    own.put("counters", [cid("b")], {cid("b"): counter("b")})
    own.insert(NOTES, note("b", "1"))
    with pytest.raises(MissingRow):
        own.members(NOTES, cid("b"))


def test_an_owner_made_here_has_only_the_members_made_here() -> None:
    own = book()
    own.insert(COUNTERS, counter("new"))
    assert own.members(NOTES, cid("new")) == ()


def test_kinds_without_owners_have_no_members() -> None:
    with pytest.raises(BookError):
        book("a").members(COUNTERS, cid("a"))


def test_a_row_is_inserted_once_and_changed_only_from_its_present_state() -> None:
    own = book("a")
    with pytest.raises(BookError):
        own.insert(COUNTERS, counter("a"))
    row = own.get(COUNTERS, cid("a"))
    assert row is not None
    own.change(COUNTERS, row, replace(row, wake_seq=1))
    with pytest.raises(BookError):
        own.change(COUNTERS, row, replace(row, wake_seq=2))


def test_undo_leaves_nothing_behind() -> None:
    own = book("a", absent=("b",))
    own.put("notes", [cid("a")], {cid("a"): (note("a", "0"),)})
    row = own.get(COUNTERS, cid("a"))
    assert row is not None
    first = own.change(COUNTERS, row, replace(row, wake_seq=1))
    own.after_commit("kept")
    kept = [(kind.name, list(new), list(changed)) for kind, new, changed in own.written()]
    mark = own.mark()
    own.now = 500
    own.change(COUNTERS, first, replace(first, wake_seq=2))
    for name in ("b", "c"):
        fresh = own.insert(COUNTERS, counter(name))
        own.change(COUNTERS, fresh, replace(fresh, wake_seq=9))
    own.insert(NOTES, note("a", "1"))
    own.change(NOTES, note_of(own), replace(note_of(own), body="changed"))
    own.emit(event("a", 1))
    own.after_commit("forgotten")
    own.undo(mark)
    assert [(kind.name, list(new), list(changed)) for kind, new, changed in own.written()] == kept
    assert own.hints == ["kept"]
    assert own.get(COUNTERS, cid("b")) is None
    assert own.members(NOTES, cid("a")) == (note("a", "0"),)
    with pytest.raises(MissingRow):
        own.get(COUNTERS, cid("c"))
    assert own.latest({"counters": (cid("a"), cid("b"), cid("c")), "notes": (cid("a"),)}) == 100


def note_of(own: Book) -> Any:
    return own.members(NOTES, cid("a"))[0]


def test_what_changed_back_is_not_written() -> None:
    own = book("a")
    row = own.get(COUNTERS, cid("a"))
    assert row is not None
    there = own.change(COUNTERS, row, replace(row, wake_seq=1))
    own.change(COUNTERS, there, row)
    assert own.written() == []


def test_last_is_written_back_on_new_and_changed_rows_and_never_goes_back() -> None:
    own = book("a")
    row = own.get(COUNTERS, cid("a"))
    assert row is not None
    own.change(COUNTERS, row, replace(row, wake_seq=1))
    own.insert(COUNTERS, replace(counter("new"), last=900))
    ((_, inserted, changed),) = own.written()
    assert [after.last for _, after in changed] == [100]
    assert [fresh.last for fresh in inserted] == [900]
