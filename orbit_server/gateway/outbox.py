"""What waits to be sent to one worker: bounded, and small frames of one kind leave together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import pack
from orbit_sdk.protocol.worker import ITEMS_MAX, Message
from orbit_server.gateway.connection import FrameSocket, SlowReader

__all__ = ["Outbox"]

_MERGED = (wire.Offer, wire.Settled, wire.Lost, wire.Marked, wire.Cancel)


class Outbox:
    """A queue that never blocks its writers: what does not fit means that the reader is too slow."""

    def __init__(self, frames_max: int, bytes_max: int, send_ms: int) -> None:
        self._frames_max = frames_max
        self._bytes_max = bytes_max
        self._send_s = send_ms / 1000
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self.overrun = False

    def put(self, message: Message, size: int = 0) -> bool:
        """Queue a message; `size` is what its payloads weigh. False: the reader is too slow, not queued."""
        if self.overrun or len(self._waiting) >= self._frames_max or self._bytes + size > self._bytes_max:
            self.overrun = True
            self._wake.set()
            return False
        self._waiting.append(message)
        self._bytes += size
        self._wake.set()
        return True

    def unsent_offers(self) -> set[str]:
        """Attempts whose offers were never written to the socket; they are taken out."""
        unsent = {
            item.attempt_id for one in self._waiting if isinstance(one, wire.Offer) for item in one.items
        }
        self._waiting = deque(one for one in self._waiting if not isinstance(one, wire.Offer))
        return unsent

    async def drain_to(self, socket: FrameSocket) -> None:
        """Send what is queued, as it comes, until cancelled. Raises SlowReader."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.overrun:
                raise SlowReader("too much waits to be sent to this worker")
            for message in self._take():
                for frame in pack(message):
                    try:
                        async with asyncio.timeout(self._send_s):
                            await socket.send(frame)
                    except TimeoutError:
                        raise SlowReader("a frame could not be sent in time") from None
                if self.overrun:
                    raise SlowReader("too much waits to be sent to this worker")

    def _take(self) -> Iterator[Message]:
        """The next messages, one at a time: what is not taken counts as unsent."""
        while self._waiting:
            message = self._waiting.popleft()
            if isinstance(message, _MERGED):
                message = self._with_followers(message)
            if not self._waiting:
                self._bytes = 0
            yield message

    def _with_followers(self, message: Message) -> Message:
        items = list(getattr(message, "items", ()))
        merged = False
        while self._waiting and type(self._waiting[0]) is type(message):
            more = getattr(self._waiting[0], "items", ())
            if len(items) + len(more) > ITEMS_MAX:
                break
            items.extend(more)
            self._waiting.popleft()
            merged = True
        return message.model_copy(update={"items": items}) if merged else message
