"""A worker process of the benchmarks: `python -m tests.bench.worker URL TOKEN SLOTS`."""

from __future__ import annotations

import asyncio
import logging
import sys

from orbit_sdk.worker import Worker
from orbit_sdk.worker.loops import new_loop
from tests.bench.flows import HANDLERS


def main() -> None:
    logging.basicConfig(level=logging.WARNING)
    url, token, slots = sys.argv[1:]
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(Worker(url, token, HANDLERS, slots=int(slots), name="bench").run())


if __name__ == "__main__":
    main()
