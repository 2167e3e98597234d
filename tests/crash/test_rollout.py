"""A rollout under load: four workers restarted one after the other, and what each recovery level makes of it.

`ORBIT_STORM_ROUNDS` sets how many rounds there are (2 by default). Every second round one of the workers is
killed instead of told to stop, as by a machine that goes down.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.client import OrbitClient
from tests.crash.channel import Ledger
from tests.crash.house import House, WorkerProcess, house
from tests.server import ROOT, until

ROUNDS = int(os.environ.get("ORBIT_STORM_ROUNDS", "2"))
WORKERS = 4
HANDLERS = {
    "look": "READ_ONLY",
    "put": "IDEMPOTENT",
    "send": "VERIFIABLE",
    "stamp": "MARKED",
    "pay": "CONSERVATIVE",
    "undeclared": None,
}
TABLE = ROOT / "docs" / "how-to" / "rollouts.md"


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """Recovery level -> what becomes of a task whose worker was told to stop, and of one that was killed."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \|", TABLE.read_text(), re.MULTILINE)
    return {level: (_states(told), _states(killed)) for level, told, killed in rows}


def _states(cell: str) -> set[str]:
    return set(re.findall(r"`([A-Z_]+)`", cell))


class Load:
    """Tasks of every level, as fast as they are done."""

    def __init__(self, at: House, client: OrbitClient) -> None:
        self.at = at
        self.client = client
        self.tasks: dict[str, str] = {}
        """Task id -> handler."""
        self.over = False

    async def run(self) -> None:
        while not self.over:
            await asyncio.gather(*(self._submit(name) for name in HANDLERS))
            await until(lambda: self.open() < 30)

    async def _submit(self, name: str) -> None:
        task: dict[str, Any] = {
            "queue": "storm",
            "handler": f"storm.{name}",
            "handler_version": 1,
            "parameters": {"name": name},
            "retry": {"backoff_ms": 100, "max_backoff_ms": 200, "max_attempts": 5, "jitter_percent": 0},
        }
        if (level := HANDLERS[name]) is not None:
            task["recovery"] = level
        self.tasks[(await self.client.tasks.submit(task)).id] = name

    def open(self) -> int:
        """How many are neither settled nor with a person."""
        counts = self.at.rows("SELECT state, COUNT(*) FROM tasks GROUP BY state")
        return sum(count for state, count in counts if state not in ENDS)


ENDS = {"SUCCEEDED", "FAILED", "NEEDS_REVIEW", "CANCELLED", "EXPIRED"}


class Rollout:
    """Every worker process has a name of its own, so that attempts tell who ran them."""

    def __init__(self, at: House) -> None:
        self.at = at
        self.killed: set[str] = set()

    async def round(self, number: int) -> None:
        for place, worker in enumerate(self.at.workers):
            if number % 2 and place == number // 2 % WORKERS:
                self.killed.add(worker.name)
                worker.kill()
            else:
                assert await asyncio.to_thread(worker.end, signal.SIGTERM) == 0
            await self.start(worker, f"{place}.{number + 1}")

    async def start(self, worker: WorkerProcess, name: str) -> None:
        """The next one is only touched once this one does its share: as a readiness probe would have it."""
        worker.name = name
        worker.start()
        query = "SELECT COUNT(*) FROM attempts WHERE worker = :name AND outcome = 'SUCCEEDED'"
        await until(lambda: self.at.rows(query, name=name)[0][0] > 2)


# Per commit on one kind of database; the long one on both.
@pytest.fixture(params=["sqlite_url", "mariadb_url"] if ROUNDS > 2 else ["sqlite_url"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    url = request.getfixturevalue(request.param)
    with house(url, tmp_path, Ledger(seed=5)) as built:
        built.server()
        for place in range(WORKERS):
            worker = WorkerProcess(
                built.servers[0].url,
                built.token,
                f"{place}.0",
                tmp_path / f"worker{place}.log",
                built.channel,
                grace_ms=30_000,
            )
            built.workers.append(worker)
        yield built


def outcome_of_each(at: House, load: Load) -> list[tuple[str, str, str, str | None, bool, int]]:
    """(handler, state, effect key, worker of the last run, whether its effect could have begun, effects)."""
    effects = at.ledger.by_key()
    runs = at.rows("SELECT task_id, worker, started_at, marked_at, kind FROM attempts ORDER BY generation")
    last: dict[str, tuple[str, bool]] = {}
    for task_id, worker, started_at, marked_at, kind in runs:
        begun = marked_at if load.tasks[task_id] == "stamp" else started_at
        if kind == "RUN":
            last[task_id] = (worker, begun is not None)
    rows = at.rows("SELECT t.id, t.state, s.effect_key FROM tasks t JOIN task_specs s ON s.task_id = t.id")
    return [
        (load.tasks[task_id], state, key, *last[task_id], len(effects.get(key, ())))
        for task_id, state, key in rows
    ]


@pytest.mark.timeout(60 + 30 * ROUNDS)
async def test_a_rollout_asks_nobody_but_about_handlers_that_were_killed(at: House) -> None:
    table = documented()
    async with at.client() as client:
        load, rollout = Load(at, client), Rollout(at)
        running = asyncio.create_task(load.run())
        for worker in at.workers:
            await rollout.start(worker, worker.name)
        for number in range(ROUNDS):
            await rollout.round(number)
        load.over = True
        await running
        await until(lambda: not load.open(), 60)
    found = outcome_of_each(at, load)
    assert len(found) == len(load.tasks) > 20 * ROUNDS
    for handler, state, _, worker, begun, effects in found:
        level = HANDLERS[handler] or "CONSERVATIVE"
        told, killed = table[level]
        dead = worker in rollout.killed
        assert state in (killed if dead else told), (handler, state, worker)
        if state == "NEEDS_REVIEW":
            assert dead, f"{handler}: a person is asked although worker {worker} was only told to stop"
            assert begun, f"{handler}: a person is asked although its effect had not begun"
        if level in ("VERIFIABLE", "MARKED", "CONSERVATIVE"):
            assert effects <= 1, f"{handler} had its effect {effects} times"
        if state == "SUCCEEDED" and level != "READ_ONLY":
            assert effects >= 1, f"{handler} succeeded without its effect"
    at.check()


def test_every_level_has_its_row() -> None:
    assert set(documented()) == {level for level in HANDLERS.values() if level is not None}
