"""A worker process: `python -m tests.crash.worker <url> <token> <name> <module> [queue]`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from typing import Any

from orbit_sdk.worker import Worker


def main() -> None:
    url, token, name, module, *queues = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    handlers = importlib.import_module(module)
    more: dict[str, Any] = {"queues": tuple(queues)} if queues else {}
    more["grace_ms"] = int(os.environ.get("GRACE_MS", "1000"))
    worker = Worker(url, token, handlers, name=name, slots=32, backoff_ms=100, backoff_max_ms=500, **more)
    asyncio.run(worker.run())


if __name__ == "__main__":
    main()
