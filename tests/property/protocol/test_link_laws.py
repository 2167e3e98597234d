"""Laws of the worker protocol: whatever arrives, in whatever order, a link answers with values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import Begin, Close, Stop, Write
from orbit_sdk.protocol.credit import Credit
from orbit_sdk.protocol.frames import Fault, decode, encode
from orbit_sdk.protocol.held import HeldAttempts, Phase
from orbit_sdk.protocol.link import Link, Role, State
from tools.generate_worker_schema import worker_schema

IDS = [f"{n:032x}" for n in range(4)]
ids = st.sampled_from(IDS)
numbers = st.integers(0, 12)
millis = st.integers(0, 60_000)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def items(one: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(one, min_size=1, max_size=4)


claims = st.builds(wire.Claim, attempt_id=ids, generation=numbers)
gone = st.builds(wire.Gone, attempt_id=ids, reason=texts)
granted = st.builds(wire.Granted, attempt_id=ids, lease_ms=millis)
offers = st.builds(
    wire.OfferItem,
    attempt_id=ids, task_id=ids, generation=numbers, attempt_no=numbers, queue=st.just("jobs"),
    handler=st.just("job.run"), handler_version=st.just(1), recovery=st.just("IDEMPOTENT"),
    started=st.booleans(), ready=st.none() | numbers, lease_ms=millis, limit_ms=millis,
    effect_key=st.just("e"),
    parameters=json_values,
)  # fmt: skip
results = st.builds(
    wire.ResultItem, attempt_id=ids, task_id=ids, generation=numbers,
    outcome=st.sampled_from(["SUCCEEDED", "FINAL", "EXCEPTION"]), result=json_values,
)  # fmt: skip
errors = st.builds(wire.Error, code=st.just("INTERNAL"), message=texts)
beats = st.builds(wire.Beat, number=numbers)
drains = st.builds(wire.Drain, reason=texts)
in_flight = st.builds(
    wire.InFlight,
    attempt_id=ids,
    task_id=ids,
    generation=numbers,
    state=st.sampled_from(["ASKED", "RUNNING", "FINISHED"]),
)
hellos = st.builds(
    wire.Hello, nonce=st.just("0" * 32), worker=st.just("w"), handlers=st.just([]), queues=st.just(["jobs"]),
    slots=st.integers(1, 9), in_flight=st.lists(in_flight, max_size=3),
    protocol=st.sampled_from([1, 1, 1, 2]),
)  # fmt: skip
reconciled = st.builds(
    wire.Reconciled, attempt_id=ids, answer=st.sampled_from(["CONTINUE", "STOP", "SETTLED"]), lease_ms=millis
)
welcomes = st.builds(
    wire.Welcome, session_id=ids, namespace=st.just("n"), lease_ms=st.integers(100, 60_000),
    heartbeat_ms=st.just(10_000), silence_ms=st.just(25_000), in_flight=st.lists(reconciled, max_size=3),
    refused=st.just([]),
)  # fmt: skip
readies = st.builds(wire.Ready, number=numbers, slots=st.integers(0, 9), seen=numbers, queues=st.just({}))
from_worker = st.one_of(
    hellos, readies, beats, drains, errors,
    st.builds(wire.Start, number=numbers, items=items(claims)),
    st.builds(wire.Renew, number=numbers, items=items(claims)),
    st.builds(wire.Mark, items=items(claims)),
    st.builds(wire.Result, items=items(results)),
)  # fmt: skip
from_server = st.one_of(
    welcomes, beats, drains, errors,
    st.builds(wire.Offer, items=items(offers)),
    st.builds(wire.Started, number=numbers, items=items(granted)),
    st.builds(wire.Withdrawn, number=st.none() | numbers, items=items(gone)),
    st.builds(wire.Renewed, number=numbers, items=items(granted)),
    st.builds(wire.Lost, items=items(gone)),
    st.builds(wire.Marked, items=items(st.builds(
        wire.MarkAnswer, attempt_id=ids, answer=st.sampled_from(["GRANTED", "CANCELLED", "LOST"])))),
    st.builds(wire.Settled, items=items(st.builds(
        wire.SettledItem, attempt_id=ids, answer=st.sampled_from(["ACCEPTED", "EVIDENCE", "REFUSED"])))),
    st.builds(wire.Cancel, items=items(gone)),
)  # fmt: skip


@st.composite
def frames(draw: st.DrawFn, messages: st.SearchStrategy[Any]) -> str | bytes:
    """Good frames mostly; also cut off, spoilt, repeated keys, plain rubbish and binary."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.text(max_size=30))
    if kind == 1:
        return draw(st.binary(max_size=10))
    if kind == 2:
        return json.dumps(draw(json_values))
    frame = encode(draw(messages))
    if kind == 3:
        return frame[: draw(st.integers(0, len(frame)))]
    if kind == 4:
        place = draw(st.integers(0, len(frame)))
        return frame[:place] + draw(st.text(max_size=2)) + frame[place:]
    return frame


