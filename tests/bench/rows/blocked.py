"""B7: claiming costs the same with many blocked tasks in front."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from orbit_sdk.client import OrbitClient
from tests.bench.flows import QUEUE
from tests.bench.rows.throughput import order, parts
from tests.bench.sizes import Size
from tests.bench.stage import Stage
from tests.bench.watch import Watch, connect

Figures = dict[str, Any]
_BITE = 500
_GATE = 1


def head_of_line(built: Stage, size: Size) -> Figures:
    """Claims a second from a queue where many tasks of paused workflows stand first, against none of them."""
    clear, cpu_clear = _drained(built, size)
    _block(built, size.blocked)
    behind, cpu_behind = _drained(built, size)
    return {
        "blocked": size.blocked,
        "claims_per_s_clear": clear,
        "claims_per_s_behind": behind,
        "ratio": behind / clear,
        "cpu_ms_per_claim_clear": cpu_clear,
        "cpu_ms_per_claim_behind": cpu_behind,
        "cpu_ratio": cpu_clear / cpu_behind,
    }


def _drained(built: Stage, size: Size) -> tuple[float, float]:
    """Tasks queue up while the queue is paused; the clock runs from its resumption until all are done.

    Answers tasks per second, and the CPU time (ms) of all processes per task.
    """
    with built.watch() as watch:

        async def job(client: OrbitClient) -> tuple[float, float]:
            await client.queues.pause(QUEUE, reason="measuring")
            for part in parts([order(n) for n in range(size.tasks)], size.batch):
                found = await client.tasks.submit_batch(
                    [{**one, "idempotency_key": secrets.token_hex(16)} for one in part]
                )
                assert all(item.error is None for item in found.items)
            loop = asyncio.get_running_loop()
            meter = built.meter()
            began = loop.time()
            await client.queues.resume(QUEUE, reason="measuring")
            while _open(watch):  # noqa: ASYNC110  # another process is watched
                await asyncio.sleep(0.02)
            took = loop.time() - began
            return size.tasks / took, meter.stop().per_step(size.tasks)["cpu_ms_per_step"]

        return built.run(job)


def _open(watch: Watch) -> int:
    """Tasks that can be claimed or run; read through the ready index, so that looking costs the same."""
    found = 0
    for state in ("READY", "OFFERED", "RUNNING"):
        ((count,),) = watch.rows(
            "SELECT COUNT(*) FROM tasks WHERE queue_id IN (SELECT id FROM queues WHERE name = ?)"
            " AND state = ? AND blocked = 0",
            QUEUE,
            state,
        )
        found += count
    return int(found)


def _block(built: Stage, count: int) -> None:
    """So many more READY tasks of higher priority whose workflow is paused: copies of one that was run."""
    with built.watch() as watch:
        columns = watch.columns("tasks")
        (row,) = watch.rows("SELECT * FROM tasks WHERE queue = ? AND instance_id IS NULL LIMIT 1", QUEUE)
    values = dict(zip(columns, row, strict=True))
    values |= {"state": "READY", "blocked": _GATE, "gate": _GATE, "priority": 9, "settled_at": None}
    values |= {"attempt_id": None, "lease_until": None, "virtual_start": 0}
    mark = "?" if built.dialect == "sqlite" else "%s"
    statement = f"INSERT INTO tasks ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))})"
    connection = connect(built.database)
    try:
        cursor = connection.cursor()
        for first in range(0, count, _BITE):
            cursor.execute("BEGIN")
            rows = [{**values, "id": secrets.token_hex(16)} for _ in range(min(_BITE, count - first))]
            cursor.executemany(statement, [tuple(one[column] for column in columns) for one in rows])
            connection.commit()
        cursor.close()
    finally:
        connection.close()
