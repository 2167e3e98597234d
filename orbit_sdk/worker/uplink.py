"""The thread that owns the socket. It renews leases, sends results and reconnects, whatever handlers do.

Its loop runs nothing of the user's. Other threads speak to it through `post` alone; it speaks to handlers
through the runner, whose methods return at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from orbit_sdk.errors import Code, OrbitError, PermissionDenied, Unauthenticated, error_of
from orbit_sdk.protocol.frames import pack
from orbit_sdk.protocol.worker import Hello
from orbit_sdk.worker.backoff import Backoff
from orbit_sdk.worker.clock import monotonic_ms
from orbit_sdk.worker.desk import Desk
from orbit_sdk.worker.events import DrainAsked, Event, HaltAsked
from orbit_sdk.worker.health import Health, serve_health
from orbit_sdk.worker.loops import new_loop
from orbit_sdk.worker.settings import WorkerSettings
from orbit_sdk.worker.socket import Disconnected, Rejected, Socket, open_socket

__all__ = ["Uplink"]

_LOG = logging.getLogger("orbit.worker")
_STABLE_MS = 5_000
_TICK_MS_MIN, _TICK_MS_MAX = 10, 500


class Uplink:
    """One thread, one loop, one connection at a time. `ended(error)` is called once, from the thread."""

    def __init__(
        self,
        settings: WorkerSettings,
        hello: Hello,
        desk: Desk,
        backoff: Backoff,
        ended: Callable[[BaseException | None], None],
        health: Callable[[], Health] | None = None,
    ) -> None:
        self._settings = settings
        self._hello = hello
        self._desk = desk
        self._backoff = backoff
        self._ended = ended
        self._health = health
        self.health_port: int | None = None
        self._inbox: deque[Event] = deque()
        self._taking = False
        self._loop = new_loop()
        self._wake = asyncio.Event()
        self._left = asyncio.Event()
        self._leave_by_ms: int | None = None
        self._thread = threading.Thread(target=self._main, name="orbit-uplink", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_s)

    def post(self, event: Event) -> None:
        """Tell the uplink something; from any thread, never blocks. After its end it tells nobody."""
        self._inbox.append(event)
        if not self._taking:
            self._taking = True
            with suppress(RuntimeError):  # the loop is closed: the worker has left
                self._loop.call_soon_threadsafe(self._take)

    # --- on the thread ---

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        error: BaseException | None = None
        try:
            self._loop.run_until_complete(self._run())
        except BaseException as raised:  # noqa: BLE001  # handed to whoever awaits the worker
            error = raised
        finally:
            with suppress(Exception):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._ended(error)

    def _take(self) -> None:
        self._taking = False
        at_ms = monotonic_ms()
        while self._inbox:
            event = self._inbox.popleft()
            if isinstance(event, DrainAsked):
                self._leave_by_ms = at_ms + self._settings.grace_ms
                self._desk.drain(at_ms)
            elif isinstance(event, HaltAsked):
                self._left.set()
            else:
                self._desk.take(event, at_ms)
        self._wake.set()

    async def _run(self) -> None:
        port = self._settings.health_port
        if port is None or self._health is None:
            await self._work()
            return
        server = await serve_health(self._health, self._settings.health_host, port)
        self.health_port = server.sockets[0].getsockname()[1]
        _LOG.info("health is told on port %d", self.health_port)
        try:
            await self._work()
        finally:
            server.close()

    async def _work(self) -> None:
        work = asyncio.ensure_future(self._keep_connected())
        keeper = asyncio.ensure_future(self._keep_time())
        left = asyncio.ensure_future(self._left.wait())
        tasks = (work, keeper, left)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_time(self) -> None:
        """Leases end, frames fall due and grace runs out on our own clock, connected or not."""
        while True:
            welcome = self._desk.welcome
            shortest = min(self._desk.held.lease_ms, welcome.heartbeat_ms if welcome else 30_000)
            await asyncio.sleep(max(_TICK_MS_MIN, min(_TICK_MS_MAX, shortest // 30)) / 1000)
            at_ms = monotonic_ms()
            stuck = len(self._desk.stuck)
            self._desk.expire(at_ms)
            if self._desk.due(at_ms) or len(self._desk.stuck) != stuck:
                self._wake.set()
            if self._desk.draining and self._grace_over(at_ms):
                return

    def _grace_over(self, at_ms: int) -> bool:
        if self._leave_by_ms is None or at_ms < self._leave_by_ms:
            return False
        if not self._desk.idle:
            _LOG.warning("grace is over; %d attempts are left to their leases", len(self._desk.held))
        return True

    async def _keep_connected(self) -> None:
        while not (self._desk.draining and self._desk.idle):
            since_ms = monotonic_ms()
            try:
                socket = await self._connect()
                since_ms = monotonic_ms()
                try:
                    await self._converse(socket)
                finally:
                    self._desk.link.close()
            except Disconnected as error:
                _LOG.warning("not connected: %s", error)
            if self._desk.draining and self._desk.idle:
                return
            self._stop_if_final()
            if self._desk.welcome is not None and monotonic_ms() - since_ms > _STABLE_MS:
                self._backoff.reset()
            await asyncio.sleep(self._backoff.next_ms() / 1000)

    async def _connect(self) -> Socket:
        settings = self._settings
        try:
            return await open_socket(settings.url, settings.current_token, settings.connect_timeout_ms)
        except Rejected as error:
            if error.status == 401:
                raise Unauthenticated(f"the server at {settings.url} does not accept this token") from None
            if error.status == 403:
                raise PermissionDenied(f"this token may not connect workers to {settings.url}") from None
            raise Disconnected(str(error)) from None

    async def _converse(self, socket: Socket) -> None:
        """One connection, from hello to its end."""
        greeting = self._desk.connected(self._hello, monotonic_ms())
        for frame in pack(greeting):
            await socket.send(frame)
        reader = asyncio.ensure_future(self._read(socket))
        writer = asyncio.ensure_future(self._write(socket))
        watcher = asyncio.ensure_future(self._watch())
        tasks = (reader, writer, watcher)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(Disconnected, Exception):
                await asyncio.wait_for(socket.close(), 1)
            socket.abort()
        for task in done:
            task.result()

    async def _read(self, socket: Socket) -> None:
        while self._desk.close is None:
            frame = await socket.receive()
            self._desk.receive(frame, monotonic_ms())
            self._stop_if_final()
            self._wake.set()

    async def _write(self, socket: Socket) -> None:
        while True:
            messages = self._desk.compose(monotonic_ms())
            for message in messages:
                for frame in pack(message):
                    await socket.send(frame)
            if self._desk.close is not None or (self._desk.draining and self._desk.idle):
                return
            if not messages:
                await self._wake.wait()
            self._wake.clear()

    async def _watch(self) -> None:
        """The server must be heard from; a socket that says nothing is as good as none."""
        while not self._desk.silent(monotonic_ms()):
            welcome = self._desk.welcome
            await asyncio.sleep((welcome.silence_ms if welcome else 20_000) / 20_000)
        raise Disconnected("the server has been silent for too long")

    def _stop_if_final(self) -> None:
        told = self._desk.final_error
        if told is not None:
            raise error_of(Code(told.code), told.message)
        welcome = self._desk.welcome
        if welcome is None or not welcome.refused:
            return
        queues = {item.name: item.reason for item in welcome.refused if item.kind == "QUEUE"}
        handlers = {item.name: item.reason for item in welcome.refused if item.kind == "HANDLER"}
        for kind, refused, asked in (
            ("queue", queues, len(self._hello.queues)),
            ("handler", handlers, len(self._hello.handlers)),
        ):
            if refused and len(refused) >= asked:
                named = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
                raise _all_refused(kind, named)


def _all_refused(kind: str, named: str) -> OrbitError:
    return PermissionDenied(f"the server refused every {kind} of this worker ({named})")
