"""HTTP/1.1 over bytes: what a request looks like on the wire, and the answer in what comes back. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import h11

_HEAD_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole."""

    status: int
    content: bytes
    retry_after: str | None


class Exchanges:
    """The requests of one connection, one after another."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_MAX)
        self._status = 0
        self._retry_after: str | None = None
        self._parts: list[bytes] = []
        self.touched = False
        """Something of the answer to the present request has come."""

    def request(self, method: str, target: str, headers: Mapping[str, str], content: bytes | None) -> bytes:
        """The bytes of a request: the first of this connection, or the next after `reusable` was true."""
        self._status, self._retry_after, self._parts, self.touched = 0, None, [], False
        sent = [("host", self._host), *headers.items()]
        if content is not None:
            sent.append(("content-length", str(len(content))))
        data = self._h11.send(h11.Request(method=method, target=target, headers=sent)) or b""
        if content:
            data += self._h11.send(h11.Data(data=content)) or b""
        return data + (self._h11.send(h11.EndOfMessage()) or b"")

    def feed(self, data: bytes) -> Reply | None:
        """Take what came (empty: the end of the stream); the reply once it is whole.

        Raises h11.RemoteProtocolError for what is no HTTP, or ends too early.
        """
        self.touched = self.touched or bool(data)
        self._h11.receive_data(data)
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Response):
                self._status = event.status_code
                for name, value in event.headers:
                    if name == b"retry-after":
                        self._retry_after = value.decode("latin-1")
            elif isinstance(event, h11.Data):
                self._parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return Reply(self._status, b"".join(self._parts), self._retry_after)
            elif isinstance(event, h11.InformationalResponse):
                continue
            else:
                return None

    def reusable(self) -> bool:
        """Whether the connection can carry another request; makes it ready for one."""
        if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
            return False
        self._h11.start_next_cycle()
        return True


def target_of(base: str, path: str, query: Mapping[str, str]) -> str:
    """The target of a request line."""
    return f"{base}{path}?{urlencode(query)}" if query else f"{base}{path}"
