"""Lanes where a claim would get nothing, and how far claims have come where fairness counts."""

from __future__ import annotations

from orbit_server.pulse.dispatch.held import HeldLanes, VirtualTimes

LANE = ("1" * 32, "jobs")


def test_a_held_place_holds_its_lane_until_its_time_is_over() -> None:
    held = HeldLanes()
    assert not held.holds(LANE, 5)
    held.hold((LANE[0], None), 10)
    assert held.holds(LANE, 9)
    assert not held.holds(LANE, 10)


def test_the_next_free_place_is_the_first_and_those_that_are_free_are_forgotten() -> None:
    held = HeldLanes()
    assert held.next_us(0) is None
    held.hold(LANE, 10)
    held.hold((LANE[0], None), 30)
    assert held.next_us(4) == 6
    assert held.next_us(10) == 20
    assert held.places() == ((LANE[0], None),)
    assert held.next_us(30) == 0
    assert held.places() == ()


def test_a_freed_place_is_not_held_even_when_it_never_was() -> None:
    held = HeldLanes()
    held.hold(LANE, 10)
    held.free(LANE)
    held.free(LANE)
    assert not held.holds(LANE, 0)


def test_a_lane_counts_from_its_first_fair_task_on() -> None:
    times = VirtualTimes()
    times.claimed(LANE, 7, fair=False)
    assert times.taken() == ()
    times.claimed(LANE, 7, fair=True)
    times.claimed(LANE, 5, fair=False)
    assert times.taken() == ((LANE, 7),)
    assert times.taken() == ()
