"""B7: claiming costs the same with many blocked tasks in front."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from statistics import median
from typing import Any

from orbit_sdk.client import OrbitClient
from orbit_server.pulse.ids import queue_id_of
from tests.bench.flows import QUEUE
from tests.bench.rows.throughput import order, parts
from tests.bench.sizes import Size
from tests.bench.stage import SLOTS, Stage
from tests.bench.watch import Watch, connect

Figures = dict[str, Any]
_BITE = 500
_GATE = 1
_BEHIND = "bench.behind"
"""A queue of its own, with a worker of its own."""
_PAIRS = 5
_A_TURN = 1_500


def head_of_line(built: Stage, size: Size) -> Figures:
    """Claims a second from a queue where many tasks of paused workflows stand first, against one without.

    Both queues stand in one database and are emptied in turns, now one first and now the other, so that what
    else happens on the machine meets both; medians of the pairs.
    """
    built.spawn("tests.bench.worker", built.server.url, built.server.token, str(SLOTS), _BEHIND)
    for queue in (QUEUE, _BEHIND):
        _drained(built, queue, min(_A_TURN, size.tasks))
    _block(built, size.blocked)
    clear: list[Turn] = []
    behind: list[Turn] = []
    for pair in range(_PAIRS):
        turns = [(clear, QUEUE), (behind, _BEHIND)]
        for kept, queue in turns if pair % 2 else reversed(turns):
            kept.append(_drained(built, queue, min(_A_TURN, size.tasks)))
    ratios = [b.per_s / c.per_s for c, b in zip(clear, behind, strict=True)]
    return {
        "blocked": size.blocked,
        "claims_per_s_clear": median(one.per_s for one in clear),
        "claims_per_s_behind": median(one.per_s for one in behind),
        "ratio": median(ratios),
        "ratio_lowest": min(ratios),
        "cpu_ms_per_claim_clear": median(one.cpu_ms for one in clear),
        "cpu_ms_per_claim_behind": median(one.cpu_ms for one in behind),
        "cpu_ratio": median(c.cpu_ms / b.cpu_ms for c, b in zip(clear, behind, strict=True)),
    }


@dataclass(frozen=True, slots=True)
class Turn:
    """One queue emptied: tasks per second, and the CPU time (ms) of all processes per task."""

    per_s: float
    cpu_ms: float


def _drained(built: Stage, queue: str, count: int) -> Turn:
    """Tasks queue up while the queue is paused; the clock runs from its resumption until all are done."""
    with built.watch() as watch:

        async def job(client: OrbitClient) -> Turn:
            await client.queues.pause(queue, reason="measuring")
            for part in parts([order(n) for n in range(count)], 100):
                found = await client.tasks.submit_batch(
                    [{**one, "queue": queue, "idempotency_key": secrets.token_hex(16)} for one in part]
                )
                assert all(item.error is None for item in found.items)
            loop = asyncio.get_running_loop()
            meter = built.meter()
            began = loop.time()
            await client.queues.resume(queue, reason="measuring")
            while _open(watch, queue):  # noqa: ASYNC110  # another process is watched
                await asyncio.sleep(0.01)
            took = loop.time() - began
            return Turn(count / took, meter.stop().per_step(count)["cpu_ms_per_step"])

        return built.run(job)


def _open(watch: Watch, queue: str) -> int:
    """Tasks that can be claimed or run; read through the ready index, so that looking costs the same."""
    found = 0
    for state in ("READY", "OFFERED", "RUNNING"):
        ((count,),) = watch.rows(
            "SELECT COUNT(*) FROM tasks WHERE queue_id IN (SELECT id FROM queues WHERE name = ?)"
            " AND state = ? AND blocked = 0",
            queue,
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
    values |= {"queue": _BEHIND, "queue_id": queue_id_of(values["namespace_id"], _BEHIND)}
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
