"""What waits for one worker, and how fast it may speak."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import Fault, decode
from orbit_server.gateway.connection import SlowReader
from orbit_server.gateway.outbox import Outbox
from orbit_server.gateway.pace import Pace


class Wire:
    """A socket of paper; `stuck` never takes a frame."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.frames: list[str] = []
        self.stuck = stuck

    async def receive(self) -> object:
        raise NotImplementedError

    async def send(self, frame: str) -> None:
        if self.stuck:
            await asyncio.Event().wait()
        self.frames.append(frame)

    async def close(self, code: int, reason: str) -> None: ...

    def abort(self) -> None: ...


def settled(number: int) -> wire.Settled:
    return wire.Settled(items=[wire.SettledItem(attempt_id=f"{number:032x}", answer="ACCEPTED")])


def offer(number: int, size: int = 1) -> wire.Offer:
    item = wire.OfferItem(
        attempt_id=f"{number:032x}", task_id="b" * 32, generation=1, attempt_no=1, queue="q", handler="t",
        handler_version=1, recovery="READ_ONLY", lease_ms=1, limit_ms=1, effect_key="e",
        parameters="x" * size,
    )  # fmt: skip
    return wire.Offer(items=[item])


async def drained(outbox: Outbox, paper: Wire) -> list[wire.AnyMessage]:
    task = asyncio.ensure_future(outbox.drain_to(paper))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    messages = [decode(frame, "server") for frame in paper.frames]
    return [one for one in messages if not isinstance(one, Fault)]


async def test_neighbours_of_one_kind_leave_in_one_frame_and_order_is_kept() -> None:
    outbox = Outbox(100, 1_000_000, 1_000)
    for message in (settled(1), settled(2), wire.Beat(number=1), settled(3)):
        assert outbox.put(message)
    sent = await drained(outbox, Wire())
    assert [one.type for one in sent] == ["settled", "beat", "settled"]
    assert len(sent[0].items) == 2  # type: ignore[union-attr]


async def test_a_frame_never_holds_more_items_than_allowed() -> None:
    outbox = Outbox(1_000, 1_000_000, 1_000)
    for number in range(wire.ITEMS_MAX + 10):
        outbox.put(settled(number))
    sent = await drained(outbox, Wire())
    assert [len(one.items) for one in sent] == [wire.ITEMS_MAX, 10]  # type: ignore[union-attr]


@pytest.mark.parametrize(("frames_max", "bytes_max"), [(2, 1_000), (100, 25)])
async def test_more_than_may_wait_means_a_slow_reader(frames_max: int, bytes_max: int) -> None:
    outbox = Outbox(frames_max, bytes_max, 1_000)
    assert outbox.put(offer(1), 10)
    assert outbox.put(offer(2), 10)
    assert not outbox.put(offer(3), 10)
    with pytest.raises(SlowReader):
        await outbox.drain_to(Wire())


async def test_a_frame_that_does_not_leave_in_time_means_a_slow_reader() -> None:
    outbox = Outbox(10, 1_000, 1)
    outbox.put(settled(1))
    with pytest.raises(SlowReader, match="in time"):
        await outbox.drain_to(Wire(stuck=True))


async def test_offers_that_never_left_are_named_and_those_that_may_have_left_are_not() -> None:
    outbox = Outbox(10, 10_000, 1)
    outbox.put(offer(1))
    outbox.put(wire.Beat(number=1))
    outbox.put(offer(2))
    with pytest.raises(SlowReader):
        await outbox.drain_to(Wire(stuck=True))
    assert outbox.unsent_offers() == {f"{2:032x}"}


def test_a_worker_within_its_pace_is_never_held_up_and_a_faster_one_is() -> None:
    pace = Pace(per_second=1_000, burst=10)
    assert [pace.wait_ms(0) for _ in range(10)] == [0] * 10
    assert pace.wait_ms(0) > 0
    assert pace.wait_ms(100) == 0
