"""The example of an external job on real processes, stopped at its steps: paused, cancelled, its worker or
its server killed. Each stop ends as it must, and the channel takes each job at most once.

`ORBIT_STOPS=all` stops it in every way at every step; otherwise a handful of stops is tried.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from examples.external_job.channel import Books, Desk
from examples.external_job.flow import REVIEW, Job, Review, external_job
from orbit_sdk.client import Handle, OrbitClient
from orbit_sdk.errors import FailedPrecondition
from tests.crash.house import House, house
from tests.server import until

STEPS: Final = ("validate", "review", "prepare", "submit", "status", "report_gaps")
WAYS: Final = ("pause", "cancel", "kill the worker", "kill the server")
HANDFUL: Final = (
    ("pause", "prepare"),
    ("kill the worker", "submit"),
    ("kill the server", "status"),
)
EVERY: Final = tuple((way, step) for step in STEPS for way in WAYS)
STOPS: Final = EVERY if os.environ.get("ORBIT_STOPS") == "all" else HANDFUL
ENDED: Final = ("SUCCEEDED", "CANCELLED", "FAILED")


class CountingBooks(Books):
    """The channel forgives a repeated call; here each one is counted."""

    def __init__(self) -> None:
        super().__init__(work_seconds=0.2, hold_first=0)
        self.calls_of: Counter[str] = Counter()
        self.cut_first = False

    def accept(self, key: str, generation: int) -> tuple[str | None, bool]:
        with self.lock:
            self.calls_of[key] += 1
        return super().accept(key, generation)


class OwnDesk(Desk):
    """A desk whose line may be cut before it hears of a job."""

    books: CountingBooks

    def _accept(self, body: dict[str, Any]) -> None:
        cut, self.books.cut_first = self.books.cut_first, False
        if cut:
            self.close_connection = True
        else:
            super()._accept(body)


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingBooks]:
    """The channel, in this process: it survives everything."""
    kept = CountingBooks()
    monkeypatch.delenv("ORBIT_URL", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("TestDesk", (OwnDesk,), {"books": kept}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("CHANNEL_URL", f"http://127.0.0.1:{server.server_address[1]}")
    yield kept
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def at(database_url: str, tmp_path: Path, books: CountingBooks) -> Iterator[House]:
    with house(database_url, tmp_path) as built:
        built.server()
        built.worker(module="examples.external_job.flow")
        yield built


class Stop:
    """One job and what is done to it."""

    def __init__(self, at: House, client: OrbitClient, books: CountingBooks, way: str, step: str) -> None:
        self.at, self.client, self.books = at, client, books
        self.way, self.step = way, step
        self.name = f"{way} at {step}".replace(" ", "-")

    async def run(self) -> None:
        job = Job(job_id=self.name, source="orders.csv", requested_by="ada")
        if self.way == "kill the worker" and self.step == "submit":
            self.books.hold_first = 20  # its worker dies with the effect done and the answer on its way
        handle = await self.client.start(external_job, job, idempotency_key=self.name)
        if self.step != "validate":
            await until(lambda: self._reached(handle, "review"))
        if self.step not in ("validate", "review"):
            await self._approve(handle)
        await until(lambda: self._reached(handle, self.step))
        try:
            await self._stop(handle)
        except FailedPrecondition:  # it was quicker, and has ended
            assert (await handle.get()).state == "SUCCEEDED"
            self.way = "none"
        await until(lambda: self.led_to_its_end(handle), 60)
        await self.judge(handle)

    async def _reached(self, handle: Handle[Any], step: str) -> bool:
        if self.books.hold_first and step == "submit":
            return False  # the channel has not been called yet
        found = {item.key for item in (await handle.steps()).items if item.state != "PENDING"}
        return step in found

    async def _approve(self, handle: Handle[Any]) -> None:
        body = Review(approved=True, comment="looks right")
        await handle.send(REVIEW, body, match=self.name, idempotency_key="approval")

    async def _stop(self, handle: Handle[Any]) -> None:
        match self.way:
            case "pause":
                await handle.pause(reason="a test")
                await self._nothing_begins(handle)
                await handle.resume(reason="a test")
            case "cancel":
                await handle.cancel(reason="a test")
            case "kill the worker":
                await asyncio.to_thread(self.at.workers[0].kill)
                self.at.workers[0].start()
            case _:
                await asyncio.to_thread(self.at.servers[0].kill)
                await asyncio.to_thread(self.at.servers[0].restart)

    async def _nothing_begins(self, handle: Handle[Any]) -> None:
        before = (await handle.get()).revision
        paused_at = {item.key: item.revision for item in (await handle.steps()).items}
        await asyncio.sleep(0.3)  # time in which a worker would start something
        opened = {item.key for item in (await handle.steps()).items} - set(paused_at)
        assert not opened, f"{opened} began during the pause (from revision {before})"

    async def led_to_its_end(self, handle: Handle[Any]) -> bool:
        """People do what they are asked: they approve, and conclude what nobody else knows."""
        shown = await handle.get()
        if shown.state in ENDED:
            return True
        steps = {item.key: item for item in (await handle.steps()).items}
        if shown.state == "WAITING" and "review" in steps and steps["review"].state == "WAITING_SIGNAL":
            await self._approve(handle)
        return False

    async def judge(self, handle: Handle[Any]) -> None:
        shown = await handle.get()
        keys = self.at.rows(
            "SELECT DISTINCT s.effect_key FROM task_specs s JOIN tasks t ON t.id = s.task_id"
            " WHERE t.instance_id = :i AND t.step_key = 'submit'",
            i=handle.id,
        )
        effects = [self.books.calls_of[key] for (key,) in keys]
        if self.way == "cancel":
            assert shown.state == "CANCELLED", (self.name, shown)
            assert effects in ([], [0], [1]), self.name
        else:
            assert shown.state == "SUCCEEDED", (self.name, shown)
            assert effects == [1], self.name


@pytest.mark.timeout(900)
async def test_the_external_job_survives_every_stop(at: House, books: CountingBooks) -> None:
    async with at.client() as client:
        await client.definitions.publish(external_job.compile().definition.to_json(), current=True)
        for way, step in STOPS:
            await Stop(at, client, books, way, step).run()
    at.check()


async def test_a_submission_that_never_arrived_is_asked_about_and_made_again(
    at: House, books: CountingBooks
) -> None:
    books.cut_first = True
    async with at.client() as client:
        await client.definitions.publish(external_job.compile().definition.to_json(), current=True)
        stop = Stop(at, client, books, "none", "never")
        job = Job(job_id=stop.name, source="orders.csv", requested_by="ada")
        handle = await client.start(external_job, job, idempotency_key=stop.name)
        await until(lambda: stop.led_to_its_end(handle), 60)
        await stop.judge(handle)
    assert not books.cut_first
    at.check()
