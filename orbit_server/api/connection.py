"""Requests of the route table on the wire: read as bytes, answered as bytes, without a framework between.

What no row serves (the worker socket, pages) goes the framework's way.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope
from quart.asgi import ASGIHTTPConnection

from orbit_sdk.errors import Detail, InvalidArgument, PayloadTooLarge
from orbit_server.api.routes import Route

_READ: Final = frozenset(
    {b"authorization", b"content-encoding", b"content-length", b"content-type", b"idempotency-key"}
)


@dataclass(frozen=True, slots=True)
class Plain:
    """A finished answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class Arrived:
    """A request as it came. Its body is read once, bounded in size and time."""

    __slots__ = ("_receive", "headers", "method", "query")

    def __init__(self, scope: HTTPScope, receive: ASGIReceiveCallable) -> None:
        self.method: str = scope["method"]
        self.query: bytes = scope["query_string"]
        self.headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            lower = name.lower()
            if lower in _READ:
                self.headers.setdefault(lower, []).append(value.decode("latin-1"))
        self._receive = receive

    def header(self, name: bytes) -> str:
        """The only value of a header, or an empty text. Raises InvalidArgument when it is given twice."""
        found = self.headers.get(name)
        if found is None:
            return ""
        if len(found) > 1:
            raise InvalidArgument.at(name.decode().title(), "is given twice")
        return found[0]

    async def body(self, most: int, timeout_s: float) -> bytes:
        """The whole body. Raises PayloadTooLarge above the bound, InvalidArgument when it does not come."""
        length = self.header(b"content-length")
        if length.isdigit() and int(length[:20]) > most:
            raise too_large(most)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._whole(most)
        except TimeoutError:
            raise InvalidArgument("the body did not arrive in time") from None

    async def gone(self) -> None:
        """Return when the caller has hung up. Only after the body was read (or when there is none)."""
        while True:
            message: Any = await self._receive()
            if message["type"] == "http.disconnect":
                return

    async def _whole(self, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message: Any = await self._receive()
            if message["type"] == "http.disconnect":
                raise InvalidArgument("the body was not sent to its end")
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > most:
                raise too_large(most)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(most: int) -> PayloadTooLarge:
    """The refusal of a body above its bound."""
    reason = f"is longer than {most} bytes"
    return PayloadTooLarge(f"the body {reason}", [Detail("$", reason)])


class Table(Protocol):
    """An application with rows of its own."""

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None: ...

    async def answer(self, arrived: Arrived, route: Route, texts: tuple[str, ...]) -> Plain: ...


class TableConnection(ASGIHTTPConnection):
    """Serves the rows of the table by itself; leaves everything else to the framework."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        table = cast(Table, self.app)
        found = table.find(self.scope["method"], self.scope["path"])
        if found is None:
            await super().__call__(receive, send)
            return
        arrived = Arrived(self.scope, receive)
        answer = await table.answer(arrived, *found)
        start: Any = {"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)}
        await send(start)
        body = b"" if arrived.method == "HEAD" else answer.body
        last: Any = {"type": "http.response.body", "body": body, "more_body": False}
        await send(last)
