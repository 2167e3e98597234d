"""`Worker`: connects handlers to a server and runs what it offers.

    worker = Worker("http://127.0.0.1:8700", token, [prepare, submit])
    await worker.run()

`async def` handlers run on the loop that awaits `run`, `def` handlers in threads, the socket in a thread of
its own. SIGTERM or SIGINT ends the worker gracefully; a second one ends it at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any, TypeAlias

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers import Handler, Registry
from orbit_sdk.protocol.worker import HandlerOffer, Hello
from orbit_sdk.values.json_strict import Json
from orbit_sdk.worker.backoff import Backoff
from orbit_sdk.worker.clock import monotonic_ms
from orbit_sdk.worker.context import Wires
from orbit_sdk.worker.desk import Desk
from orbit_sdk.worker.events import DrainAsked, Ended, HaltAsked, MarkAsked, Progressed
from orbit_sdk.worker.health import Health
from orbit_sdk.worker.report import Figures, WorkerReport
from orbit_sdk.worker.runner import Runner
from orbit_sdk.worker.settings import WorkerSettings
from orbit_sdk.worker.uplink import Uplink
from orbit_sdk.worker.ways import Way, Ways

__all__ = ["Worker"]

AnyHandler: TypeAlias = Handler[..., Any]
_LOG = logging.getLogger("orbit.worker")


class Worker:
    """One worker process's connection to a server.

    `handlers`: single handlers, modules or iterables of them. `queues` defaults to the handlers' own. See
    `WorkerSettings` for the rest. Raises InvalidArgument when there is nothing to run.
    """

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        handlers: ModuleType | AnyHandler | Iterable[AnyHandler],
        **options: Any,
    ) -> None:
        registry = Registry.of(handlers)
        if not registry:
            raise InvalidArgument.at("handlers", "is empty: there is nothing to run")
        options.setdefault("queues", tuple(sorted(registry.queues())))
        self.settings = WorkerSettings(url=url, token=token, **options)
        self._registry: Mapping[str, AnyHandler] = registry
        self._nonce = secrets.token_hex(16)
        self._uplink: Uplink | None = None
        self._desk: Desk | None = None
        self._draining = False

    @property
    def hello(self) -> Hello:
        """What the server is told about this worker."""
        return Hello(
            nonce=self._nonce,
            worker=self.settings.name,
            build=self.settings.build,
            handlers=[
                HandlerOffer(
                    name=one.name,
                    version=one.version,
                    recovery=one.recovery.value,
                    digest=one.types_digest(),
                    verify=one.can_verify,
                    progress_timeout_ms=_patience_ms(one),
                )
                for one in self._registry.values()
            ],
            queues=list(self.settings.queues),
            slots=self.settings.slots,
        )

    @property
    def connected(self) -> bool:
        """Whether a session is open at this moment; for health checks."""
        return self._desk is not None and self._desk.open

    @property
    def draining(self) -> bool:
        """Whether `stop` was called."""
        return self._draining

    @property
    def health(self) -> Health:
        """How it is at this moment; what the health port tells."""
        desk, settings = self._desk, self.settings
        figures = Figures() if desk is None else desk.figures
        return Health(
            connected=self.connected,
            draining=self._draining,
            slots=settings.slots,
            busy=0 if desk is None else desk.busy,
            stuck=0 if desk is None else len(desk.stuck),
            stuck_max=settings.replaced_max,
            lost=figures.lost,
            replaced=figures.replaced,
            sessions=figures.sessions,
            outcomes=tuple(sorted(figures.outcomes.items())),
        )

    @property
    def health_port(self) -> int | None:
        """Where health is told, once it is."""
        return None if self._uplink is None else self._uplink.health_port

    def _report(self) -> WorkerReport:
        assert self._desk is not None
        figures = self._desk.figures
        return WorkerReport(
            worker=self.settings.name,
            build=self.settings.build,
            sessions=figures.sessions,
            outcomes=dict(figures.outcomes),
            lost=figures.lost,
            replaced=figures.replaced,
            left=self._desk.left(),
        )

    async def run(self, *, signals: bool = True) -> WorkerReport:
        """Work until stopped; says what was done and what is left behind.

        Raises Unauthenticated or PermissionDenied when the server will never take us.

        `signals`: drain at SIGTERM and SIGINT (only in the main thread).
        """
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def ended(error: BaseException | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, over, error)

        settings = self.settings
        crews = (settings.threads or settings.slots, settings.processes or settings.slots)
        runner = Runner(self._registry, crews, loop, self._wires(), self._post_ended)
        limits: dict[Way, int | None] = {"thread": settings.threads, "process": settings.processes}
        self._desk = Desk(settings, runner, self._patience(), Ways(self._registry.values(), limits))
        backoff = Backoff(
            self.settings.backoff_ms, self.settings.backoff_max_ms, random.SystemRandom().random
        )
        self._uplink = Uplink(self.settings, self.hello, self._desk, backoff, ended, lambda: self.health)
        names = ", ".join(self._registry)
        _LOG.info("worker %s serves %s on %s", self.settings.name, names, ", ".join(self.settings.queues))
        with _signals(self) if signals else _no_signals():
            self._uplink.start()
            if self._draining:
                self._uplink.post(DrainAsked())
            try:
                await over
            finally:
                self._uplink.post(HaltAsked())
                self._uplink.join(5)
                report = self._report()
                runner.close()
                for line in report.lines():
                    _LOG.log(logging.INFO if report.clean else logging.WARNING, "%s", line)
                _LOG.info("worker %s has left", self.settings.name)
        return report

    def stop(self) -> None:
        """Drain: take nothing new, wait up to the grace time for what runs, then leave. From any thread."""
        self._draining = True
        if self._uplink is not None:
            self._uplink.post(DrainAsked())

    def halt(self) -> None:
        """Leave now; what runs is lost by its lease. From any thread."""
        if self._uplink is not None:
            self._uplink.post(HaltAsked())

    def _patience(self) -> dict[str, int]:
        """Handler key -> its time without progress (ms), of those that have one."""
        found = ((key, _patience_ms(one)) for key, one in self._registry.items())
        return {key: patience for key, patience in found if patience is not None}

    # --- between handlers and the uplink ---

    def _wires(self) -> Wires:
        return Wires(
            mark=self._mark,
            progress=self._progress,
            owns=self._owns,
            stopping=lambda: self._draining,
            namespace=self._namespace,
        )

    def _post_ended(self, attempt_id: str, result: Any) -> None:
        if self._uplink is not None:
            self._uplink.post(Ended(attempt_id, result))

    def _mark(self, attempt_id: str) -> None:
        if self._uplink is not None:
            self._uplink.post(MarkAsked(attempt_id))

    def _progress(self, attempt_id: str, value: Json) -> None:
        if self._uplink is not None:
            self._uplink.post(Progressed(attempt_id, value))

    def _owns(self, attempt_id: str) -> bool:
        held = None if self._desk is None else self._desk.held.get(attempt_id)
        return held is not None and not held.lost and held.lease_end_ms > monotonic_ms()

    def _namespace(self) -> str:
        welcome = None if self._desk is None else self._desk.welcome
        return "" if welcome is None else welcome.namespace


def _patience_ms(handler: AnyHandler) -> int | None:
    patience = handler.progress_timeout
    return None if patience is None else patience // timedelta(milliseconds=1)


def _settle(over: asyncio.Future[None], error: BaseException | None) -> None:
    if over.done():
        return
    if error is None:
        over.set_result(None)
    else:
        over.set_exception(error)


@contextmanager
def _no_signals() -> Generator[None]:
    yield


@contextmanager
def _signals(worker: Worker) -> Generator[None]:
    """First signal: drain. Second: out, without waiting for any thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int) -> None:
        if worker.draining:
            _LOG.warning("second %s: leaving at once", signal.Signals(number).name)
            logging.shutdown()
            os._exit(128 + number)
        _LOG.info("%s: draining for up to %d ms", signal.Signals(number).name, worker.settings.grace_ms)
        worker.stop()

    # Plain handlers, not the loop's: a handler that blocks the loop must not hold up the second signal.
    wanted = (signal.SIGTERM, signal.SIGINT)
    before = {one: signal.signal(one, lambda number, _: on_signal(number)) for one in wanted}
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)
