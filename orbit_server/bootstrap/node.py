"""A node: every part of a server, built from its settings and wired together."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from orbit_sdk.engine.commands import EngineLimits
from orbit_sdk.errors import OrbitError
from orbit_server.api.app import OrbitApp, create_app
from orbit_server.api.arrivals import Arrivals
from orbit_server.api.metrics import describe
from orbit_server.api.server import Sample, Server
from orbit_server.api.waiting import Movements
from orbit_server.bootstrap.figures import LoopLag, check_samples, pulse_samples
from orbit_server.bulk import rows as bulk_rows
from orbit_server.bulk.commands import BulkDueAt
from orbit_server.clock import Clock, SystemClock, new_seed
from orbit_server.gateway import (
    BoundedWebsocketConnection,
    Gateway,
    GatewayParts,
    GatewaySettings,
    gateway_blueprint,
)
from orbit_server.loops.admissions import admissions
from orbit_server.loops.backlog import LastBacklog, backlog
from orbit_server.loops.bulks import bulks
from orbit_server.loops.checker import checker
from orbit_server.loops.checkpoints import checkpoints
from orbit_server.loops.deadlines import deadlines
from orbit_server.loops.due_steps import due_steps
from orbit_server.loops.due_tasks import due_tasks
from orbit_server.loops.fanout import FAMILIES, Interest, expiry, fanout
from orbit_server.loops.fanout import figures as fanout_figures
from orbit_server.loops.idle import idle
from orbit_server.loops.inbox import inbox
from orbit_server.loops.leases import leases
from orbit_server.loops.loop import Runners
from orbit_server.loops.nodes import Node, heartbeat, sign_off
from orbit_server.loops.retention import FAMILIES as PURGE_FAMILIES
from orbit_server.loops.retention import figures as purge_figures
from orbit_server.loops.retention import retention
from orbit_server.loops.schedules import ended_fires, schedules
from orbit_server.loops.signals import signals
from orbit_server.platform.audit import AUDIT
from orbit_server.platform.authenticator import Authenticator
from orbit_server.platform.credentials import CREDENTIALS, CredentialRevoked
from orbit_server.platform.hints import Hints
from orbit_server.platform.namespaces import (
    DEFAULT_NAMESPACE,
    DEVELOPMENT,
    NAMESPACES,
    PRODUCTION,
    EnsureNamespace,
    NamespaceRow,
)
from orbit_server.pulse.dispatch.dispatcher import Dispatcher
from orbit_server.pulse.keys.lines import KeyLines
from orbit_server.pulse.queues import rows as queue_rows
from orbit_server.pulse.tasks import rows as task_rows
from orbit_server.pulse.tasks.hints import InboxWritten, OfferWithdrawn, QueueChanged, TasksDueAt
from orbit_server.pulse.tasks.keys.operations import KeyRoom
from orbit_server.pulse.times import PulseTimes
from orbit_server.retention.keeping import of_server
from orbit_server.retention.sweep import Sweep
from orbit_server.schedules import rows as schedule_rows
from orbit_server.schedules.ends import EndedFires
from orbit_server.schedules.targets import Means
from orbit_server.schedules.turn import ScheduleDueAt
from orbit_server.settings import Settings
from orbit_server.storage.database import Database
from orbit_server.storage.events import EventsWritten
from orbit_server.storage.faults import Faults
from orbit_server.storage.kinds import Kind
from orbit_server.storage.settings import StorageSettings
from orbit_server.verify.checker import Checker
from orbit_server.weave.definitions import rows as definition_rows
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.service import companion_factory
from orbit_server.weave.state import rows as instance_rows
from orbit_server.weave.state import signals as signal_rows
from orbit_server.weave.state.apply import AdvancePending, InstanceMoved, StepsDueAt
from orbit_server.weave.state.running import Weave

__all__ = ["KINDS", "Parts", "open_database", "running"]

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
    *schedule_rows.KINDS,
    *bulk_rows.KINDS,
)
"""Every kind of row that commands may name."""

_DUE_TASKS_MS: Final = 200
_BACKLOG_MS: Final = 5_000
_EXIT_FATAL: Final = 70


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
) -> AsyncGenerator[Parts]:
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
        node = Node(new_seed(clock).nth(0), await database.now(), f"{settings.host}:{settings.port}")
        await dispatcher.limits.refresh(database)
        sweep, lines = Sweep(database, clock, of_server(settings)), KeyLines(clock.monotonic_us)
        secret, checks = _secret(namespace), Checker(database, settings.check_limit_ms)
        ground = _Ground(
            settings, clock, database, dispatcher, hints, times, node, secret, sweep, checks, lines
        )
        parts = _build(ground)
        listeners.append(lambda committed: _wake_inbox(parts.loops, committed))
        background = [asyncio.create_task(dispatcher.run()), asyncio.create_task(parts.gateway.run())]
        parts.loops.start()
        ground.lag.start()
        parts.server.health.ready = True
        try:
            yield parts
        finally:
            parts.server.health.ready = False
            ground.lag.stop()
            await parts.loops.stop()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await dispatcher.close()
            with suppress(OrbitError):
                await sign_off(database, node)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What the parts of a node stand on."""

    settings: Settings
    clock: Clock
    database: Database
    dispatcher: Dispatcher
    hints: Hints
    times: PulseTimes
    node: Node
    secret: bytes
    sweep: Sweep
    checks: Checker
    lines: KeyLines
    last_backlog: LastBacklog = field(default_factory=LastBacklog)
    lag: LoopLag = field(default_factory=LoopLag)


