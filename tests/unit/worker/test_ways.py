"""Room per way of running."""

from __future__ import annotations

from typing import Any

import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers import TaskContext
from orbit_sdk.protocol.worker import OfferItem
from orbit_sdk.worker import WorkerSettings
from orbit_sdk.worker.ways import Ways, way_of


@orbit.handler("w.light", version=1, queue="mail")
async def light(ctx: TaskContext) -> None: ...


@orbit.handler("w.plain", version=1, queue="files")
def plain(ctx: TaskContext) -> None: ...


@orbit.handler("w.heavy", version=1, queue="pictures", run_in="process")
def heavy(ctx: TaskContext) -> None: ...


ALL: list[Any] = [light, plain, heavy]
QUEUES = ("files", "mail", "pictures")


def offer(name: str, attempt: str) -> OfferItem:
    return OfferItem(
        attempt_id=attempt * 32, task_id="b" * 32, generation=1, attempt_no=1, queue="q", handler=name,
        handler_version=1, recovery="CONSERVATIVE", lease_ms=1, limit_ms=1, effect_key="e",
    )  # fmt: skip


def test_each_handler_has_its_way() -> None:
    assert [way_of(one) for one in ALL] == ["loop", "thread", "process"]


def test_without_limits_no_queue_is_capped() -> None:
    ways = Ways(ALL, {"thread": None, "process": None})
    ways.take(offer("w.heavy", "1"))
    assert ways.caps(8, QUEUES) == {}


def test_a_queue_may_use_what_its_ways_have_left() -> None:
    ways = Ways(ALL, {"thread": 4, "process": 2})
    assert ways.caps(8, QUEUES) == {"files": 4, "pictures": 2}
    for attempt in "123":
        ways.take(offer("w.heavy", attempt))
    ways.take(offer("w.light", "4"))
    assert ways.caps(4, QUEUES) == {"files": 4, "pictures": 0}
    ways.release("1" * 32)
    ways.release("2" * 32)
    ways.release("2" * 32)
    ways.release("4" * 32)
    assert ways.caps(1, ("pictures",)) == {"pictures": 1}


def test_a_queue_of_several_ways_is_capped_by_the_narrowest() -> None:
    @orbit.handler("w.also", version=1, queue="pictures")
    def also(ctx: TaskContext) -> None: ...

    assert Ways([*ALL, also], {"thread": 1, "process": 2}).caps(8, QUEUES)["pictures"] == 1


@pytest.mark.parametrize("name", ["threads", "processes"])
@pytest.mark.parametrize("most", [0, 9])
def test_more_of_one_way_than_slots_is_refused_by_name(name: str, most: int) -> None:
    with pytest.raises(InvalidArgument, match=name):
        WorkerSettings("http://127.0.0.1:9", "token", slots=8, **{name: most})
