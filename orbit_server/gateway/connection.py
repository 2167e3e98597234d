"""The ends of a socket: Quart's connection with a bounded queue, and the few calls a session makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope
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

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        cast(dict[str, Any], self.scope)[_ABORT] = _abort_of(send)
        await super().__call__(receive, send)


_ABORT = "orbit.abort"
_LAYERS_MAX = 6


def _abort_of(send: object) -> Callable[[], None]:
    """What drops the connection under an ASGI `send`.

    ASGI can only close politely, and a peer that does not read never lets that goodbye leave: the connection
    would stay for as long as it likes. So look through the server's layers for the stream that they write to.
    """
    layer: object = send
    for _ in range(_LAYERS_MAX):
        owner = getattr(layer, "__self__", None)
        writer = getattr(owner, "writer", None)
        if isinstance(writer, asyncio.StreamWriter):
            return writer.transport.abort
        layer = getattr(owner, "send", None)
    return _nothing


def _nothing() -> None:
    """Another server: its own time-outs have to do."""


class SlowReader(Exception):
    """The other end does not read what it is sent."""


class FrameSocket(Protocol):
    """What a session needs of a socket."""

    async def receive(self) -> object: ...

    async def send(self, frame: str) -> None: ...

    async def close(self, code: int, reason: str) -> None: ...

    def abort(self) -> None: ...


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

    def abort(self) -> None:
        abort = cast(dict[str, Any], self._websocket.scope).get(_ABORT, _nothing)
        abort()
