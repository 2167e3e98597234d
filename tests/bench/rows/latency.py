"""B2 and B8: how long one waits on an idle system, and how late timers are on a busy one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from orbit_sdk.client import OrbitClient
from tests.bench.flows import TIMER, chain3
from tests.bench.machine import percentile
from tests.bench.rows.throughput import start_workflows
from tests.bench.sizes import Size
from tests.bench.stage import Stage

Figures = dict[str, Any]


def idle_chain(built: Stage, size: Size) -> Figures:
    """One workflow of three tasks after another: from the start to the result, as the client sees it."""
    took: list[float] = []

    async def job(client: OrbitClient) -> None:
        for n in range(size.idle):
            began = time.perf_counter()
            handle = await client.start(chain3, n)
            assert await handle.result(timeout=60) == n
            took.append((time.perf_counter() - began) * 1000)

    meter = built.meter()
    built.run(job)
    spent = meter.stop()
    steps = 3 * size.idle
    return {
        "p50_ms": percentile(took, 0.5),
        "p95_ms": percentile(took, 0.95),
        "cpu_ms_per_step": spent.cpu_s * 1000 / steps,
        "fsyncs_per_step": spent.flushes / steps,
    }


def timers(built: Stage, size: Size) -> Figures:
    """Timers that fall due over some seconds while B1 runs: how late their workflows ended."""
    timer_us = round(TIMER.total_seconds() * 1e6)
    began = time.time()

    async def job(client: OrbitClient) -> None:
        pace = size.timers_over_s / max(1, size.timers // size.batch)
        for place in range(size.timers // size.batch):
            await asyncio.sleep(began + place * pace - time.time())
            await start_workflows(client, "bench.timer", size.batch, batch=size.batch, at_once=1)
        # Busy from just before the first timer is due until the last one is.
        await asyncio.sleep(max(0.0, began + TIMER.total_seconds() - 0.5 - time.time()))
        with built.watch() as watch:
            while watch.count("instances", "WAITING"):
                await start_workflows(client, "bench.chain3", size.batch, batch=size.batch, at_once=1)
            await watch.drained("instances", "RUNNING")

    built.run(job)
    with built.watch() as watch:
        ended = watch.rows(
            "SELECT started_at, ended_at FROM instances WHERE definition_id = ?", "bench.timer"
        )
    late = [(end - start - timer_us) / 1000 for start, end in ended]
    return {"p50_late_ms": percentile(late, 0.5), "p99_late_ms": percentile(late, 0.99)}
