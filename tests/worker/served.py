"""A real gateway on a real port: Quart, Hypercorn, the dispatcher and a database."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart
from websockets.asyncio.client import ClientConnection, connect

from orbit_sdk.errors import Unauthenticated
from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import Fault, decode, encode
from orbit_sdk.values.ids import derive_id
from orbit_server.gateway import (
    BoundedWebsocketConnection,
    Gateway,
    GatewayParts,
    GatewaySettings,
    gateway_blueprint,
)
from orbit_server.platform.permissions import Names, Principal, SignalRights
from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.tasks.hints import OfferWithdrawn
from orbit_server.pulse.times import PulseTimes
from orbit_server.storage.migrations import migrate
from tests.storage.pulse.house import SPACE, House

EVERY = Names.of(["*"])
CONNECT = frozenset({"workers:connect"})


def principal(name: str, namespace_id: str = SPACE, consume: Names = EVERY, **more: Any) -> Principal:
    permissions = more.get("permissions", CONNECT)
    return Principal(
        derive_id("credential", name), namespace_id, name, permissions, EVERY, consume, SignalRights.of(())
    )


class Served(House):
    """A house with a front door."""

    def __init__(self, url: str, times: PulseTimes, **settings: Any) -> None:
        super().__init__(url, times)
        self.tokens = {
            "good": principal("good", consume=Names.of(["jobs", "work"])),
            "stranger": principal("stranger", derive_id("namespace", "elsewhere")),
            "reader": principal("reader", permissions=frozenset({"tasks:read"})),
        }
        self.revoked: set[str] = set()
        self.lines = KeyLines(self.clock.monotonic_us)
        self.gateway = Gateway(
            GatewayParts(
                database=self.database,
                dispatch=self.dispatcher,
                authenticate=self._authenticate,
                is_valid=self._is_valid,
                clock=self.clock,
                node_id="0" * 32,
                lines=self.lines,
                times=times,
                settings=GatewaySettings(**settings),
            )
        )
        self.address = ""

    def _on_commit(self, hints: Sequence[object]) -> None:
        super()._on_commit(hints)
        for hint in hints:
            if isinstance(hint, OfferWithdrawn):
                self.gateway.withdraw(hint)

    async def _authenticate(self, token: str) -> Principal:
        if token not in self.tokens:
            raise Unauthenticated("the token is unknown")
        return self.tokens[token]

    async def _is_valid(self, credential_id: str) -> bool:
        return credential_id not in self.revoked

    @property
    def http_url(self) -> str:
        return f"http://{self.address}"

    @asynccontextmanager
    async def connected(self, token: str = "good", *, buffer: int = 0) -> AsyncIterator[RawWorker]:
        """`buffer`: bytes that the machine keeps for a worker that does not read."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        address = f"ws://{self.address}/v1/worker"
        sock = socket.socket()
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        host, port = self.address.split(":")
        sock.connect((host, int(port)))
        options: dict[str, Any] = {
            "compression": None,
            "close_timeout": 1,
            "sock": sock,
            "ping_interval": None,
        }
        async with connect(address, additional_headers=headers, **options) as ws:
            yield RawWorker(ws)

    async def sessions_are(self, count: int) -> None:
        """Wait until so many sessions are left, their ends written down."""
        while len(self.gateway.sessions) != count:  # noqa: ASYNC110  # no event for every number
            await asyncio.sleep(0.005)


class RawWorker:
    """A worker without any library: it says what a test wants it to."""

    def __init__(self, ws: ClientConnection) -> None:
        self.ws = ws
        self.number = 0
        self.seen = 0

    async def say(self, message: wire.Message | str | bytes) -> None:
        await self.ws.send(message if isinstance(message, str | bytes) else encode(message))

    async def hear(self, *kinds: type[wire.Message]) -> Any:
        """The next message of these kinds; others are passed over."""
        while True:
            message = decode(await self.ws.recv(), "server")
            assert not isinstance(message, Fault), message
            if isinstance(message, wire.Offer):
                self.seen += len(message.items)
            if not kinds or isinstance(message, kinds):
                return message

    async def greet(
        self, *, nonce: str | None = None, recovery: str = "IDEMPOTENT", **more: Any
    ) -> wire.Welcome:
        fields: dict[str, Any] = {
            "worker": "raw",
            "handlers": [
                wire.HandlerOffer(name="work", version=1, recovery=recovery, digest="d" * 64, verify=False)  # type: ignore[arg-type]
            ],
            "queues": ["jobs"],
            "slots": 10,
            **more,
        }
        self.nonce = nonce or secrets.token_hex(16)
        await self.say(wire.Hello(nonce=self.nonce, **fields))
        welcome: wire.Welcome = await self.hear(wire.Welcome)
        return welcome

    async def ready(self, slots: int) -> int:
        self.number += 1
        await self.say(wire.Ready(number=self.number, slots=slots, seen=self.seen))
        return self.number

    async def offers(self, count: int) -> list[wire.OfferItem]:
        found: list[wire.OfferItem] = []
        while len(found) < count:
            found += (await self.hear(wire.Offer)).items
        return found

    async def result(
        self, offer: wire.OfferItem, outcome: Any = "SUCCEEDED", **more: Any
    ) -> wire.SettledItem:
        item = wire.ResultItem(
            attempt_id=offer.attempt_id,
            task_id=offer.task_id,
            generation=offer.generation,
            outcome=outcome,
            **more,
        )
        await self.say(wire.Result(items=[item]))
        settled: wire.SettledItem = (await self.hear(wire.Settled)).items[0]
        return settled

    async def closed(self) -> tuple[int, str]:
        """Read to the end; says code and reason."""
        await self.ws.wait_closed()
        return self.ws.close_code or 0, self.ws.close_reason or ""


def claim(offer: wire.OfferItem) -> wire.Claim:
    return wire.Claim(attempt_id=offer.attempt_id, generation=offer.generation)


def listed(offer: wire.OfferItem, state: Any = "RUNNING") -> wire.InFlight:
    return wire.InFlight(
        attempt_id=offer.attempt_id, task_id=offer.task_id, generation=offer.generation, state=state
    )


def dumped(value: Any) -> str:
    return json.dumps(value)


@asynccontextmanager
async def served(url: str, times: PulseTimes, **settings: Any) -> AsyncIterator[Served]:
    migrate(url)
    async with Served(url, times, **settings) as house:
        app = Quart(__name__)
        app.asgi_websocket_class = BoundedWebsocketConnection
        app.register_blueprint(gateway_blueprint(house.gateway))
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
        host, port = listener.getsockname()
        house.address = f"{host}:{port}"
        config = Config()
        config.bind = [f"fd://{listener.fileno()}"]
        config.websocket_max_message_size = wire.FRAME_BYTES_MAX
        config.errorlog = None
        stop = asyncio.Event()
        tasks = [
            asyncio.ensure_future(serve(app, config, shutdown_trigger=stop.wait)),
            asyncio.ensure_future(house.dispatcher.run()),
        ]
        try:
            yield house
        finally:
            await house.gateway.close()
            tasks[1].cancel()
            stop.set()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks)
            listener.close()
