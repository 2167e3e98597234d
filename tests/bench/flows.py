"""The workflows and handlers that the benchmarks run. Their tasks do nothing: the rest is measured."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import orbit_sdk as orbit

QUEUE: Final = "bench"
HOLD_QUEUE: Final = "bench.hold"
TIMER: Final = timedelta(seconds=20)


@orbit.handler("bench.noop", version=1, queue=QUEUE, recovery=orbit.Recovery.IDEMPOTENT)
async def noop(ctx: orbit.TaskContext, n: int) -> int:
    """Gives back what it gets; may be repeated, so claim and start share a transaction."""
    return n


@orbit.handler("bench.careful", version=1, queue=QUEUE, recovery=orbit.Recovery.CONSERVATIVE)
async def careful(ctx: orbit.TaskContext, n: int) -> int:
    """The same, but never repeated: the worker asks before it starts."""
    return n


@orbit.handler("bench.hold", version=1, queue=HOLD_QUEUE, recovery=orbit.Recovery.IDEMPOTENT)
async def hold(ctx: orbit.TaskContext, n: int) -> int:
    """Only the crowd of idle connections says that it can run this, and it never ends it."""
    return n


HANDLERS: Final = (noop, careful)


@orbit.workflow("bench.chain3", version=1)
def chain3(n: int) -> int:
    a = noop.options(key="a")(n)
    b = noop.options(key="b")(a)
    return noop.options(key="c")(b)


@orbit.workflow("bench.careful3", version=1)
def careful3(n: int) -> int:
    a = careful.options(key="a")(n)
    b = careful.options(key="b")(a)
    return careful.options(key="c")(b)


@orbit.workflow("bench.fan10", version=1)
def fan10(n: int) -> None:
    def arm(place: int) -> Callable[[], Any]:
        return lambda: noop.options(key=f"arm{place}")(n)

    orbit.parallel(
        arm(0), arm(1), arm(2), arm(3), arm(4), arm(5), arm(6), arm(7), arm(8), arm(9), key="all"
    )  # fmt: skip


@orbit.workflow("bench.chain50", version=1)
def chain50(n: int) -> int:
    for place in range(50):
        n = noop.options(key=f"s{place}")(n)
    return n


@orbit.workflow("bench.chain200", version=1)
def chain200(n: int) -> int:
    for place in range(200):
        n = noop.options(key=f"s{place}")(n)
    return n


@orbit.workflow("bench.timer", version=1)
def timer(n: int) -> int:
    orbit.sleep(TIMER, key="sleep")
    return n


WORKFLOWS: Final = (chain3, careful3, fan10, chain50, chain200, timer)
