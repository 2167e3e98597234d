"""Idle workers, and one that holds a lease: `python -m tests.bench.crowd URL TOKEN CONNECTIONS RENEWALS`.

Prints `connected`, and when all renewals are answered their times in ms as a JSON list.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from typing import Any

import uvloop
from websockets.asyncio.client import ClientConnection, connect

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import decode, encode
from orbit_sdk.worker.settings import socket_url
from tests.bench.flows import HOLD_QUEUE, QUEUE, hold, noop

_RENEWAL_PAUSE_S = 0.02


class Member:
    """One connection: greets, says how much it takes, and gives signs of life."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.number = 0

    @classmethod
    async def join(cls, url: str, token: str, handler: Any, queue: str, slots: int) -> Member:
        headers = {"Authorization": f"Bearer {token}"}
        member = cls(
            await connect(
                socket_url(url), additional_headers=headers, ping_interval=None, compression=None,
                open_timeout=60,
            )
        )  # fmt: skip
        await member.send(
            wire.Hello(
                nonce=secrets.token_hex(16),
                worker="crowd",
                handlers=[
                    wire.HandlerOffer(
                        name=handler.name,
                        version=handler.version,
                        recovery=handler.recovery.value,
                        digest=handler.types_digest(),
                    )
                ],
                queues=[queue],
                slots=1,
            )
        )
        assert isinstance(await member.receive(), wire.Welcome)
        await member.send(wire.Ready(number=member.next(), slots=slots, seen=0))
        return member

    def next(self) -> int:
        self.number += 1
        return self.number

    async def send(self, message: wire.Message) -> None:
        await self.socket.send(encode(message))

    async def receive(self) -> object:
        return decode(await self.socket.recv(), "server")

    async def live(self) -> None:
        while True:
            await self.send(wire.Beat(number=self.next()))
            await self.receive()
            await asyncio.sleep(8)


async def _renew(member: Member, count: int) -> list[float]:
    while not isinstance(offer := await member.receive(), wire.Offer):
        pass
    claim = wire.Claim(attempt_id=offer.items[0].attempt_id, generation=offer.items[0].generation)
    took = []
    for _ in range(count):
        began = time.perf_counter()
        await member.send(wire.Renew(number=member.next(), items=[claim]))
        while not isinstance(await member.receive(), wire.Renewed):
            pass
        took.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(_RENEWAL_PAUSE_S)
    return took


async def main() -> None:
    url, token, connections, renewals = sys.argv[1:]
    members: list[Member] = []
    for first in range(0, int(connections), 50):
        some = min(50, int(connections) - first)
        members += await asyncio.gather(*[Member.join(url, token, noop, QUEUE, 0) for _ in range(some)])
    lives = [asyncio.ensure_future(member.live()) for member in members]
    busy = await Member.join(url, token, hold, HOLD_QUEUE, 1)
    print("connected", flush=True)
    print(json.dumps(await _renew(busy, int(renewals))), flush=True)
    await asyncio.gather(*lives)


if __name__ == "__main__":
    uvloop.run(main())
