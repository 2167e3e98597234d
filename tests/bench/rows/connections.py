"""B9: many idle workers, one busy one: memory per connection, and how long a renewal takes under load."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import replace
from typing import Any

from orbit_sdk.client import OrbitClient
from tests.bench.flows import HOLD_QUEUE, hold
from tests.bench.machine import percentile, resident_kib
from tests.bench.rows.throughput import chains
from tests.bench.sizes import Size
from tests.bench.stage import Stage

Figures = dict[str, Any]


def idle_workers(built: Stage, size: Size) -> Figures:
    """The connections are held by a process of their own, which also renews one lease again and again."""
    before = resident_kib(built.server.pid)
    arguments = (built.server.url, built.server.token, str(size.connections), str(size.renewals))
    crowd = built.spawn("tests.bench.crowd", *arguments, stdout=subprocess.PIPE)
    assert crowd.stdout is not None
    assert crowd.stdout.readline() == b"connected\n"
    each = (resident_kib(built.server.pid) - before) / size.connections

    async def give_work(client: OrbitClient) -> None:
        await client.tasks.submit(
            {
                "queue": HOLD_QUEUE,
                "handler": hold.name,
                "handler_version": hold.version,
                "parameters": {"n": 1},
                "recovery": "IDEMPOTENT",
            }
        )

    built.run(give_work)
    renewals = b""
    load = replace(size, workflows=max(1, size.workflows // 4))
    while not renewals:
        chains(built, load, definition="bench.chain3", batch=size.batch)
        renewals = asyncio.run(_line(crowd))
    took = json.loads(renewals)
    return {
        "kib_per_connection": each,
        "p50_renewal_ms": percentile(took, 0.5),
        "p99_renewal_ms": percentile(took, 0.99),
    }


async def _line(process: subprocess.Popen[bytes]) -> bytes:
    """What the process has said meanwhile, or nothing."""
    import select

    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 0)
    return process.stdout.readline() if ready else b""
