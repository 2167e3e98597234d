"""What a rollout lives on, from the handler to the stored attempt: versions, builds, hand-backs, progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.worker import Worker, WorkerReport
from orbit_server.pulse.sweeps import sweep_due
from orbit_server.pulse.tasks.lifecycle import Recovery as TaskRecovery
from orbit_server.pulse.tasks.lifecycle import Said, TaskState
from orbit_server.pulse.tasks.records import Attempt
from orbit_server.pulse.times import PulseTimes
from tests.worker.served import Served, served

STARTED = asyncio.Event()


@orbit.handler("r.weigh", version=2, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def weigh(ctx: TaskContext, grams: int) -> str:
    return f"{grams} g"


def in_grams(kilograms: int) -> dict[str, object]:
    return {"grams": kilograms * 1000}


weigh.accepts(1, upgrade=in_grams)


@orbit.handler("r.patient", version=1, queue="jobs", recovery=Recovery.CONSERVATIVE)
async def patient(ctx: TaskContext) -> int:
    STARTED.set()
    if ctx.attempt_id and ctx.generation > 1:
        return ctx.attempt
    while not ctx.stopping:  # noqa: ASYNC110  # a handler can only look
        await asyncio.sleep(0.01)
    raise orbit.HandBack("nothing is left open")


@orbit.handler("r.pages", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def pages(ctx: TaskContext) -> dict[str, int]:
    if ctx.previous_progress is None:
        ctx.heartbeat({"page": 3})
        await asyncio.sleep(0.05)
        raise orbit.Retryable("the line is bad", after=timedelta(milliseconds=10))
    assert isinstance(ctx.previous_progress, dict)
    return {name: value for name, value in ctx.previous_progress.items() if isinstance(value, int)}


@pytest.fixture
async def house(sqlite_url: str) -> AsyncIterator[Served]:
    STARTED.clear()
    async with served(sqlite_url, PulseTimes(backoff_floor_ms=10, withdrawn_backoff_ms=10)) as one:
        yield one


def start(house: Served, build: str, **options: Any) -> tuple[Worker, asyncio.Future[WorkerReport]]:
    worker = Worker(house.http_url, "good", [weigh, patient, pages], build=build, name=build, **options)
    return worker, asyncio.ensure_future(worker.run(signals=False))


async def done(house: Served, task_id: str) -> list[Attempt]:
    async with asyncio.timeout(20):
        while (await house.task(task_id)).state is not TaskState.SUCCEEDED:
            await sweep_due(house.database, await house.database.now(), house.times)
            await asyncio.sleep(0.02)
    return await house.attempts(task_id)


async def test_an_older_contract_is_served_by_the_newer_body_and_the_build_stands_on_the_attempt(
    house: Served,
) -> None:
    worker, run = start(house, "2026.7")
    for version, parameters in ((1, {"kilograms": 3}), (2, {"grams": 3_000})):
        task_id = await house.submit(handler="r.weigh", handler_version=version, parameters=parameters)
        (attempt,) = await done(house, task_id)
        stored = await house.result(task_id)
        assert stored is not None
        assert (stored.result, attempt.build) == ('"3000 g"', "2026.7")
    worker.stop()
    await run


async def test_what_is_handed_back_at_a_stop_is_not_charged_and_runs_on_the_next_worker(
    house: Served,
) -> None:
    old, leaving = start(house, "old")
    task_id = await house.submit(handler="r.patient", recovery=TaskRecovery.CONSERVATIVE, parameters={})
    await STARTED.wait()
    old.stop()
    assert (await leaving).outcomes == {"HAND_BACK": 1}
    new, run = start(house, "new")
    first, second = await done(house, task_id)
    assert (first.outcome, first.charged, first.build) == (Said.HAND_BACK, False, "old")
    assert (second.outcome, second.charged, second.build) == (Said.SUCCEEDED, True, "new")
    stored = await house.result(task_id)
    assert stored is not None
    assert stored.result == "1"
    new.stop()
    await run


async def test_the_next_attempt_knows_what_the_one_before_reported(house: Served) -> None:
    worker, run = start(house, "any")
    task_id = await house.submit(handler="r.pages", parameters={})
    assert [one.outcome for one in await done(house, task_id)] == [Said.RETRYABLE, Said.SUCCEEDED]
    stored = await house.result(task_id)
    assert stored is not None
    assert stored.result == '{"page":3}'
    worker.stop()
    await run
