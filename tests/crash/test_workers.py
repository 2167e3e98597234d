"""One fault of a worker at a time: what its task becomes follows from what its handler declared."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.server import until

MODULE = "tests.crash.single"
OF_LEVEL = {
    "safe": "IDEMPOTENT",
    "known": "VERIFIABLE",
    "marked": "MARKED",
    "risky": "CONSERVATIVE",
    "undeclared": "CONSERVATIVE",
    "reads": "READ_ONLY",
}


@pytest.fixture
def at(sqlite_url: str, tmp_path: Path) -> Iterator[House]:
    with house(sqlite_url, tmp_path, Ledger(linger_ms=0)) as built:
        built.server()
        built.worker(module=MODULE)
        yield built


async def submit(client: OrbitClient, handler: str, **more: Any) -> str:
    level = OF_LEVEL.get(handler, "READ_ONLY" if handler == "later" else "IDEMPOTENT")
    task = {
        "queue": "storm",
        "handler": f"single.{handler}",
        "handler_version": 1,
        "parameters": {"name": more.pop("name", handler)},
        "recovery": level,
        "retry": {"backoff_ms": 100, "max_backoff_ms": 200, "max_attempts": 5, "jitter_percent": 0},
        **more,
    }
    if handler == "undeclared":
        del task["recovery"]
    return (await client.tasks.submit(task)).id


async def reaches(client: OrbitClient, task_id: str, *states: str) -> Any:
    async def look() -> Any:
        found = await client.tasks.get(task_id)
        return found if found.state in states else None

    return await until(look, 40)


def dies(at: House) -> None:
    """The worker is gone without a word, and another one comes."""
    at.workers[0].kill()
    for step in list(at.ledger.hold):
        at.ledger.let_go(step)
    at.workers[0].start()


async def test_what_follows_a_death_after_the_effect_is_what_the_level_allows(at: House) -> None:
    ledger = at.ledger
    ledger.hold |= set(OF_LEVEL)
    async with at.client() as client:
        ids = {handler: await submit(client, handler) for handler in OF_LEVEL}
        await until(lambda: ledger.count() == 5 and "reads" in ledger.passed)
        dies(at)
        for handler in ("safe", "known", "reads"):
            await reaches(client, ids[handler], "SUCCEEDED")
        for handler in ("marked", "risky", "undeclared"):
            found = await reaches(client, ids[handler], "NEEDS_REVIEW")
            assert found.review_class == "UNKNOWN", handler
        attempts = {
            handler: [(a.kind, a.outcome) async for a in client.tasks.attempts(task_id)]
            for handler, task_id in ids.items()
        }
        keys = {handler: (await client.tasks.get(task_id)).effect_key for handler, task_id in ids.items()}
    assert attempts["safe"] == [("RUN", "SUCCEEDED"), ("RUN", "LEASE_LOST")]
    assert attempts["reads"] == [("RUN", "SUCCEEDED"), ("RUN", "LEASE_LOST")]
    assert attempts["known"] == [("VERIFY", "HAPPENED"), ("RUN", "LEASE_LOST")]
    for handler in ("marked", "risky", "undeclared"):
        assert attempts[handler] == [("RUN", "LEASE_LOST")], handler
    happened = {handler: len(ledger.by_key()[keys[handler]]) for handler in OF_LEVEL if handler != "reads"}
    assert happened == {"safe": 2, "known": 1, "marked": 1, "risky": 1, "undeclared": 1}
    at.check()


async def test_a_death_before_the_mark_repeats_nothing_and_asks_nobody(at: House) -> None:
    at.ledger.hold.add("before marked")
    async with at.client() as client:
        task_id = await submit(client, "marked")
        await until(lambda: "before marked" in at.ledger.passed)
        dies(at)
        await reaches(client, task_id, "SUCCEEDED")
    assert len(at.ledger.of_step("marked")) == 1
    at.check()


async def test_a_frozen_worker_comes_back_too_late_and_changes_nothing(at: House) -> None:
    """Its lease ends while it stands still; what it then says is evidence, and nothing runs twice for it."""
    ledger = at.ledger
    ledger.hold |= {"safe", "risky"}
    async with at.client() as client:
        ids = {handler: await submit(client, handler) for handler in ("safe", "risky")}
        await until(lambda: ledger.count() == 2)
        os.kill(at.workers[0].pid, signal.SIGSTOP)
        try:
            at.worker(module=MODULE)
            await reaches(client, ids["risky"], "NEEDS_REVIEW")
            await until(lambda: len(ledger.of_step("safe")) == 2)
            ledger.let_go("safe")
            ledger.let_go("risky")
            await reaches(client, ids["safe"], "SUCCEEDED")
        finally:
            os.kill(at.workers[0].pid, signal.SIGCONT)
        again = await submit(client, "reads", name="it is back")
        at.workers[1].kill()
        await reaches(client, again, "SUCCEEDED")
        review = await client.tasks.get(ids["risky"])
        assert review.state == "NEEDS_REVIEW"
        assert (await client.tasks.get(ids["safe"])).state == "SUCCEEDED"
        assert all(one.kind.startswith("LATE") for one in review.evidence)
    assert len(ledger.of_step("risky")) == 1
    assert len(ledger.of_step("safe")) == 2
    at.check()


async def test_a_result_that_is_too_large_or_of_another_type_is_for_a_person_and_never_repeated(
    at: House,
) -> None:
    async with at.client() as client:
        ids = {handler: await submit(client, handler) for handler in ("wrong", "huge")}
        for handler, task_id in ids.items():
            found = await reaches(client, task_id, "NEEDS_REVIEW", "SUCCEEDED", "FAILED")
            assert (found.state, found.error_code) == ("NEEDS_REVIEW", "INVALID_RESULT"), handler
            assert [a.outcome async for a in client.tasks.attempts(task_id)] == ["INVALID_RESULT"]
            assert len(at.ledger.of_step(handler)) == 1
        assert await client.healthy()
    at.check()


async def test_a_backoff_runs_on_while_the_server_is_dead_and_is_not_rolled_anew(at: House) -> None:
    async with at.client() as client:
        task_id = await submit(client, "later")
        before = await reaches(client, task_id, "RETRY_WAIT")
        at.servers[0].kill()
        at.servers[0].restart()
        after = await client.tasks.get(task_id)
        assert (after.state, after.due_at) == ("RETRY_WAIT", before.due_at)
        await reaches(client, task_id, "SUCCEEDED")
    ((started, due),) = at.rows(
        "SELECT MAX(started_at), MIN(closed_at) FROM attempts WHERE task_id = :id", id=task_id
    )
    assert started - due >= 4_000_000
    assert at.ledger.passed == ["later", "later"]
    at.check()


async def test_a_worker_told_to_leave_finishes_what_it_runs(at: House) -> None:
    at.ledger.hold.add("risky")
    async with at.client() as client:
        task_id = await submit(client, "risky")
        await until(lambda: at.ledger.count() == 1)
        leaving = asyncio.create_task(asyncio.to_thread(at.workers[0].end, signal.SIGTERM))
        at.ledger.let_go("risky")
        assert await leaving == 0
        await reaches(client, task_id, "SUCCEEDED")
    at.check()
