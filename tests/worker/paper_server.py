"""A server of paper for tests of the worker: real sockets, the real link in its server role, no database.

It grants what it is asked for unless told otherwise, and remembers every frame.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.actions import Close, Deliver, Write
from orbit_sdk.protocol.frames import encode
from orbit_sdk.protocol.link import Link, Role
from orbit_sdk.worker.clock import monotonic_ms

TOKEN = "paper"


def new_id() -> str:
    return secrets.token_hex(16)


class PaperSession:
    """One connection of a worker."""

    def __init__(self, server: PaperServer, socket: ServerConnection) -> None:
        self.server = server
        self.socket = socket
        self.link = Link(Role.SERVER)
        self.hello: wire.Hello | None = None
        self.frames: list[Any] = []
        self.beats: list[wire.Beat] = []
        self.changed = asyncio.Condition()
        self.closed = asyncio.Event()

    async def send(self, message: wire.Message) -> None:
        for action in self.link.send(message, monotonic_ms()):
            assert isinstance(action, Write)
            await self.socket.send(encode(action.message))

    async def until(self, condition: Any) -> None:
        """Wait until `condition(self)` holds; asked again after each frame."""
        async with self.changed:
            await self.changed.wait_for(lambda: condition(self))

    async def room(self, slots: int = 1) -> None:
        await self.until(lambda me: me.link.credit.room() >= slots)

    async def offer(self, handler: str, parameters: Mapping[str, Any] | None = None, **more: Any) -> str:
        """Push one attempt of `name@1`; started and answering the latest ready unless told otherwise."""
        await self.room()
        item = self.item(handler, parameters, **more)
        await self.send(wire.Offer(items=[item]))
        return item.attempt_id

    def item(self, handler: str, parameters: Mapping[str, Any] | None = None, **more: Any) -> wire.OfferItem:
        started = more.pop("started", True)
        fields: dict[str, Any] = {
            "attempt_id": new_id(),
            "task_id": new_id(),
            "generation": 1,
            "attempt_no": 1,
            "queue": "jobs",
            "handler": handler,
            "handler_version": 1,
            "recovery": "IDEMPOTENT",
            "started": started,
            "ready": self.link.credit.number if started else None,
            "lease_ms": self.server.lease_ms,
            "limit_ms": 60_000,
            "parameters": dict(parameters or {}),
            "effect_key": "e-1",
        }
        return wire.OfferItem(**{**fields, **more})

    def abort(self) -> None:
        self.socket.transport.abort()

    async def run(self) -> None:
        try:
            async for data in self.socket:
                for action in self.link.receive_frame(data, monotonic_ms()):
                    await self._act(action)
                async with self.changed:
                    self.changed.notify_all()
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()

    async def _act(self, action: Any) -> None:
        if isinstance(action, Write):
            if isinstance(action.message, wire.Beat):
                self.beats.append(action.message)
            await self.socket.send(encode(action.message))
        elif isinstance(action, Close):
            await self.socket.close(action.code, action.fault.message[:100])
        elif isinstance(action, Deliver):
            self.frames.append(action.message)
            await self.server.on_message(self, action.message)


class PaperServer:
    """`renews`, `starts`, `settles` and `marks` say what it grants."""

    def __init__(self) -> None:
        self.lease_ms = 30_000
        self.heartbeat_ms = 5_000
        self.silence_ms = 60_000
        self.renews = True
        self.starts = True
        self.settles = True
        self.marks = "GRANTED"
        self.refused: list[wire.Refused] = []
        self.reconcile: dict[str, str] = {}
        self.sessions: list[PaperSession] = []
        self.results: dict[str, list[wire.ResultItem]] = defaultdict(list)
        self.renewed: dict[str, int] = defaultdict(int)
        self.changed = asyncio.Condition()
        self.url = ""

    async def session(self, number: int = 0) -> PaperSession:
        """The n-th session, once it is greeted."""
        await self.until(lambda: len(self.sessions) > number)
        return self.sessions[number]

    async def until(self, condition: Any) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)

    async def result(self, attempt_id: str, times: int = 1) -> wire.ResultItem:
        """The last result of an attempt, once it was reported `times` times."""
        await self.until(lambda: len(self.results[attempt_id]) >= times)
        return self.results[attempt_id][-1]

    async def on_message(self, session: PaperSession, message: Any) -> None:
        match message:
            case wire.Hello():
                session.hello = message
                await session.send(
                    wire.Welcome(
                        session_id=new_id(),
                        namespace="paper",
                        lease_ms=self.lease_ms,
                        heartbeat_ms=self.heartbeat_ms,
                        silence_ms=self.silence_ms,
                        refused=self.refused,
                        in_flight=[self._reconciled(item) for item in message.in_flight],
                    )
                )
                self.sessions.append(session)
            case wire.Start() if self.starts:
                granted = [
                    wire.Granted(attempt_id=item.attempt_id, lease_ms=self.lease_ms) for item in message.items
                ]
                await session.send(wire.Started(number=message.number, items=granted))
            case wire.Start():
                gone = [wire.Gone(attempt_id=item.attempt_id, reason="taken back") for item in message.items]
                await session.send(wire.Withdrawn(number=message.number, items=gone))
            case wire.Renew() if self.renews:
                for item in message.items:
                    self.renewed[item.attempt_id] += 1
                granted = [
                    wire.Granted(attempt_id=item.attempt_id, lease_ms=self.lease_ms) for item in message.items
                ]
                await session.send(wire.Renewed(number=message.number, items=granted))
            case wire.Mark():
                answers = [
                    wire.MarkAnswer(attempt_id=item.attempt_id, answer=self.marks) for item in message.items
                ]
                await session.send(wire.Marked(items=answers))
            case wire.Result():
                for item in message.items:
                    self.results[item.attempt_id].append(item)
                if self.settles:
                    settled = [
                        wire.SettledItem(attempt_id=item.attempt_id, answer="ACCEPTED")
                        for item in message.items
                    ]
                    await session.send(wire.Settled(items=settled))
        async with self.changed:
            self.changed.notify_all()

    def _reconciled(self, item: wire.InFlight) -> wire.Reconciled:
        answer: Any = self.reconcile.get(item.attempt_id, "CONTINUE")
        return wire.Reconciled(attempt_id=item.attempt_id, answer=answer, lease_ms=self.lease_ms)

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return connection.respond(HTTPStatus.UNAUTHORIZED, "unknown token")
        return None

    async def handle(self, socket: ServerConnection) -> None:
        await PaperSession(self, socket).run()

    async def listen(self, port: int = 0) -> Server:
        server = await serve(self.handle, "127.0.0.1", port, process_request=self.check, close_timeout=1)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server


@asynccontextmanager
async def paper_server() -> AsyncIterator[PaperServer]:
    paper = PaperServer()
    server = await paper.listen()
    try:
        yield paper
    finally:
        server.close()
        await server.wait_closed()
