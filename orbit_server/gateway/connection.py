"""The ends of a socket: Quart's connection with a bounded queue, and the few calls a session makes."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from hypercorn.typing import WebsocketScope
from quart import Quart, Websocket
from quart.asgi import ASGIWebsocketConnection

__all__ = ["BoundedWebsocketConnection", "FrameSocket", "QuartSocket", "SlowReader"]

# Frames that wait for the session. Beyond them hypercorn stops reading, and TCP tells the worker.
FRAMES_WAITING_MAX = 8


class BoundedWebsocketConnection(ASGIWebsocketConnection):
    """Set as `app.asgi_websocket_class`: the stock class queues whatever a client sends, without end."""

    def __init__(self, app: Quart, scope: WebsocketScope) -> None:
        super().__init__(app, scope)
        self.queue: asyncio.Queue[Any] = asyncio.Queue(FRAMES_WAITING_MAX)


class SlowReader(Exception):
    """The other end does not read what it is sent."""


class FrameSocket(Protocol):
    """What a session needs of a socket."""

    async def receive(self) -> object: ...

    async def send(self, frame: str) -> None: ...

    async def close(self, code: int, reason: str) -> None: ...


class QuartSocket:
    """A Quart websocket, called without its context lookups."""

    def __init__(self, websocket: Websocket) -> None:
        self._websocket = websocket

    async def receive(self) -> object:
        return await self._websocket.receive()

    async def send(self, frame: str) -> None:
        await self._websocket.send(frame)

    async def close(self, code: int, reason: str) -> None:
        await self._websocket.close(code, reason[:100])
