"""A worker process of the benchmarks: `python -m tests.bench.worker URL TOKEN SLOTS [QUEUE]`."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from orbit_sdk.worker import Worker
from orbit_sdk.worker.loops import new_loop
from tests.bench.flows import HANDLERS


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    url, token, slots, *queues = sys.argv[1:]
    more: dict[str, Any] = {"queues": queues} if queues else {}
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(Worker(url, token, HANDLERS, slots=int(slots), name="bench", **more).run())


if __name__ == "__main__":
    main()
