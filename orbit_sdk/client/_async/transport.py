"""The one file that knows how HTTP is spoken: over our own connections, or through a proxy by a library."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

import h11

from orbit_sdk.client._async.connections import AsyncConnections
from orbit_sdk.client._async.proxied import AsyncProxied
from orbit_sdk.client.http1 import target_of
from orbit_sdk.client.origin import origin_of
from orbit_sdk.client.settings import ClientSettings
from orbit_sdk.client.wire import DOUBTFUL_STATUS, RETRIED_STATUS, Call, Patience, answer_of
from orbit_sdk.errors import OrbitError, Unavailable


class AsyncTransport:
    """Sends calls; while the server is away or busy, repeats those that are safe to, under the same key."""

    def __init__(
        self, url: str, token: str, settings: ClientSettings, verify: ssl.SSLContext | bool = True
    ) -> None:
        self._token = token
        self._settings = settings
        origin = origin_of(url, verify)
        self._base = origin.base
        self._http: AsyncConnections | AsyncProxied
        if origin.proxy is None:
            self._http = AsyncConnections(origin.address, origin.host)
        else:
            self._http = AsyncProxied(origin)

    async def close(self) -> None:
        await self._http.close()

    async def call(self, call: Call) -> Any:
        """The `data` of the answer. Raises the OrbitError of a refusal, Unavailable when nobody answers."""
        settings = self._settings
        patience = Patience(
            time.monotonic() + (settings.retry_for if call.safe else 0),
            settings.backoff,
            settings.max_backoff,
        )
        content = call.content()
        while True:
            try:
                return await self._once(call, content)
            except _Away as away:
                pause = patience.pause(away.retry_after_ms, doubtful=away.doubtful)
                if pause is None:
                    raise away.error from away.__cause__
                await asyncio.sleep(pause)

    async def _once(self, call: Call, content: bytes | None) -> Any:
        try:
            reply = await self._http.send(
                call.method,
                target_of(self._base, call.path, call.query()),
                call.headers(self._token),
                content,
                timeout=call.timeout or self._settings.timeout,
                safe=call.safe,
            )
        except (OSError, h11.RemoteProtocolError) as error:
            raise _Away(
                Unavailable(f"the server cannot be reached: {str(error) or type(error).__name__}")
            ) from error
        try:
            return answer_of(reply.status, reply.content, reply.retry_after)
        except OrbitError as error:
            if reply.status in RETRIED_STATUS:
                doubtful = reply.status == DOUBTFUL_STATUS and error.retry_after_ms is None
                raise _Away(error, error.retry_after_ms, doubtful=doubtful) from error
            raise


class _Away(Exception):
    """Nobody answered, or the answer was to come again later. `doubtful`: that may not help."""

    def __init__(
        self, error: OrbitError, retry_after_ms: int | None = None, *, doubtful: bool = False
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.retry_after_ms = retry_after_ms
        self.doubtful = doubtful
