"""Building a server from its settings, and its life from start to stop."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from hypercorn.asyncio import serve as serve_http
from hypercorn.config import Config
from hypercorn.typing import Framework

from orbit_sdk.engine.commands import EngineLimits
from orbit_sdk.protocol.worker import FRAME_BYTES_MAX
from orbit_server.api.app import OrbitApp, create_app
from orbit_server.api.metrics import describe
from orbit_server.api.server import Sample, Server
from orbit_server.api.waiting import Movements
from orbit_server.clock import Clock, SystemClock, new_seed
from orbit_server.gateway import (
    BoundedWebsocketConnection,
    Gateway,
    GatewayParts,
    GatewaySettings,
    gateway_blueprint,
)
from orbit_server.loops.checkpoints import checkpoints
from orbit_server.loops.deadlines import deadlines
from orbit_server.loops.due_steps import due_steps
from orbit_server.loops.due_tasks import due_tasks
from orbit_server.loops.inbox import inbox
from orbit_server.loops.leases import leases
from orbit_server.loops.loop import Runners
from orbit_server.loops.nodes import Node, heartbeat
from orbit_server.platform.audit import AUDIT
from orbit_server.platform.authenticator import Authenticator
from orbit_server.platform.credentials import CREDENTIALS, CredentialRevoked
from orbit_server.platform.hints import Hints
from orbit_server.platform.logs import configure_logging
from orbit_server.platform.namespaces import (
    DEFAULT_NAMESPACE,
    DEVELOPMENT,
    NAMESPACES,
    PRODUCTION,
    EnsureNamespace,
    NamespaceRow,
)
from orbit_server.pulse.dispatch.dispatcher import Dispatcher
from orbit_server.pulse.queues import rows as queue_rows
from orbit_server.pulse.tasks import rows as task_rows
from orbit_server.pulse.tasks.hints import InboxWritten
from orbit_server.pulse.times import PulseTimes
from orbit_server.settings import Settings
from orbit_server.storage.database import Database
from orbit_server.storage.faults import Faults
from orbit_server.storage.kinds import Kind
from orbit_server.storage.settings import StorageSettings
from orbit_server.weave.definitions import rows as definition_rows
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.instances import rows as instance_rows
from orbit_server.weave.instances.apply import AdvancePending, InstanceMoved, StepsDueAt
from orbit_server.weave.instances.running import Weave
from orbit_server.weave.service import companion_factory
from orbit_server.weave.signals import rows as signal_rows

__all__ = ["KINDS", "Parts", "Server", "create_app", "open_database", "run", "running", "serve"]

log = logging.getLogger(__name__)

KINDS: Final[tuple[Kind[Any], ...]] = (
    NAMESPACES,
    CREDENTIALS,
    AUDIT,
    *task_rows.KINDS,
    *queue_rows.KINDS,
    *definition_rows.KINDS,
    *instance_rows.KINDS,
    *signal_rows.KINDS,
)
"""Every kind of row that commands may name."""

_DUE_TASKS_MS: Final = 200
_EXIT_FATAL: Final = 70
_EXIT_STUCK: Final = 75


@dataclass(frozen=True, slots=True)
class Parts:
    """A running node: the server that requests see, and what runs beside it."""

    server: Server
    app: OrbitApp
    dispatcher: Dispatcher
    gateway: Gateway
    loops: Runners


def open_database(settings: Settings, clock: Clock | None = None) -> Database:
    """The database alone, without dispatching: for offline commands. Use it as an async context manager."""
    storage = StorageSettings(
        clock=clock or SystemClock(), queue_max=settings.queue_max, lanes=settings.lanes
    )
    return Database(settings.database, kinds=KINDS, settings=storage)


@asynccontextmanager
async def running(
    settings: Settings, *, clock: Clock | None = None, faults: Faults | None = None
) -> AsyncIterator[Parts]:
    """A node without a socket: everything that runs behind the HTTP interface, until the block ends.

    Raises Unavailable when the database or its schema is not fit.
    """
    clock = clock or SystemClock()
    hints = Hints()
    times = PulseTimes(
        lease_ms=settings.lease_ms,
        heartbeat_ms=settings.heartbeat_ms,
        session_silence_ms=settings.session_silence_ms,
        verify_within_ms=settings.verify_within_ms,
    )
    one_process = settings.database.startswith("sqlite:")
    dispatcher = Dispatcher(clock, times, cluster=not one_process)
    listeners: list[Callable[[Sequence[object]], None]] = [dispatcher.on_hints, hints.publish]
    storage = StorageSettings(
        clock=clock,
        queue_max=settings.queue_max,
        lanes=settings.lanes,
        lease_ms=settings.lease_ms,
        finalizers=(dispatcher.finalizer,),
        on_commit=lambda committed: _tell(listeners, committed),
        on_fatal=_end_process,
        faults=faults,
    )
    database = Database(settings.database, kinds=KINDS, settings=storage)
    dispatcher.attach(database)
    async with database:
        namespace = await database.committer.submit(
            EnsureNamespace(DEFAULT_NAMESPACE, DEVELOPMENT if settings.development else PRODUCTION)
        )
        parts = await _build(settings, clock, database, dispatcher, hints, times, namespace)
        listeners.append(lambda committed: _wake_inbox(parts.loops, committed))
        background = [asyncio.create_task(dispatcher.run()), asyncio.create_task(parts.gateway.run())]
        parts.loops.start()
        parts.server.health.ready = True
        try:
            yield parts
        finally:
            parts.server.health.ready = False
            await parts.loops.stop()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await dispatcher.close()


async def _build(
    settings: Settings,
    clock: Clock,
    database: Database,
    dispatcher: Dispatcher,
    hints: Hints,
    times: PulseTimes,
    namespace: NamespaceRow,
) -> Parts:
    limits = settings.limits
    weave = Weave(
        Catalog(database),
        EngineLimits(
            transitions=limits.advance_transitions,
            pending_signals=limits.unmatched_signals,
            payload_bytes=limits.result_bytes,
        ),
    )
    authenticator = Authenticator(database, clock)
    node = Node(new_seed(clock).nth(0), await database.now(), f"{settings.host}:{settings.port}")
    companion = companion_factory(weave, lambda: new_seed(clock))
    gateway = Gateway(
        GatewayParts(
            database=database,
            dispatch=dispatcher,
            authenticate=authenticator.authenticate,
            is_valid=authenticator.is_valid,
            clock=clock,
            node_id=node.id,
            companion_of=lambda task_id, workflow_id: companion(workflow_id, task_id),
            times=times,
            settings=GatewaySettings(
                heartbeat_ms=settings.heartbeat_ms, silence_ms=settings.session_silence_ms
            ),
        )
    )
    loops = Runners(
        [
            due_tasks(database, times, min(_DUE_TASKS_MS, settings.loop_ms)),
            leases(database, times, settings.loop_ms),
            deadlines(database, times, settings.loop_ms),
            inbox(database, weave, clock, settings.loop_ms),
            due_steps(database, weave, clock, settings.loop_ms),
            checkpoints(database, weave, clock, settings.loop_ms),
            heartbeat(database, node, settings.idle_loop_ms),
        ],
        database,
        clock,
    )
    server = Server(
        settings=settings,
        clock=clock,
        database=database,
        authenticator=authenticator,
        weave=weave,
        hints=hints,
        movements=Movements(hints),
        node_id=node.id,
        secret=_secret(namespace),
        figures=(lambda: _figures(loops, gateway),),
    )
    hints.listen(StepsDueAt, lambda hint: loops["due_steps"].wake_at(hint.at))
    hints.listen(AdvancePending, lambda _: loops["checkpoints"].wake())
    hints.listen(CredentialRevoked, lambda hint: _revoked(authenticator, gateway, hint))
    app = create_app(server)
    app.asgi_websocket_class = BoundedWebsocketConnection
    app.register_blueprint(gateway_blueprint(gateway))
    return Parts(server, app, dispatcher, gateway, loops)


def _secret(namespace: NamespaceRow) -> bytes:
    """The same for every node of a database, another one for every database."""
    return hashlib.sha256(f"cursors {namespace.id} {namespace.created_at}".encode()).digest()


def _tell(listeners: Iterable[Callable[[Sequence[object]], None]], hints: Sequence[object]) -> None:
    for listener in listeners:
        try:
            listener(hints)
        except Exception:
            log.exception("a listener of commits failed")


def _wake_inbox(loops: Runners, hints: Sequence[object]) -> None:
    """A result whose workflow did not move in the same transaction waits for the loop."""
    written = {hint.instance_id for hint in hints if isinstance(hint, InboxWritten)}
    if written and written - {hint.instance_id for hint in hints if isinstance(hint, InstanceMoved)}:
        loops["inbox"].wake()


def _revoked(authenticator: Authenticator, gateway: Gateway, hint: CredentialRevoked) -> None:
    authenticator.forget(hint.credential_id)
    gateway.revoke(hint.credential_id)


def _end_process(reason: str) -> None:
    """Durability is no longer certain: nothing in memory may be trusted, so nothing is tidied up."""
    log.critical("the process ends itself: %s", reason)
    os._exit(_EXIT_FATAL)


describe(
    (
        ("orbit_loop_runs_total", "counter", "Runs of a background loop."),
        ("orbit_loop_errors_total", "counter", "Runs that failed as a whole."),
        ("orbit_loop_moved_total", "counter", "Rows that a loop moved."),
        ("orbit_loop_failed_total", "counter", "Rows that a loop could not move."),
        ("orbit_worker_sessions", "gauge", "Workers connected to this node."),
    )
)


def _figures(loops: Runners, gateway: Gateway) -> Iterable[Sample]:
    for runner in loops:
        labels = {"loop": runner.loop.name}
        for name in ("runs", "errors", "moved", "failed"):
            yield f"orbit_loop_{name}_total", labels, getattr(runner.figures, name)
    yield "orbit_worker_sessions", {}, len(gateway.sessions)


# --- a process ---------------------------------------------------------------------------------------------


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


async def _leave(settings: Settings, parts: Parts, finish: asyncio.Event, http: asyncio.Task[None]) -> None:
    """Readiness red, stop claiming, finish what is in work, close the sockets, stop listening."""
    health, grace_s = parts.server.health, settings.stop_grace_ms / 1000
    health.draining = True
    parts.gateway.drain()
    parts.server.movements.release()
    with suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            while health.requests:
                await asyncio.sleep(0.01)
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
    config.backlog = 1_024
    config.keep_alive_timeout = 75.0
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 1.0
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
