"""Bytes to and from a server, for either client: connect, send all, receive some. Errors are OSErrors."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from dataclasses import dataclass

_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens. `tls` is None for a plain connection."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class AsyncStream:
    """One connection on the event loop. `timeout` of `connect` and `exchange` bounds them as a whole."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._until = 0.0

    @classmethod
    async def connect(cls, address: Address, until: float) -> AsyncStream:
        """Raises OSError (TimeoutError included)."""
        async with asyncio.timeout(until - time.monotonic()):
            return cls(
                *await asyncio.open_connection(address.host, address.port, ssl=address.tls, limit=_CHUNK)
            )

    @property
    def usable(self) -> bool:
        """Nothing arrived while it was idle, least of all its end."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def send(self, data: bytes, until: float) -> None:
        """Small requests leave at once; a peer that does not read holds up large ones."""
        self._until = until
        self._writer.write(data)
        if len(data) > _CHUNK:
            async with asyncio.timeout(until - time.monotonic()):
                await self._writer.drain()

    async def receive(self) -> bytes:
        """What has come, at least one byte; empty at the end. Raises OSError when the time is over."""
        async with asyncio.timeout(self._until - time.monotonic()):
            return await self._reader.read(_CHUNK)

    async def close(self) -> None:
        self._writer.transport.abort()


class SyncStream:
    """One connection that blocks its thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._until = 0.0

    @classmethod
    def connect(cls, address: Address, until: float) -> SyncStream:
        """Raises OSError (TimeoutError included)."""
        connection = socket.create_connection((address.host, address.port), _left(until))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.tls is not None:
                connection = address.tls.wrap_socket(connection, server_hostname=address.host)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    @property
    def usable(self) -> bool:
        """Nothing arrived while it was idle, least of all its end."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def send(self, data: bytes, until: float) -> None:
        self._until = until
        self._socket.settimeout(_left(until))
        self._socket.sendall(data)

    def receive(self) -> bytes:
        """What has come, at least one byte; empty at the end. Raises OSError when the time is over."""
        self._socket.settimeout(_left(self._until))
        return self._socket.recv(_CHUNK)

    def close(self) -> None:
        self._socket.close()


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time for this request is over")
    return left
