"""How answers of the table leave: as bytes that are ready, in two steps instead of three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

from hypercorn.typing import ASGISendCallable
from quart import Request
from quart.asgi import ASGIHTTPConnection


@dataclass(frozen=True, slots=True)
class Plain:
    """A finished answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class _Table(Protocol):
    async def answer(self, request: Request) -> Plain | None: ...


class PlainConnection(ASGIHTTPConnection):
    """Sends the answer of a row of the table by itself; leaves everything else to the framework."""

    async def handle_request(self, request: Request, send: ASGISendCallable) -> None:
        answer = await cast(_Table, self.app).answer(request)
        if answer is None:
            await super().handle_request(request, send)
            return
        start: Any = {"type": "http.response.start", "status": answer.status, "headers": list(answer.headers)}
        await send(start)
        body = b"" if request.method == "HEAD" else answer.body
        last: Any = {"type": "http.response.body", "body": body, "more_body": False}
        await send(last)
