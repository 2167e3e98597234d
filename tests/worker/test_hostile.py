"""Hostile workers beside an honest one: nothing that they send changes what the honest one does.

They hold a good token and know the ids of the honest worker's attempts. `ORBIT_STORM_FRAMES` sets how many
frames they send (800 by default).
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import select
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

import orbit_sdk.handlers as orbit
from orbit_sdk.handlers import Recovery, TaskContext
from orbit_sdk.protocol import worker as wire
from orbit_sdk.worker import Worker
from orbit_server.pulse.tasks.lifecycle import Recovery as TaskRecovery
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.tables import attempts
from tests.worker.served import Served, served

FRAMES = int(os.environ.get("ORBIT_STORM_FRAMES", "800"))
ATTACKERS = 4
RAN: list[int] = []


@orbit.handler("work", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT)
async def work(ctx: TaskContext, n: int) -> int:
    await asyncio.sleep(0.02)
    RAN.append(n)
    return n


@orbit.handler("careful", version=1, queue="jobs", recovery=Recovery.MARKED)
async def careful(ctx: TaskContext, n: int) -> int:
    await ctx.begin_effect()
    await asyncio.sleep(0.02)
    RAN.append(n)
    return n


@pytest.fixture
async def house(sqlite_url: str) -> AsyncIterator[Served]:
    settings: dict[str, Any] = {"send_ms": 300, "bytes_waiting_max": 256 * 1024, "frames_waiting_max": 64}
    async with served(sqlite_url, PulseTimes(), **settings) as one:
        yield one


class Attacker:
    """One way after the other of being no good worker; what comes next follows from the seed."""

    def __init__(self, house: Served, seed: int) -> None:
        self.house = house
        self.chance = random.Random(seed)
        self.sent = 0
        self.known: list[tuple[str, str, int]] = []
        """Attempts of others: attempt, task, generation."""

    async def run(self, frames: int) -> None:
        ways: list[Callable[[], Any]] = [
            self.speak, self.speak, self.speak, self.speak, self.babble, self.inflate, self.never_read,
        ]  # fmt: skip
        while self.sent < frames:
            await self.look_around()
            with suppress(WebSocketException, OSError, EOFError):
                async with asyncio.timeout(20):
                    await self.chance.choice(ways)()

    async def look_around(self) -> None:
        columns = attempts.c.id, attempts.c.task_id, attempts.c.generation
        query = select(*columns).where(attempts.c.state != "CLOSED").limit(20)
        rows = await self.house.database.read(lambda conn: conn.execute(query).all())
        self.known = [(row.id, row.task_id, row.generation) for row in rows] or self.known

    # --- ways ---

    async def speak(self) -> None:
        """Frames of every kind about attempts of others, whole and broken, once and again."""
        async with self.house.connected() as worker:
            if self.chance.random() < 0.9:
                await worker.greet(queues=["work"])
            for _ in range(self.chance.randrange(1, 60)):
                frame = self.broken(json.dumps(self.message()))
                for _ in range(self.chance.choice([1, 1, 1, 5])):
                    self.sent += 1
                    await worker.say(frame)

    async def babble(self) -> None:
        """Bytes that are no frames, or frames that no client may send."""
        host, port = self.house.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET /v1/worker HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer good\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        starts = [
            b"\x81\xff" + b"\xff" * 8,
            b"\x81\x05hello",
            b"\xf1\x80",
            b"\x01\x80",
            b"\x89\xfe\xff\xff",
            b"",
        ]
        for _ in range(5):
            self.sent += 1
            writer.write(self.chance.choice(starts) + self.chance.randbytes(self.chance.randrange(200)))
        with suppress(ConnectionError):
            await writer.drain()
        writer.transport.abort()

    async def inflate(self) -> None:
        """A frame that is small on the wire and large behind it."""
        headers = {"Authorization": "Bearer good"}
        address = f"ws://{self.house.address}/v1/worker"
        async with connect(address, additional_headers=headers, compression="deflate") as ws:
            self.sent += 1
            await ws.send('{"type":"drain","reason":"' + "x" * (self.chance.choice([1, 16]) * 1024 * 1024))
            await ws.recv()

    async def never_read(self) -> None:
        """Questions whose answers are not read."""
        async with self.house.connected(buffer=4_096) as worker:
            await worker.greet(queues=["work"])
            worker.ws.transport.pause_reading()
            ids = [secrets.token_hex(16) for _ in range(200)]
            for number in range(30):
                self.sent += 1
                claims = [{"attempt_id": one, "generation": 1} for one in ids]
                await worker.say(json.dumps({"type": "renew", "number": number, "items": claims}))
            worker.ws.transport.abort()

    # --- frames ---

    def message(self) -> dict[str, Any]:
        """A message that is well-formed as such."""
        chance = self.chance
        attempt, task, generation = chance.choice(self.known or [("f" * 32, "e" * 32, 1)])
        claim = {"attempt_id": attempt, "generation": generation + chance.choice([0, 0, 1, -1])}
        number = chance.choice([0, 1, chance.randrange(2**53)])
        outcome = chance.choice(["SUCCEEDED", "FINAL", "HAND_BACK", "DISCARDED", "HAPPENED", "CANCELLED"])
        result = {**claim, "task_id": task, "outcome": outcome, "result": chance.random()}
        kinds: list[dict[str, Any]] = [
            {"type": "renew", "number": number, "items": [claim] * chance.randrange(1, 300)},
            {"type": "start", "number": number, "items": [claim]},
            {"type": "mark", "items": [claim]},
            {
                "type": "progress",
                "number": number,
                "items": [{**claim, "value": "x" * chance.randrange(6_000)}],
            },
            {"type": "result", "items": [result] * chance.randrange(1, 4)},
            {"type": "ready", "number": number, "slots": 1, "seen": 0},
            {"type": "beat", "number": number, "stuck": number},
            {"type": "error", "code": "INTERNAL", "message": "you!", "fatal": True},
            {
                "type": "hello",
                "nonce": secrets.token_hex(16),
                "worker": "w",
                "handlers": [],
                "queues": [],
                "slots": 1,
            },
            {"type": "offer", "items": [claim]},
            {"type": "drain"},
        ]
        return chance.choice(kinds)

    def broken(self, frame: str) -> str | bytes:
        """The frame as it is, or cut, stretched, doubled, with another letter, too large, or binary."""
        chance = self.chance
        place = chance.randrange(len(frame))
        letter = chr(chance.choice([chance.randrange(32, 127), 0, 0x2028, 0x1F600]))
        return chance.choice(
            [
                frame,
                frame,
                frame,
                frame[:place],
                frame[:place] + letter + frame[place + 1 :],
                frame + frame,
                frame.replace(":", ":" + "[" * chance.randrange(1, 3_000), 1),
                frame.replace("1", str(10 ** chance.randrange(1, 400)), 1),
                frame.encode(),
                chance.randbytes(50),
                frame + " " * (wire.FRAME_BYTES_MAX if chance.random() < 0.1 else 10),
            ]
        )


@pytest.mark.timeout(60 + FRAMES // 50)
async def test_whatever_hostile_workers_send_the_honest_one_does_its_tasks_once(house: Served) -> None:
    RAN.clear()
    worker = Worker(house.http_url, "good", [work, careful], slots=8)
    run = asyncio.ensure_future(worker.run(signals=False))
    attackers = [Attacker(house, seed) for seed in range(ATTACKERS)]
    storm = asyncio.gather(*(one.run(FRAMES // ATTACKERS) for one in attackers))
    ids: list[str] = []
    while not storm.done():
        for handler, level in (("work", TaskRecovery.IDEMPOTENT), ("careful", TaskRecovery.MARKED)):
            ids.append(await house.submit(handler=handler, recovery=level, parameters={"n": len(ids)}))
        await asyncio.sleep(0.05)
    await storm
    for task_id in ids:
        while (await house.task(task_id)).state is not TaskState.SUCCEEDED:  # noqa: ASYNC110  # nothing tells of one task
            await asyncio.sleep(0.01)
        assert [one.worker for one in await house.attempts(task_id)] == [worker.settings.name]
    assert sorted(RAN) == list(range(len(ids)))
    assert sum(one.sent for one in attackers) >= FRAMES
    worker.stop()
    assert (await run).clean
    await asyncio.wait_for(house.sessions_are(0), 30)
    await house.sound()
