"""A program that reads a subscription until it is killed, and keeps a book of what it saw.

    python -m tests.crash.reader URL TOKEN SUBSCRIPTION BOOK

Several may keep one book. Its lines, each with the process first: `pull` before events are asked for,
`deliver` with a delivery and its task, `done` with the deliveries that the server has answered are
acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import sys

from orbit_sdk.client import ClientSettings, OrbitClient

_BATCH = 25
_WORK_S = 0.002


async def main(url: str, token: str, name: str, book: str) -> None:
    """Read for ever."""
    lines = os.open(book, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*words: str) -> None:
        os.write(lines, " ".join((str(os.getpid()), *words, "\n")).encode())

    settings = ClientSettings(retry_for=120.0, backoff=0.05, max_backoff=0.5)
    async with OrbitClient(url, token, settings=settings) as client:
        while True:
            note("pull")
            pulled = await client.subscriptions.pull(name, limit=_BATCH, wait=5.0)
            for each in pulled.items:
                note("deliver", each.id, each.event.task_id or "")
                await asyncio.sleep(_WORK_S)
            ids = [each.id for each in pulled.items]
            if ids:
                await client.subscriptions.acknowledge(name, ids)
                note(*("done", *ids))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
