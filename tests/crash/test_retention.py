"""Servers that are killed while they take away what is old: another goes on, and nothing is half gone.

`ORBIT_STORM_KILLS` sets how often the server is killed (2 by default).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.crash.channel import Ledger
from tests.crash.flows import Order, chain
from tests.crash.house import House, house
from tests.crash.people import publish
from tests.server import until

KILLS = int(os.environ.get("ORBIT_STORM_KILLS", "2"))
EACH = 25
SOON = {
    "ORBIT_KEEP_TASKS_MS": "1000",
    "ORBIT_KEEP_WORKFLOWS_MS": "1000",
    "ORBIT_KEEP_AUDIT_MS": "1000",
    "ORBIT_PURGE_EVERY_MS": "20",
}
TABLES = ("instances", "instance_inputs", "instance_outputs", "steps", "payloads", "inbox", "purges")
ENDED = "SELECT COUNT(*) FROM instances WHERE ended_at IS NULL"
COUNT = "SELECT COUNT(*) FROM instances"
OF_TASKS = ("tasks", "task_specs", "task_results", "attempts", "events")


def left(at: House) -> dict[str, int]:
    found = {}
    for name in (*TABLES, *OF_TASKS):
        ((found[name],),) = at.rows(f"SELECT COUNT(*) FROM {name}")
    return {name: count for name, count in found.items() if count}


async def test_retention_that_is_killed_is_finished_by_the_next_server(
    database_url: str, tmp_path: Path
) -> None:
    with house(database_url, tmp_path, Ledger(linger_ms=0)) as at:
        server = at.server(**SOON)
        port = int(server.url.rpartition(":")[2])
        at.worker()
        started = 0
        for _ in range(KILLS):
            async with at.client() as client:
                await publish(client)
                orders = [Order(name=f"order-{started + number}") for number in range(EACH)]
                await asyncio.gather(*(client.start(chain, order) for order in orders))
            started += EACH
            # All have ended and the first have gone: the server is in the middle of it.
            await until(lambda: at.rows(ENDED) == [(0,)])
            await until(lambda: at.rows(COUNT)[0][0] < EACH)
            server.kill()
            at.check()
            server.start(port)
        await until(lambda: not left(at), seconds=60)
        server.kill()
        at.check()
        assert at.rows("SELECT COUNT(*) FROM idempotency WHERE expires_at IS NULL") == [(0,)]
