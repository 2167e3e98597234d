"""The one file that knows the HTTP library."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import Any

import httpx

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
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            timeout=settings.timeout,
            verify=verify,
            limits=httpx.Limits(max_connections=200, max_keepalive_connections=200),
        )

    async def close(self) -> None:
        await self._http.aclose()

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
            response = await self._http.request(
                call.method,
                call.path,
                params=call.query(),
                content=content,
                headers=call.headers(self._token),
                timeout=call.timeout or self._settings.timeout,
            )
        except httpx.TransportError as error:
            raise _Away(
                Unavailable(f"the server cannot be reached: {str(error) or type(error).__name__}")
            ) from error
        try:
            return answer_of(response.status_code, response.content, response.headers.get("retry-after"))
        except OrbitError as error:
            if response.status_code in RETRIED_STATUS:
                doubtful = response.status_code == DOUBTFUL_STATUS and error.retry_after_ms is None
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
