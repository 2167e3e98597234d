"""Readers that are killed while results arrive: each result is heard, none after it was acknowledged.

`ORBIT_STORM_RESULTS` sets how many results there are (300 by default).
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import orbit_sdk as orbit
from orbit_sdk.client import OrbitClient
from orbit_sdk.worker import Worker
from tests.server import ROOT, server_process, until

RESULTS = int(os.environ.get("ORBIT_STORM_RESULTS", "300"))
READERS = 2
NAME = "results"


@orbit.handler("storm.run", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def run(ctx: orbit.TaskContext, number: int) -> int:
    return number


class Readers:
    """Processes that read one subscription and keep one book."""

    def __init__(self, url: str, token: str, book: Path) -> None:
        self.words = (url, token, NAME, str(book))
        self.book = book
        self.processes = [self.start() for _ in range(READERS)]

    def start(self) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-m", "tests.crash.reader", *self.words)
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)

    def size(self) -> int:
        return self.book.stat().st_size if self.book.exists() else 0

    def grew(self, before: int) -> bool:
        return self.size() > before + 200

    def kill(self, place: int) -> None:
        self.processes[place].kill()
        self.processes[place].wait()

    def replace(self, place: int) -> None:
        self.kill(place)
        self.processes[place] = self.start()


@contextmanager
def reading(url: str, token: str, book: Path) -> Generator[Readers]:
    readers = Readers(url, token, book)
    try:
        yield readers
    finally:
        for place in range(READERS):
            readers.kill(place)


@dataclass
class Heard:
    """What a book says: how often each task was heard, and what came although it had been acknowledged."""

    tasks: Counter[str] = field(default_factory=Counter)
    again: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, book: Path) -> Heard:
        found = cls()
        asked: dict[str, int] = {}
        done: dict[str, int] = {}
        for place, line in enumerate(book.read_text().splitlines()):
            reader, what, *words = line.split()
            if what == "pull":
                asked[reader] = place
            elif what == "done":
                done.update(dict.fromkeys(words, place))
            else:
                delivery, task_id = words
                found.tasks[task_id] += 1
                # One that was on its way to this reader when another acknowledged it is no fault.
                if done.get(delivery, place) < asked[reader]:
                    found.again.append(delivery)
        return found


async def submit(client: OrbitClient, numbers: range) -> list[str]:
    items = [
        {
            "queue": "storm",
            "handler": "storm.run",
            "handler_version": 1,
            "parameters": {"number": number},
            "recovery": "IDEMPOTENT",
            "idempotency_key": str(number),
        }
        for number in numbers
    ]
    done = await client.tasks.submit_batch(items)
    return [item.id or "" for item in done.items]


async def test_readers_that_are_killed_hear_every_result_and_none_after_its_acknowledgement(
    sqlite_url: str, tmp_path: Path
) -> None:
    chance = random.Random(11)
    chunk = max(60, RESULTS // 40)
    made: list[str] = []
    book = tmp_path / "book"
    with server_process(sqlite_url, tmp_path, "--loop-ms", "200") as server:
        async with OrbitClient(server.url, server.token) as client:
            await client.subscriptions.create(
                NAME, when_full="DROP_OLDEST", visibility_ms=1_000, filter={"states": ["SUCCEEDED"]}
            )
            worker = asyncio.create_task(Worker(server.url, server.token, [run], slots=32).run(signals=False))
            with reading(server.url, server.token, book) as readers:
                for first in range(0, RESULTS, chunk):
                    before = readers.size()
                    made += await submit(client, range(first, min(first + chunk, RESULTS)))
                    await until(partial(readers.grew, before), 60.0)
                    await asyncio.sleep(chance.random() / 20)
                    await asyncio.to_thread(readers.replace, chance.randrange(READERS))

                async def all_done() -> bool:
                    return (await client.subscriptions.get(NAME)).acknowledged == RESULTS

                await until(all_done, 600.0)
                figures = await client.subscriptions.get(NAME)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
    heard = Heard.of(book)
    assert set(heard.tasks) == set(made)
    assert len(made) == RESULTS
    assert not heard.again
    assert (figures.added, figures.backlog, figures.dropped, figures.expired) == (RESULTS, 0, 0, 0)
    print(f"{RESULTS} results, {sum(heard.tasks.values())} deliveries, {figures.redelivered} of them again")
