"""Reserving the slots of workers."""

from __future__ import annotations

from collections.abc import Sequence

from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.sessions import Offer, SessionFacts
from orbit_server.pulse.dispatch.slots import Slots
from orbit_server.pulse.tasks.lifecycle import Recovery

SPACE = "1" * 32
A, B = (SPACE, "a"), (SPACE, "b")
KEY = ("work", 1)


class Session:
    def __init__(self, name: str, *queues: str) -> None:
        self.facts = SessionFacts(
            name * 32, SPACE, "n", "w", "b", frozenset(queues or ("a",)), {KEY: Recovery.READ_ONLY}
        )

    def push(self, offers: Sequence[Offer]) -> None: ...

    def tell_cancel(self, attempt_ids: Sequence[Id]) -> None: ...


class Time:
    def __init__(self) -> None:
        self.us = 0

    def __call__(self) -> int:
        return self.us


def opened(*sessions: Session, time: Time | None = None) -> Slots:
    slots = Slots(time or Time(), fresh_ms=1_000)
    for session in sessions:
        slots.add(session)
    return slots


def test_a_session_gets_nothing_before_it_announces() -> None:
    session = Session("5")
    slots = opened(session)
    assert slots.reserve(A, KEY) is None
    assert slots.announce(session.facts.id, 1, {}, 2) == [A]
    assert slots.room(A) == 2
    assert slots.reserve(A, KEY) is not None
    assert slots.reserve(A, ("other", 1)) is None
    assert slots.reserve(A, KEY, verify=True) is None


def test_a_slot_is_used_once_and_what_was_not_used_comes_back() -> None:
    session = Session("5")
    slots = opened(session)
    slots.announce(session.facts.id, 1, {}, 1)
    slot = slots.reserve(A, KEY)
    assert slot is not None
    assert slots.reserve(A, KEY) is None
    slots.give_back(slot)
    assert slots.room(A) == 1


def test_a_new_ready_does_not_count_what_is_on_its_way() -> None:
    session = Session("5")
    slots = opened(session)
    slots.announce(session.facts.id, 1, {"a": 2}, 3)
    taken = slots.reserve_any(A, 9)
    assert len(taken) == 2
    slots.announce(session.facts.id, 2, {"a": 2}, 3)
    assert slots.room(A) == 0
    slots.give_back(taken[0])
    assert slots.room(A) == 1
    taken[1].settle(used=True)
    assert slots.room(A) == 1


def test_an_older_ready_or_a_strangers_is_ignored() -> None:
    session = Session("5")
    slots = opened(session)
    slots.announce(session.facts.id, 2, {}, 1)
    assert slots.announce(session.facts.id, 1, {}, 9) == []
    assert slots.announce("9" * 32, 1, {}, 9) == []
    assert slots.room(A) == 1


def test_without_a_total_only_named_queues_have_slots() -> None:
    session = Session("5", "a", "b")
    slots = opened(session)
    assert slots.announce(session.facts.id, 1, {"a": 2}, None) == [A]
    assert (slots.room(A), slots.room(B)) == (2, 0)


def test_queues_share_the_total() -> None:
    session = Session("5", "a", "b")
    slots = opened(session)
    slots.announce(session.facts.id, 1, {"a": 1}, 2)
    assert (slots.room(A), slots.room(B)) == (1, 2)
    assert slots.reserve(B, KEY) is not None
    assert slots.reserve(B, KEY) is not None
    assert (slots.room(A), slots.room(B)) == (0, 0)


def test_a_ready_grows_old() -> None:
    session, time = Session("5"), Time()
    slots = opened(session, time=time)
    slots.announce(session.facts.id, 1, {}, 1)
    time.us = 1_000_000
    assert slots.room(A) == 1
    time.us += 1
    assert slots.room(A) == 0
    assert slots.handlers(A) == (set(), set())


def test_sessions_take_turns() -> None:
    one, two = Session("5"), Session("6")
    slots = opened(one, two)
    for session in (one, two):
        slots.announce(session.facts.id, 1, {}, 2)
    order = [slot.seat.facts.id for slot in slots.reserve_any(A, 9)]
    assert order == [one.facts.id, two.facts.id, one.facts.id, two.facts.id]


def test_a_lane_is_served_while_a_session_of_it_is_there() -> None:
    one, two = Session("5"), Session("6", "a", "b")
    slots = Slots(Time(), fresh_ms=1_000)
    assert slots.add(one) == [A]
    assert set(slots.add(two)) == {B}
    slots.announce(two.facts.id, 1, {}, 1)
    slot = slots.reserve(A, KEY)
    assert slot is not None
    assert slots.remove(two.facts.id) is not None
    assert slots.remove(two.facts.id) is None
    assert slots.served() == (A,)
    slots.give_back(slot)
    assert slots.room(A) == 0
    assert slots.seat(two.facts.id) is None
