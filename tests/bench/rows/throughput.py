"""B1, B3, B4: how many steps a second, and what a step costs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from orbit_sdk.client import OrbitClient
from tests.bench.flows import QUEUE, noop
from tests.bench.sizes import Size
from tests.bench.stage import Stage

Figures = dict[str, Any]
OPEN_TASKS = ("READY", "OFFERED", "RUNNING")


def chains(  # one figure each
    built: Stage, size: Size, *, definition: str, batch: int, count: int | None = None, steps: int = 3
) -> Figures:
    """Workflows of three tasks each, started singly (`batch` 0) or in batches, until all are done."""

    started = count or size.workflows

    async def start(client: OrbitClient) -> None:
        await start_workflows(client, definition, started, batch=batch, at_once=size.concurrency)

    return _measured(built, start, ("instances", started), steps * started)


def fans(built: Stage, size: Size) -> Figures:
    """Workflows of ten tasks side by side and a join."""

    async def start(client: OrbitClient) -> None:
        await start_workflows(client, "bench.fan10", size.fans, batch=size.batch, at_once=1)

    return _measured(built, start, ("instances", size.fans), 10 * size.fans)


def tasks(built: Stage, size: Size, *, batch: int) -> Figures:
    """Single tasks without a workflow."""
    orders = [order(n) for n in range(size.tasks)]

    async def submit(client: OrbitClient) -> None:
        if batch:
            for part in parts(orders, batch):
                found = await client.tasks.submit_batch(
                    [{**one, "idempotency_key": secrets.token_hex(16)} for one in part]
                )
                assert all(item.error is None for item in found.items)
        else:
            await at_most(size.concurrency, [partial(client.tasks.submit, one) for one in orders])

    return _measured(built, submit, ("tasks", size.tasks), size.tasks)


def order(n: int) -> dict[str, Any]:
    """A task for the benchmark's worker."""
    return {
        "queue": QUEUE,
        "handler": noop.name,
        "handler_version": noop.version,
        "parameters": {"n": n},
        "recovery": "IDEMPOTENT",
    }


def _measured(
    built: Stage, start: Callable[[OrbitClient], Awaitable[None]], expected: tuple[str, int], steps: int
) -> Figures:
    table, count = expected
    with built.watch() as watch:
        done_before = watch.count(table, "SUCCEEDED")
        meter = built.meter()

        async def job(client: OrbitClient) -> None:
            await start(client)
            await watch.drained(table, *(OPEN_TASKS if table == "tasks" else ("RUNNING",)))

        built.run(job)
        spent = meter.stop()
        done = watch.count(table, "SUCCEEDED") - done_before
    assert done == count, f"{done} of {count} {table} succeeded"
    return {**spent.per_step(steps), **built.memory()}


async def start_workflows(
    client: OrbitClient, definition: str, count: int, *, batch: int, at_once: int
) -> None:
    """Start so many, singly with a bounded concurrency or batch after batch."""
    if not batch:
        await at_most(at_once, [partial(client.workflows.start, definition, n) for n in range(count)])
        return
    for part in parts(list(range(count)), batch):
        found = await client.workflows.start_batch(
            [
                {"definition_id": definition, "input": n, "idempotency_key": secrets.token_hex(16)}
                for n in part
            ]
        )
        assert all(item.error is None for item in found.items)


async def at_most(limit: int, calls: list[Callable[[], Awaitable[Any]]]) -> None:
    """Await all calls, so many at one time."""
    left = iter(calls)

    async def caller() -> None:
        for call in left:
            await call()

    await asyncio.gather(*[caller() for _ in range(limit)])


def parts(items: list[Any], size: int) -> Iterator[list[Any]]:
    """The items in pieces."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
