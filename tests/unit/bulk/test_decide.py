"""The life of a bulk on paper: planning in bites, the rate, and every way to end."""

from __future__ import annotations

from itertools import product

import pytest

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import FailedPrecondition
from orbit_server.bulk.decide import (
    KEPT_US,
    SHARE_FROM,
    SLACK_US,
    Terms,
    began,
    expired,
    is_due,
    planned,
    purging,
    settled,
    stopped,
)
from orbit_server.bulk.lifecycle import ENDED, MOVES, BulkState, ItemState, StoppedBy
from orbit_server.bulk.records import BulkRow

SECOND = 1_000_000
NEW = BulkRow(
    id="b" * 32,
    namespace_id="0" * 32,
    action="workflow.pause",
    state=BulkState.PLANNING,
    place=None,
    most=100,
    items=0,
    refused=0,
    truncated=False,
    applied=0,
    skipped=0,
    failed=0,
    interval_us=0,
    failures_max=None,
    failures_percent=None,
    stopped_by=None,
    revision=1,
    made_by="planner",
    applied_by=None,
    applied_for=None,
    created_at=0,
    planned_at=None,
    started_at=None,
    ended_at=None,
    expires_at=1000 * SECOND,
    due_at=0,
    last=0,
)
TERMS = Terms(SECOND // 10, failures_max=None, failures_percent=None)


def plan(items: int, refused: int = 0) -> BulkRow:
    return planned(NEW, items, refused, "c" * 32, more=False, now=10)


def run(items: int, terms: Terms = TERMS, now: int = 20) -> BulkRow:
    return began(plan(items), terms, "operator", now)


def test_a_plan_is_frozen_when_nothing_is_left_or_it_is_full() -> None:
    bite = planned(NEW, 40, 1, "c" * 32, more=True, now=10)
    assert (bite.state, bite.items, bite.refused, bite.due_at) == (BulkState.PLANNING, 40, 1, 10)
    full = planned(bite, 60, 0, "d" * 32, more=True, now=11)
    assert (full.state, full.truncated, full.due_at) == (BulkState.PLANNED, True, full.expires_at)
    end = planned(bite, 5, 0, "d" * 32, more=False, now=11)
    assert (end.state, end.truncated, end.planned_at) == (BulkState.PLANNED, False, 11)


def test_items_are_done_at_the_rate_and_a_break_is_made_up_for_by_one_second_at_most() -> None:
    row = run(1000, now=0)
    now = 0
    for _ in range(10):
        assert is_due(row, now)
        assert not is_due(row, now - 1)
        row = settled(row, ItemState.APPLIED, now)
        now = row.due_at
    assert now == SECOND
    later = now + 3600 * SECOND
    burst = 0
    while is_due(row, later):
        row = settled(row, ItemState.APPLIED, later)
        burst += 1
    assert burst == SLACK_US // TERMS.interval_us + 1


def test_it_is_done_with_the_last_item_however_that_ends() -> None:
    for states in product((ItemState.APPLIED, ItemState.SKIPPED_CHANGED, ItemState.REFUSED), repeat=2):
        row = run(2)
        for state in states:
            row = settled(row, state, row.due_at)
        assert row.state is BulkState.DONE
        assert row.applied + row.skipped + row.failed == 2
        assert row.due_at == (row.ended_at or 0) + KEPT_US


def test_refused_items_of_the_plan_are_not_waited_for() -> None:
    assert began(plan(3, refused=3), TERMS, "operator", 20).state is BulkState.DONE


def test_it_stops_after_so_many_failures() -> None:
    row = run(10, Terms(1, failures_max=2, failures_percent=None))
    row = settled(row, ItemState.REFUSED, 20)
    row = settled(row, ItemState.APPLIED, 21)
    assert row.state is BulkState.APPLYING
    row = settled(row, ItemState.REFUSED, 22)
    assert (row.state, row.stopped_by) == (BulkState.STOPPED, StoppedBy.FAILURES)


def test_the_share_of_failures_counts_from_ten_tried_items_on_and_not_what_was_skipped() -> None:
    row = run(100, Terms(1, failures_max=None, failures_percent=50))
    for _ in range(50):
        row = settled(row, ItemState.SKIPPED_CHANGED, 20)
    for _ in range(SHARE_FROM - 1):
        row = settled(row, ItemState.REFUSED, 20)
        assert row.state is BulkState.APPLYING
    row = settled(row, ItemState.REFUSED, 20)
    assert (row.state, row.stopped_by) == (BulkState.STOPPED, StoppedBy.FAILURE_SHARE)


def test_only_a_frozen_plan_that_has_not_expired_is_applied_and_only_once() -> None:
    for row, now in ((NEW, 5), (plan(1), NEW.expires_at), (run(2), 30), (stopped(plan(1), 30), 40)):
        with pytest.raises(FailedPrecondition):
            began(row, TERMS, "operator", now)


def test_what_has_not_ended_may_be_stopped_and_nothing_else() -> None:
    for row in (NEW, plan(1), run(2)):
        after = stopped(row, 50)
        assert (after.state, after.stopped_by, after.ended_at) == (BulkState.STOPPED, StoppedBy.PERSON, 50)
        with pytest.raises(FailedPrecondition):
            stopped(after, 51)


def test_a_plan_expires_but_not_what_is_being_applied() -> None:
    late = NEW.expires_at
    for row in (NEW, plan(1)):
        assert expired(row, late - 1) is None
        after = expired(row, late)
        assert after is not None
        assert after.state is BulkState.EXPIRED
    assert expired(run(2), late) is None


def test_what_has_ended_is_purged_after_it_was_kept() -> None:
    row = stopped(plan(1), 50)
    assert purging(row, 50 + KEPT_US - 1) is None
    after = purging(row, 50 + KEPT_US)
    assert after is not None
    assert (after.state, after.due_at) == (BulkState.PURGING, 50 + KEPT_US)
    assert purging(run(2), 10**18) is None


def test_nothing_comes_back_from_an_end() -> None:
    for state in ENDED:
        assert MOVES[state] <= {BulkState.PURGING}
        with pytest.raises(FailedPrecondition):
            began(altered(plan(1), state=state), TERMS, "operator", 20)