VALIDATOR = Draft202012Validator(worker_schema())


@given(from_worker | from_server)
def test_every_message_survives_the_wire_and_obeys_the_schema(message: Any) -> None:
    frame = encode(message)
    senders = [sender for sender in ("worker", "server") if not isinstance(decode(frame, sender), Fault)]  # type: ignore[arg-type]
    assert senders
    assert decode(frame, senders[0]) == message  # type: ignore[arg-type]
    VALIDATOR.validate(json.loads(frame))


@given(st.lists(st.tuples(frames(from_worker), st.booleans()), max_size=12))
def test_a_server_link_answers_any_frames_with_values_and_says_nothing_once_closed(
    arriving: list[tuple[str | bytes, bool]],
) -> None:
    link, at = Link(Role.SERVER), 0
    welcome = wire.Welcome(
        session_id=IDS[0], namespace="n", lease_ms=1_000, heartbeat_ms=500, silence_ms=2_000
    )
    for frame, twice in arriving:
        for _ in range(1 + twice):
            was_closed = link.state is State.CLOSED
            actions = link.receive_frame(frame, at := at + 10)
            assert not (was_closed and actions)
            assert sum(isinstance(one, Close) for one in actions) <= 1
            link.send(welcome, at)
            assert link.credit.room() >= 0


@given(st.lists(st.tuples(frames(from_server), st.integers(0, 40_000), st.booleans()), max_size=15))
def test_a_client_link_begins_no_attempt_twice_and_runs_none_beyond_its_lease(
    arriving: list[tuple[str | bytes, int, bool]],
) -> None:
    held = HeldAttempts()
    link, at = Link(Role.CLIENT, held), 0
    link.send(wire.Hello(nonce="0" * 32, worker="w", handlers=[], queues=["jobs"], slots=4), 0)
    begun: dict[str, int] = {}
    for frame, pause, announce in arriving:
        at += pause
        actions = [*link.expire(at), *link.receive_frame(frame, at)]
        if announce and link.state is State.OPEN:
            link.ready(4, at)
        for action in actions:
            if isinstance(action, Begin):
                key = action.offer.attempt_id
                assert begun.get(key, -1) <= at - 2 * 100
                begun[key] = at
                assert held.get(key).lease_end_ms > at  # type: ignore[union-attr]
            if isinstance(action, Stop):
                assert action.attempt_id in begun
            if isinstance(action, Write):
                assert not isinstance(decode(encode(action.message), "worker"), Fault)
        assert all(one.lost or one.lease_end_ms > at for one in held)
        assert held.asked == sum(one.phase is Phase.ASKED for one in held)
        assert held.unsettled == sum(one.phase is Phase.FINISHED for one in held)


@given(
    st.lists(
        st.tuples(st.sampled_from(["ready", "push", "reserve", "release"]), st.integers(0, 6)), max_size=40
    )
)
def test_credit_never_promises_a_slot_twice(steps: list[tuple[str, int]]) -> None:
    """The worker has 6 slots; what it was sent and what is reserved for it never exceed what it announced."""
    credit, number, arrived, reserved = Credit(), 0, 0, 0
    for step, count in steps:
        if step == "ready":
            number += 1
            arrived = min(arrived + count, credit.pushed)  # of what was pushed, so much had arrived
            # All that arrived still runs: six slots less those.
            assert (
                credit.refresh(wire.Ready(number=number, slots=max(6 - arrived, 0), seen=arrived), 0) is None
            )
        elif step == "reserve":
            reserved += credit.reserve("jobs", count)
        elif step == "release":
            credit.release("jobs", count)
            reserved = max(reserved - count, 0)
        elif reserved:
            credit.push("jobs")
            reserved -= 1
        assert credit.pushed + reserved <= 6