def _build(ground: _Ground) -> Parts:
    settings, clock, database, hints = ground.settings, ground.clock, ground.database, ground.hints
    limits = settings.limits
    weave = Weave(
        Catalog(database),
        EngineLimits(
            transitions=limits.advance_transitions,
            pending_signals=limits.unmatched_signals,
            granted_attempts=limits.granted_attempts,
            granted_rounds=limits.granted_rounds,
            granted_ms=limits.granted_ms,
            payload_bytes=limits.result_bytes,
            input_bytes=limits.input_bytes,
            output_bytes=limits.output_bytes,
        ),
    )
    authenticator = Authenticator(database, clock)
    gateway = _gateway(ground, weave, authenticator)
    interest = Interest()
    loops = _loops(ground, weave, interest)
    server = Server(
        settings=settings,
        clock=clock,
        database=database,
        authenticator=authenticator,
        weave=weave,
        hints=hints,
        movements=Movements(hints),
        limits=ground.dispatcher.limits,
        times=ground.times,
        arrivals=Arrivals(hints),
        node_id=ground.node.id,
        secret=ground.secret,
        figures=(
            lambda: _figures(loops, gateway),
            lambda: fanout_figures(interest),
            lambda: purge_figures(ground.sweep.figures),
            lambda: check_samples(ground.checks) if settings.check_every_ms else (),
            lambda: pulse_samples(ground.dispatcher.figures, ground.last_backlog, ground.lag),
        ),
    )
    hints.listen(StepsDueAt, lambda hint: loops["due_steps"].wake_at(hint.at))
    hints.listen(ScheduleDueAt, lambda hint: loops["schedules"].wake_at(hint.at))
    hints.listen(BulkDueAt, lambda hint: loops["bulks"].wake_at(hint.at))
    hints.listen(EndedFires, lambda _: loops["ended_fires"].wake())
    hints.listen(EventsWritten, lambda _: loops["fanout"].wake() if interest.subscriptions else None)
    hints.listen(TasksDueAt, lambda hint: loops["due_tasks"].wake_at(hint.at))
    hints.listen(KeyRoom, lambda _: loops["admissions"].wake())
    hints.listen(QueueChanged, lambda _: loops["admissions"].wake())
    hints.listen(OfferWithdrawn, gateway.withdraw)
    hints.listen(AdvancePending, lambda _: loops["checkpoints"].wake())
    hints.listen(CredentialRevoked, lambda hint: _revoked(authenticator, gateway, hint))
    app = create_app(server)
    app.asgi_websocket_class = BoundedWebsocketConnection
    app.register_blueprint(gateway_blueprint(gateway))
    return Parts(server, app, ground.dispatcher, gateway, loops)


def _gateway(ground: _Ground, weave: Weave, authenticator: Authenticator) -> Gateway:
    settings, clock = ground.settings, ground.clock
    companion = companion_factory(weave, lambda: new_seed(clock))
    return Gateway(
        GatewayParts(
            database=ground.database,
            dispatch=ground.dispatcher,
            authenticate=authenticator.authenticate,
            is_valid=authenticator.is_valid,
            clock=clock,
            node_id=ground.node.id,
            lines=ground.lines,
            companion_of=lambda task_id, workflow_id: companion(workflow_id, task_id),
            times=ground.times,
            settings=GatewaySettings(
                heartbeat_ms=settings.heartbeat_ms, silence_ms=settings.session_silence_ms
            ),
        )
    )


def _loops(ground: _Ground, weave: Weave, interest: Interest) -> Runners:
    settings, clock, database, times = ground.settings, ground.clock, ground.database, ground.times
    means = Means(weave, ground.dispatcher.limits.of_backlog)
    loops = [
        due_tasks(database, times, min(_DUE_TASKS_MS, settings.loop_ms)),
        leases(database, times, settings.loop_ms),
        deadlines(database, times, settings.loop_ms),
        admissions(database, ground.lines, settings.loop_ms),
        inbox(database, weave, clock, settings.loop_ms),
        due_steps(database, weave, clock, settings.loop_ms),
        checkpoints(database, weave, clock, settings.loop_ms),
        signals(database, weave, clock, settings.idle_loop_ms),
        schedules(database, means, clock, settings.loop_ms),
        ended_fires(database, means, clock, settings.loop_ms),
        bulks(database, weave, clock, settings.loop_ms),
        fanout(database, settings.loop_ms, interest, ground.hints.publish),
        expiry(database, settings.idle_loop_ms, interest),
        retention(ground.sweep, settings.purge_every_ms),
        heartbeat(database, ground.node, settings.idle_loop_ms),
        backlog(database, ground.last_backlog, max(_BACKLOG_MS, settings.idle_loop_ms)),
        idle(database, max(_BACKLOG_MS, settings.idle_loop_ms)),
    ]
    if settings.check_every_ms:
        loops.append(checker(ground.checks.bite, settings.check_every_ms))
    return Runners(loops, database, clock)


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
        ("orbit_worker_stuck_handlers", "gauge", "Handlers that go on although their attempts are over."),
        *FAMILIES,
        *PURGE_FAMILIES,
    )
)


def _figures(loops: Runners, gateway: Gateway) -> Iterable[Sample]:
    for runner in loops:
        labels = {"loop": runner.loop.name}
        for name in ("runs", "errors", "moved", "failed"):
            yield f"orbit_loop_{name}_total", labels, getattr(runner.figures, name)
    yield "orbit_worker_sessions", {}, len(gateway.sessions)
    yield "orbit_worker_stuck_handlers", {}, sum(one.stuck for one in tuple(gateway.sessions.values()))
