"""The WebSocket of a worker: the only file that knows which library carries the frames."""

from __future__ import annotations

import logging

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException

from orbit_sdk.protocol.worker import FRAME_BYTES_MAX
from orbit_sdk.worker.settings import socket_url

__all__ = ["Disconnected", "Rejected", "Socket", "open_socket"]

# Frames that wait unread: beyond them the library stops reading, and TCP tells the server.
_FRAMES_WAITING_MAX = 16
_QUIET = logging.getLogger("orbit.worker.socket")
_QUIET.setLevel(logging.WARNING)


class Disconnected(Exception):
    """No connection (any more); another try may help."""


class Rejected(Exception):
    """The server answered the handshake with an HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}" if reason else f"HTTP {status}")
        self.status = status
        self.reason = reason


class Socket:
    """Text frames over one connection. Every method raises Disconnected once it is gone."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    async def send(self, frame: str) -> None:
        """Waits while the peer does not read."""
        try:
            await self._connection.send(frame)
        except ConnectionClosed as error:
            raise Disconnected(str(error)) from None

    async def receive(self) -> object:
        """The next frame, whatever it is."""
        try:
            return await self._connection.recv()
        except ConnectionClosed as error:
            raise Disconnected(str(error)) from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye and wait for it briefly; harmless when already closed."""
        await self._connection.close(code, reason[:100])

    def abort(self) -> None:
        """Drop the connection without a goodbye."""
        self._connection.transport.abort()


async def open_socket(url: str, token: str, timeout_ms: int) -> Socket:
    """Connect to the server at `url`. Raises Rejected or Disconnected."""
    try:
        connection = await connect(
            socket_url(url),
            additional_headers={"Authorization": f"Bearer {token}"},
            max_size=FRAME_BYTES_MAX,
            max_queue=_FRAMES_WAITING_MAX,
            open_timeout=timeout_ms / 1000,
            close_timeout=2,
            # The protocol has its own sign of life, and payloads are small: neither pings nor compression.
            ping_interval=None,
            compression=None,
            logger=_QUIET,
        )
    except InvalidStatus as error:
        body = error.response.body or b""
        raise Rejected(error.response.status_code, body[:500].decode(errors="replace")) from None
    except (OSError, TimeoutError, InvalidHandshake, WebSocketException) as error:
        raise Disconnected(f"{type(error).__name__}: {error}") from None
    return Socket(connection)
