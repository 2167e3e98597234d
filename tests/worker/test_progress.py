"""A handler that hangs is found by its silence, whatever its worker renews."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.worker import Worker
from orbit_server.pulse.sweeps import sweep_due, sweep_leases
from orbit_server.pulse.tasks.lifecycle import Recovery as TaskRecovery
from orbit_server.pulse.tasks.lifecycle import Said, TaskState
from orbit_server.pulse.times import PulseTimes
from tests.worker.served import Served, served

PATIENCE = timedelta(seconds=1)
HUNG = threading.Event()


@orbit.handler("hang.once", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT, progress_timeout=PATIENCE)
def once(ctx: TaskContext) -> int:
    if ctx.attempt == 1:
        HUNG.wait(30)
    return ctx.attempt


@orbit.handler("hang.risky", version=1, queue="jobs", progress_timeout=PATIENCE)
async def risky(ctx: TaskContext) -> None:
    await asyncio.Event().wait()


@orbit.handler(
    "hang.busy", version=1, queue="jobs", recovery=Recovery.CONSERVATIVE, progress_timeout=PATIENCE
)
async def busy(ctx: TaskContext) -> str:
    for part in range(12):
        ctx.heartbeat(part)
        await asyncio.sleep(0.2)
    return "done"


@pytest.fixture
async def house(database_url: str) -> AsyncIterator[Served]:
    async with served(database_url, PulseTimes(lease_skew_ms=100, backoff_floor_ms=10)) as one:
        yield one


async def test_who_reports_goes_on_and_who_hangs_is_judged_by_its_level(house: Served) -> None:
    HUNG.clear()
    worker = Worker(house.http_url, "good", [once, risky, busy], slots=4)
    run = asyncio.ensure_future(worker.run(signals=False))
    wanted = {
        "hang.once": (TaskRecovery.IDEMPOTENT, TaskState.SUCCEEDED, [Said.NO_PROGRESS, Said.SUCCEEDED]),
        "hang.risky": (TaskRecovery.CONSERVATIVE, TaskState.NEEDS_REVIEW, [Said.NO_PROGRESS]),
        "hang.busy": (TaskRecovery.CONSERVATIVE, TaskState.SUCCEEDED, [Said.SUCCEEDED]),
    }
    ids = {
        name: await house.submit(handler=name, recovery=level, parameters={})
        for name, (level, _, _) in wanted.items()
    }
    try:
        async with asyncio.timeout(30):
            for name, (_, state, outcomes) in wanted.items():
                while (await house.task(ids[name])).state is not state:
                    now = await house.database.now()
                    await sweep_leases(house.database, now, house.times)
                    await sweep_due(house.database, now, house.times)
                    await asyncio.sleep(0.05)
                assert [one.outcome for one in await house.attempts(ids[name])] == outcomes, name
        (told,) = await house.attempts(ids["hang.busy"])
        assert told.started_at is not None
        assert told.progress_at is not None
        assert told.progress_at - told.started_at > 1_000_000
    finally:
        HUNG.set()
        worker.stop()
        await run
