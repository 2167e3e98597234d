"""A server process: listening, serving, and leaving in good order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from hypercorn.asyncio import serve as serve_http
from hypercorn.config import Config
from hypercorn.typing import Framework

from orbit_sdk.protocol.worker import FRAME_BYTES_MAX
from orbit_server.bootstrap.node import Parts, running
from orbit_server.clock import Clock
from orbit_server.platform.logs import configure_logging
from orbit_server.settings import Settings

log = logging.getLogger(__name__)

_EXIT_STUCK: Final = 75
_BACKLOG: Final = 1_024
_READ_TIMEOUT_S: Final = 120


async def serve(
    settings: Settings,
    *,
    started: Callable[[str], None] | None = None,
    stop: asyncio.Event | None = None,
    clock: Clock | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT (or until `stop` is set), then leave in good order.

    `started` is called with the address once requests are answered. Raises InvalidArgument or Unavailable
    when the server must not start.
    """
    settings.check_transport()
    stop = stop or asyncio.Event()
    _stop_on_signals(stop)
    async with running(settings, clock=clock) as parts:
        listening = _listen(settings)
        url = _url(settings, listening)
        finish = asyncio.Event()
        http = asyncio.create_task(
            serve_http(
                cast(Framework, parts.app), _hypercorn(settings, listening), shutdown_trigger=finish.wait
            )
        )
        ended = asyncio.create_task(stop.wait())
        log.info("listening", extra={"url": url, "node_id": parts.server.node_id})
        _settle_memory()
        if started is not None:
            started(url)
        await asyncio.wait({http, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        watchdog = _watchdog(settings.stop_limit_ms)
        try:
            await _leave(settings, parts, finish, http)
        finally:
            watchdog.cancel()
        if http.done() and not http.cancelled():
            http.result()
    log.info("stopped", extra={"node_id": parts.server.node_id})


def _settle_memory() -> None:
    """Nothing made so far goes away: the collector need not walk through it again, nor look so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def _leave(settings: Settings, parts: Parts, finish: asyncio.Event, http: asyncio.Task[None]) -> None:
    """Readiness red, stop claiming, finish what is in work, close the sockets, stop listening."""
    health, grace_s = parts.server.health, settings.stop_grace_ms / 1000
    health.draining = True
    parts.gateway.drain()
    parts.server.movements.release()
    if health.requests:
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await health.idle.wait()
    await parts.gateway.close(max(1, settings.stop_grace_ms))
    finish.set()
    done, _ = await asyncio.wait({http}, timeout=max(1.0, grace_s))
    if not done:
        http.cancel()
        await asyncio.wait({http})


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)


def _watchdog(limit_ms: int) -> threading.Timer:
    """A stop that hangs is a crash; crashes are safe, hanging is not."""
    timer = threading.Timer(limit_ms / 1000, _end_stuck)
    timer.daemon = True
    timer.start()
    return timer


def _end_stuck() -> None:
    log.critical("stopping took too long; the process ends itself")
    os._exit(_EXIT_STUCK)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _url(settings: Settings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls else 'http'}://{host}:{listening.getsockname()[1]}"


def _hypercorn(settings: Settings, listening: socket.socket) -> Config:
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.certfile = settings.certfile
    config.keyfile = settings.keyfile
    config.errorlog = cast(Any, logging.getLogger("hypercorn.error"))
    config.alpn_protocols = ["http/1.1"]
    config.include_server_header = False
    config.backlog = _BACKLOG
    config.keep_alive_timeout = 75.0
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 1.0
    # Longer than any silence of a client that is well: a long poll, or a worker between two heartbeats.
    config.read_timeout = int(max(_READ_TIMEOUT_S, 3 * settings.heartbeat_ms / 1000))
    config.websocket_max_message_size = FRAME_BYTES_MAX
    return config


def run(settings: Settings, *, started: Callable[[str], None] | None = None) -> None:
    """Be a server process: logs, the fastest event loop at hand, and `serve`."""
    configure_logging(settings.log_level)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(settings, started=started))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return None
    return uvloop.new_event_loop
