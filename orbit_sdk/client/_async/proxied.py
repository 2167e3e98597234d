"""Requests through a proxy, which is rare: an HTTP library does it, loaded only then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbit_sdk.client.http1 import Reply
from orbit_sdk.client.origin import Origin

if TYPE_CHECKING:
    import httpx


class AsyncProxied:
    """Sends requests through the origin's proxy."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._http: httpx.AsyncClient | None = None

    async def send(  # the parts of one request
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        timeout: float,  # noqa: ASYNC109  # the library keeps it
        safe: bool,  # noqa: ARG002  # the library repeats nothing
    ) -> Reply:
        """One exchange. Raises OSError."""
        import httpx

        origin = self._origin
        if self._http is None:
            verify = True if origin.address.tls is None else origin.address.tls
            self._http = httpx.AsyncClient(proxy=origin.proxy, verify=verify, trust_env=False)
        try:
            found = await self._http.request(
                method,
                f"{origin.scheme}://{origin.host}{target}",
                headers=dict(headers),
                content=content,
                timeout=timeout,
            )
        except httpx.TransportError as error:
            raise ConnectionError(str(error) or type(error).__name__) from error
        return Reply(found.status_code, found.content, found.headers.get("retry-after"))

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
