"""The worker protocol as a pure object, rule by rule, with instants in hand."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import (
    Action,
    Begin,
    CancelAsked,
    Close,
    Deliver,
    Freed,
    Leaving,
    MarkDecided,
    Opened,
    ResultSettled,
    Stop,
    Told,
    Write,
)
from orbit_sdk.protocol.frames import Fault, decode, encode, pack
from orbit_sdk.protocol.held import HeldAttempts, Phase
from orbit_sdk.protocol.link import Link, Role, State

LEASE = 30_000
A, B, C = "a" * 32, "b" * 32, "c" * 32
HELLO = wire.Hello(nonce="0" * 32, worker="w", handlers=[], queues=["jobs"], slots=4)
WELCOME = wire.Welcome(
    session_id="1" * 32, namespace="n", lease_ms=LEASE, heartbeat_ms=10_000, silence_ms=25_000
)


def item(attempt_id: str = A, **more: Any) -> wire.OfferItem:
    fields: dict[str, Any] = {
        "attempt_id": attempt_id, "task_id": "d" * 32, "generation": 7, "attempt_no": 1, "queue": "jobs",
        "handler": "job.run", "handler_version": 1, "recovery": "IDEMPOTENT", "lease_ms": LEASE,
        "limit_ms": 60_000, "effect_key": "e",
    }  # fmt: skip
    return wire.OfferItem(**{**fields, **more})


def result(attempt_id: str = A, **more: Any) -> wire.ResultItem:
    return wire.ResultItem(
        attempt_id=attempt_id,
        task_id="d" * 32,
        generation=7,
        outcome=more.pop("outcome", "SUCCEEDED"),
        **more,
    )


def client(held: HeldAttempts | None = None, at: int = 0) -> Link:
    link = Link(Role.CLIENT, held)
    link.send(HELLO, at)
    link.receive(WELCOME, at)
    return link


def server() -> Link:
    link = Link(Role.SERVER)
    link.receive(HELLO, 0)
    link.send(WELCOME, 0)
    return link


def offer(link: Link, *items: wire.OfferItem, at: int = 0) -> tuple[Action, ...]:
    return link.receive(wire.Offer(items=list(items)), at)


def closed_with(actions: tuple[Action, ...]) -> str:
    (action,) = actions
    assert isinstance(action, Close)
    return action.fault.message


# --- greeting and order ---


def test_a_session_opens_with_hello_and_welcome() -> None:
    worker, gateway = Link(Role.CLIENT), Link(Role.SERVER)
    (write,) = worker.send(HELLO, 0)
    assert isinstance(write, Write)
    assert gateway.receive(HELLO, 0) == (Deliver(HELLO),)
    assert gateway.send(WELCOME, 0) == (Write(WELCOME),)
    assert worker.receive(WELCOME, 0) == (Opened(WELCOME),)
    assert (worker.state, gateway.state) == (State.OPEN, State.OPEN)


@pytest.mark.parametrize(
    "message",
    [wire.Ready(number=1, slots=1, seen=0), wire.Beat(number=1), wire.Drain(), wire.Result(items=[result()])],
)
def test_nothing_comes_before_hello(message: Any) -> None:
    link = Link(Role.SERVER)
    assert "no place" in closed_with(link.receive(message, 0))
    assert link.state is State.CLOSED


def test_hello_is_said_once() -> None:
    link = Link(Role.SERVER)
    link.receive(HELLO, 0)
    assert "already" in closed_with(link.receive(HELLO, 0))


def test_hello_after_welcome_closes_the_connection() -> None:
    assert "no place" in closed_with(server().receive(HELLO, 0))


def test_another_protocol_version_is_refused_with_the_one_spoken_here() -> None:
    reason = closed_with(Link(Role.SERVER).receive(HELLO.model_copy(update={"protocol": 2}), 0))
    assert "protocol 2 is unknown" in reason


def test_a_welcome_that_nobody_asked_for_closes_the_connection() -> None:
    assert "before hello" in closed_with(Link(Role.CLIENT).receive(WELCOME, 0))


def test_own_messages_out_of_order_are_not_sent() -> None:
    assert Link(Role.CLIENT).send(wire.Beat(number=1), 0) == ()
    assert Link(Role.SERVER).send(WELCOME, 0) == ()
    assert client().send(HELLO, 0) == ()


def test_a_closed_link_says_and_hears_nothing() -> None:
    link = client()
    link.close()
    assert link.send(wire.Beat(number=1), 0) == ()
    assert offer(link, item()) == ()
    assert link.receive_frame("rubbish", 0) == ()


def test_an_unknown_type_is_refused_with_a_reason_and_the_session_goes_on() -> None:
    link = server()
    (write,) = link.receive_frame('{"type": "dance"}', 0)
    assert isinstance(write, Write)
    assert isinstance(write.message, wire.Error)
    assert (write.message.about, write.message.fatal) == ("dance", False)
    assert link.state is State.OPEN


def test_a_peer_that_keeps_sending_unknown_types_is_disconnected() -> None:
    link = server()
    actions = [link.receive_frame('{"type": "dance"}', 0) for _ in range(20)]
    assert any(isinstance(one, Close) for each in actions for one in each)
    assert link.state is State.CLOSED


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\x00", "binary"),
        ("{", "not JSON"),
        ("[]", "object"),
        ('{"type": 1}', "text field `type`"),
        ('{"type": "beat", "number": 1, "number": 2}', "twice"),
        ('{"type": "beat", "number": 1.5}', "number"),
        ('{"type": "beat", "number": "1"}', "number"),
        ('{"type": "beat", "number": 1, "more": 1}', "more"),
        ('{"type": "beat", "number": NaN}', "NaN"),
        ('{"type": "result", "items": []}', "items"),
        ("[" * 100_000, "nested"),
        ('{"type": "beat", "number": 1, "x": "' + "y" * wire.FRAME_BYTES_MAX + '"}', "limit"),
    ],
)
def test_a_frame_that_breaks_a_rule_closes_the_connection_with_the_reason(frame: Any, reason: str) -> None:
    assert reason in closed_with(server().receive_frame(frame, 0))


def test_a_message_of_the_wrong_direction_is_refused() -> None:
    (write,) = server().receive_frame(encode(WELCOME), 0)
    assert isinstance(write, Write)
    assert "does not send 'welcome'" in write.message.message  # type: ignore[attr-defined]


def test_a_beat_is_answered_with_its_number() -> None:
    beat = wire.Beat(number=9)
    assert server().receive(beat, 0) == (Write(beat), Deliver(beat))
    assert client().receive(wire.Beat(number=9), 0) == ()


def test_a_draining_worker_gets_no_room_but_its_results_are_taken() -> None:
    link = server()
    link.receive(wire.Ready(number=1, slots=3, seen=0), 0)
    assert link.receive(wire.Drain(reason="bye"), 0) == (Leaving("bye"),)
    assert link.credit.room() == 0
    link.receive(wire.Ready(number=2, slots=3, seen=0), 0)
    assert link.credit.room() == 0
    message = wire.Result(items=[result()])
    assert link.receive(message, 0) == (Deliver(message),)


def test_an_error_of_the_other_end_is_told() -> None:
    error = wire.Error(code="INTERNAL", message="sorry")
    assert client().receive(error, 0) == (Told(error),)


# --- credit ---


def ready(number: int, slots: int, seen: int = 0, **queues: int) -> wire.Ready:
    return wire.Ready(number=number, slots=slots, seen=seen, queues=queues)


def test_items_on_their_way_are_not_counted_twice() -> None:
    link = server()
    link.receive(ready(1, 4), 0)
    link.send(wire.Offer(items=[item(A), item(B)]), 0)
    assert link.credit.room() == 2
    link.receive(ready(2, 4, seen=0), 0)  # written before the offer arrived
    assert link.credit.room() == 2
    link.receive(ready(3, 2, seen=2), 0)
    assert link.credit.room() == 2


def test_reserved_slots_are_used_by_the_push_or_given_back() -> None:
    link = server()
    link.receive(ready(1, 3), 0)
    assert link.credit.reserve("jobs", 5) == 3
    assert link.credit.room() == 0
    link.send(wire.Offer(items=[item(A)]), 0)
    link.credit.release("jobs", 2)
    assert link.credit.room() == 2


def test_a_cap_of_one_queue_binds_only_that_queue() -> None:
    link = server()
    link.receive(ready(1, 4, jobs=1), 0)
    assert (link.credit.room("jobs"), link.credit.room("other")) == (1, 4)
    link.send(wire.Offer(items=[item(A)]), 0)
    assert (link.credit.room("jobs"), link.credit.room("other")) == (0, 3)


@pytest.mark.parametrize("second", [ready(1, 4), ready(2, 4, seen=1)])
def test_an_impossible_ready_closes_the_connection(second: wire.Ready) -> None:
    link = server()
    link.receive(ready(1, 4), 0)
    closed_with(link.receive(second, 0))


def test_a_ready_older_than_half_a_lease_counts_as_absent_for_started_offers() -> None:
    link = server()
    link.receive(ready(5, 4), 1_000)
    assert link.credit.answers(1_000 + LEASE // 2, LEASE) == 5
    assert link.credit.answers(1_001 + LEASE // 2, LEASE) is None


# --- leases ---


def test_a_started_offer_counts_its_lease_from_its_ready() -> None:
    link = client()
    number = link.ready(4, 1_000).number
    offered = item(started=True, ready=number)
    assert offer(link, offered, at=5_000) == (Begin(offered),)
    held = link.held.get(A)
    assert held is not None
    assert held.lease_end_ms == 1_000 + LEASE - 1_000


def test_a_started_offer_older_than_its_lease_is_discarded_and_said_so() -> None:
    link = client()
    number = link.ready(4, 0).number
    assert offer(link, item(started=True, ready=number), at=LEASE) == ()
    (told,) = link.held.fresh_results(LEASE)
    assert (told.outcome, told.effect) == ("DISCARDED", "NONE")


@pytest.mark.parametrize("number", [None, 4_711])
def test_a_started_offer_that_answers_no_ready_of_ours_is_discarded(number: int | None) -> None:
    link = client()
    assert offer(link, item(started=True, ready=number)) == ()
    assert [told.outcome for told in link.held.fresh_results(0)] == ["DISCARDED"]


def test_a_two_step_offer_is_asked_for_and_counts_its_lease_from_the_asking() -> None:
    link = client()
    (write,) = offer(link, item(), at=2_000)
    assert isinstance(write, Write)
    start = write.message
    assert isinstance(start, wire.Start)
    granted = wire.Started(number=start.number, items=[wire.Granted(attempt_id=A, lease_ms=10_000)])
    assert link.receive(granted, 3_000) == (Begin(item()),)
    held = link.held.get(A)
    assert held is not None
    assert held.lease_end_ms == 2_000 + 10_000 - 1_000


def test_a_grant_that_comes_after_its_lease_is_not_begun() -> None:
    link = client()
    (write,) = offer(link, item(), at=0)
    granted = wire.Started(number=write.message.number, items=[wire.Granted(attempt_id=A, lease_ms=1_000)])  # type: ignore[union-attr]
    (freed,) = link.receive(granted, 5_000)
    assert isinstance(freed, Freed)
    assert [told.outcome for told in link.held.fresh_results(0)] == ["DISCARDED"]


def test_a_withdrawn_offer_is_freed_and_a_running_one_is_not() -> None:
    link = client()
    number = link.ready(4, 0).number
    offer(link, item(A), item(B, started=True, ready=number))
    gone = wire.Withdrawn(items=[wire.Gone(attempt_id=A, reason="no"), wire.Gone(attempt_id=B, reason="no")])
    assert link.receive(gone, 0) == (Freed(A, "no"),)
    assert B in link.held


def test_a_start_that_nobody_answers_is_given_up_after_a_lease() -> None:
    link = client()
    offer(link, item(), at=0)
    assert link.expire(LEASE - 1) == ()
    (freed,) = link.expire(LEASE)
    assert isinstance(freed, Freed)


def running(link: Link, *attempts: str, at: int = 0) -> None:
    number = link.ready(4, at).number
    offer(link, *(item(one, started=True, ready=number) for one in attempts), at=at)


def test_a_renewal_counts_from_when_it_left() -> None:
    link = client()
    running(link, A)
    (renew,) = link.renewals(10_000)
    link.receive(
        wire.Renewed(number=renew.number, items=[wire.Granted(attempt_id=A, lease_ms=LEASE)]), 20_000
    )
    assert link.expire(10_000 + LEASE - 1_001) == ()
    assert link.expire(10_000 + LEASE - 1_000) == (Stop(A, "its lease ended"),)


def test_an_answer_out_of_order_never_shortens_a_lease() -> None:
    link = client()
    running(link, A)
    (early,) = link.renewals(1_000)
    (late,) = link.renewals(9_000)
    for renew in (late, early):
        link.receive(
            wire.Renewed(number=renew.number, items=[wire.Granted(attempt_id=A, lease_ms=LEASE)]), 9_500
        )
    held = link.held.get(A)
    assert held is not None
    assert held.lease_end_ms == 9_000 + LEASE - 1_000


def test_a_renewal_of_an_unknown_number_changes_nothing() -> None:
    link = client()
    running(link, A)
    before = link.held.get(A).lease_end_ms  # type: ignore[union-attr]
    link.receive(wire.Renewed(number=99, items=[wire.Granted(attempt_id=A, lease_ms=LEASE)]), 9_000)
    assert link.held.get(A).lease_end_ms == before  # type: ignore[union-attr]


def test_a_lost_lease_stops_its_handler_once_and_is_never_renewed() -> None:
    link = client()
    running(link, A)
    lost = wire.Lost(items=[wire.Gone(attempt_id=A, reason="expired"), wire.Gone(attempt_id=B, reason="?")])
    assert link.receive(lost, 0) == (Stop(A, "expired"),)
    assert link.receive(lost, 0) == ()
    assert link.renewals(0) == []
    assert link.expire(LEASE * 3) == ()


def test_cancel_and_marks_reach_only_attempts_that_are_held() -> None:
    link = client()
    running(link, A)
    gone = [wire.Gone(attempt_id=A, reason="asked"), wire.Gone(attempt_id=B, reason="asked")]
    assert link.receive(wire.Cancel(items=gone), 0) == (CancelAsked(A, "asked"),)
    marked = wire.Marked(items=[wire.MarkAnswer(attempt_id=A, answer="GRANTED")])
    assert link.receive(marked, 0) == (MarkDecided(A, "GRANTED"),)


# --- repeats ---


def test_a_second_offer_of_a_held_attempt_is_dropped() -> None:
    link = client()
    running(link, A)
    number = link.ready(4, 0).number
    assert offer(link, item(A, started=True, ready=number), item(A)) == ()
    assert link.seen == 3


def test_a_finished_attempt_is_remembered_for_two_leases() -> None:
    link = client()
    running(link, A)
    link.held.finish(result())
    link.held.fresh_results(0)
    link.receive(wire.Settled(items=[wire.SettledItem(attempt_id=A, answer="ACCEPTED")]), 0)
    assert offer(link, item(A), at=2 * LEASE - 1) == ()
    assert len(offer(link, item(A), at=2 * LEASE)) == 1


def test_what_is_remembered_is_forgotten_in_time() -> None:
    held = HeldAttempts(lease_ms=10)
    for number in range(1_000):
        key = f"{number:032x}"
        held.take(item(key), Phase.RUNNING, 0)
        held.forget(key, number)
    assert len(held._remembered) < 50


# --- results ---


def test_a_result_is_sent_until_it_is_settled() -> None:
    link = client()
    running(link, A)
    assert link.held.finish(result())
    assert not link.held.finish(result())
    assert link.held.fresh_results(0) == [result()]
    assert link.held.fresh_results(1) == []
    assert link.held.stale_results(5_000, 10_000) == []
    assert link.held.stale_results(10_000, 10_000) == [result()]
    settled = wire.Settled(items=[wire.SettledItem(attempt_id=A, answer="EVIDENCE", reason="late")])
    assert link.receive(settled, 0) == (ResultSettled(A, "EVIDENCE", "late"),)
    assert link.receive(settled, 0) == ()
    assert link.held.unsettled == 0


def test_a_reconnect_lists_what_is_held_and_sends_results_again() -> None:
    held = HeldAttempts()
    link = client(held)
    running(link, A, B)
    offer(link, item(C))
    held.finish(result(B))
    held.fresh_results(0)
    held.disconnected()
    in_flight = [(one.attempt_id, one.state) for one in held.in_flight()]
    assert in_flight == [(A, "RUNNING"), (B, "FINISHED"), (C, "ASKED")]
    assert held.fresh_results(0) == [result(B)]


def test_reconciliation_continues_stops_or_settles() -> None:
    held = HeldAttempts()
    link = client(held)
    running(link, A, B, C)
    held.finish(result(C))
    held.disconnected()
    link = Link(Role.CLIENT, held)
    link.send(HELLO, 20_000)
    answers = [
        wire.Reconciled(attempt_id=A, answer="CONTINUE", lease_ms=LEASE),
        wire.Reconciled(attempt_id=B, answer="STOP"),
        wire.Reconciled(attempt_id=C, answer="SETTLED"),
    ]
    actions = link.receive(WELCOME.model_copy(update={"in_flight": answers}), 21_000)
    assert [type(one) for one in actions] == [Opened, Stop, ResultSettled]
    assert held.get(A).lease_end_ms == 20_000 + LEASE - 1_000  # type: ignore[union-attr]
    assert C not in held


@pytest.mark.parametrize(("answer", "expected"), [("CONTINUE", Begin), ("STOP", Freed), ("SETTLED", Freed)])
def test_a_start_whose_answer_was_lost_begins_after_the_reconnect_only_if_it_was_granted(
    answer: Any, expected: type
) -> None:
    held = HeldAttempts()
    offer(client(held), item(A), at=0)
    held.disconnected()
    link = Link(Role.CLIENT, held)
    link.send(HELLO, 5_000)
    reconciled = [wire.Reconciled(attempt_id=A, answer=answer, lease_ms=LEASE)]
    _, action = link.receive(WELCOME.model_copy(update={"in_flight": reconciled}), 6_000)
    assert isinstance(action, expected)
    assert (A in held) is (expected is Begin)
    if expected is Begin:
        assert held.get(A).lease_end_ms == 5_000 + LEASE - 1_000  # type: ignore[union-attr]


def test_an_offer_while_draining_is_handed_back() -> None:
    link = client()
    link.send(wire.Drain(), 0)
    assert offer(link, item(A)) == ()
    assert [told.outcome for told in link.held.fresh_results(0)] == ["HAND_BACK"]


# --- frames ---


def test_a_long_message_is_shared_out_over_frames() -> None:
    items = [result(f"{n:032x}", result="x" * 200_000) for n in range(12)]
    frames = list(pack(wire.Result(items=items)))
    assert all(len(frame.encode()) <= wire.FRAME_BYTES_MAX for frame in frames)
    read = [decode(frame, "worker") for frame in frames]
    assert [one for message in read for one in message.items] == items  # type: ignore[union-attr]


def test_a_fault_says_what_is_wrong_and_where() -> None:
    fault = decode('{"type": "renew", "number": -1, "items": [{"attempt_id": "x"}]}', "worker")
    assert isinstance(fault, Fault)
    assert "number" in fault.message
    assert "items.0.generation" in fault.message
