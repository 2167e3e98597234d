"""A worker process that may be killed: `python -m tests.crash.worker <url> <token> <name> [module]`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys

from orbit_sdk.worker import Worker


def main() -> None:
    url, token, name, *module = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    handlers = importlib.import_module(module[0] if module else "tests.crash.flows")
    worker = Worker(
        url, token, handlers, name=name, slots=8, backoff_ms=100, backoff_max_ms=500, grace_ms=1000
    )
    asyncio.run(worker.run())


if __name__ == "__main__":
    main()
