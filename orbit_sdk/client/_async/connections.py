"""Connections to one server, kept and used again: the one used last is next, and nothing is searched."""

from __future__ import annotations

import time
from collections.abc import Mapping

from orbit_sdk.client.http1 import Exchanges, Reply
from orbit_sdk.client.streams import Address, AsyncStream

_IDLE_S = 50.0
"""Kept for so long after its last answer: shorter than servers and proxies wait."""
_KEPT_MAX = 200


class AsyncConnections:
    """Sends requests to one address. Any number may be in work at one time."""

    def __init__(self, address: Address, host: str) -> None:
        self._address = address
        self._host = host
        self._idle: list[tuple[float, AsyncStream, Exchanges]] = []

    async def send(  # the parts of one request
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        timeout: float,  # noqa: ASYNC109  # of the whole exchange, connecting included
        safe: bool,
    ) -> Reply:
        """One exchange. Raises OSError or h11.RemoteProtocolError.

        A kept connection may have been closed at the other end just now: what is `safe` to repeat is then
        sent again on a new one.
        """
        until = time.monotonic() + timeout
        kept = await self._take()
        if kept is not None:
            stream, exchanges = kept
            try:
                return await self._exchange(stream, exchanges, (method, target, headers, content), until)
            except TimeoutError:
                raise
            except Exception:
                if exchanges.touched or not safe:
                    raise
        stream = await AsyncStream.connect(self._address, until)
        return await self._exchange(stream, Exchanges(self._host), (method, target, headers, content), until)

    async def _exchange(
        self,
        stream: AsyncStream,
        exchanges: Exchanges,
        request: tuple[str, str, Mapping[str, str], bytes | None],
        until: float,
    ) -> Reply:
        kept = False
        try:
            await stream.send(exchanges.request(*request), until)
            reply = None
            while reply is None:
                reply = exchanges.feed(await stream.receive())
            if exchanges.reusable() and len(self._idle) < _KEPT_MAX:
                self._idle.append((time.monotonic(), stream, exchanges))
                kept = True
            return reply
        finally:
            if not kept:
                await stream.close()

    async def _take(self) -> tuple[AsyncStream, Exchanges] | None:
        while self._idle:
            since, stream, exchanges = self._idle.pop()
            if stream.usable and time.monotonic() - since < _IDLE_S:
                return stream, exchanges
            await stream.close()
        return None

    async def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            await self._idle.pop()[1].close()
