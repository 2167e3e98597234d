"""Two servers over one MariaDB that want the same thing at the same moment, two hundred times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.verify import snapshot, violations
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.crash.people import ended
from tests.crash.single import arms
from tests.documents import document, end, poll
from tests.server import until
from tests.storage.weave.paper import Paper

MODULE = "tests.crash.single"
TIMES, AT_ONCE = 200, 25


@pytest.fixture
def at(mariadb_url: str, tmp_path: Path) -> Iterator[House]:
    with house(mariadb_url, tmp_path, Ledger(linger_ms=0)) as built:
        for queue in ("left", "right"):
            server = built.server()
            built.worker(server.url, MODULE, (queue,))
        yield built


async def test_two_arms_that_end_together_on_two_servers_are_joined_once(at: House) -> None:
    """The arms wait for each other outside and return in the same moment, each to its own server."""
    async with at.client() as one, at.client(at.servers[1].url) as other:
        await one.definitions.publish(arms.compile().definition.to_json(), current=True)
        ids: list[str] = []
        for wave in range(TIMES // AT_ONCE):
            clients = (one, other)
            started = await asyncio.gather(
                *[
                    clients[n % 2].start(arms, f"arms-{wave}-{n}", idempotency_key=f"arms-{wave}-{n}")
                    for n in range(AT_ONCE)
                ]
            )
            ids += [handle.id for handle in started]
            await asyncio.gather(*[handle.result(timeout=30, on_review="raise") for handle in started])
        assert len(await ended(one, ids[-3:], 10)) == 3
    effects = at.ledger.of_step("after")
    assert len(effects) == TIMES
    assert {effect.workflow for effect in effects} == set(ids)
    assert at.rows("SELECT COUNT(*) FROM tasks WHERE step_key = 'after'") == [(TIMES,)]
    at.check()


async def test_tasks_that_both_servers_offer_run_once(at: House) -> None:
    """Two servers, two workers, one queue: every effect happens once although nobody may repeat it."""
    at.worker(at.servers[0].url, MODULE, ("storm",))
    at.worker(at.servers[1].url, MODULE, ("storm",))
    async with at.client() as client:
        items = [
            {
                "queue": "storm",
                "handler": "single.risky",
                "handler_version": 1,
                "parameters": {"name": f"n{n}"},
                "idempotency_key": f"n{n}",
            }
            for n in range(TIMES)
        ]
        answer = await client.tasks.submit_batch(items)
        ids = [item.id for item in answer.items]
        assert None not in ids
        left = "SELECT COUNT(*) FROM tasks WHERE state <> 'SUCCEEDED'"
        await until(lambda: at.rows(left) == [(0,)], 60)
    assert sorted(one.step for one in at.ledger.applied) == sorted(f"n{n}" for n in range(TIMES))
    at.check()


async def test_a_poll_that_two_servers_wake_asks_once_per_round(mariadb_url: str) -> None:
    def still(_: Any) -> Told:
        return Told(Said.SUCCEEDED, result={"state": "pending"})

    flow = poll("done", rounds=6)
    flow["every_ms"] = 20
    async with Paper(mariadb_url, {"status": still}) as one, Paper(mariadb_url, {"status": still}) as other:
        one.worker()
        other.worker()
        await one.publish(document({"ask": flow, "done": end()}))
        instances = await asyncio.gather(*[one.start({}) for _ in range(10)])
        for instance in instances:
            while (await one.show(instance)).row.state != "NEEDS_REVIEW":
                await asyncio.gather(one.sweep(), other.sweep())
    with snapshot(mariadb_url) as conn:
        asked = conn.execute(
            text("SELECT COUNT(*), COUNT(DISTINCT round) FROM tasks GROUP BY instance_id")
        ).all()
        assert [tuple(row) for row in asked] == [(6, 6)] * 10
        assert violations(conn) == []
