"""Runs attempts: `async def` handlers on the caller's loop, `def` handlers in the crew's threads.

`begin`, `stop` and the like are called on the uplink's thread and return at once, so neither a handler that
blocks the loop nor one that sleeps in a thread can hold up a renewal. Whatever happens, each attempt that was
begun ends in exactly one call of `ended`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from orbit_sdk.errors import OrbitError
from orbit_sdk.handlers import Handler, LeaseLost
from orbit_sdk.protocol.worker import OfferItem, ResultItem
from orbit_sdk.values.names import handler_key
from orbit_sdk.worker.clock import deadline_after
from orbit_sdk.worker.context import RunContext, Wires
from orbit_sdk.worker.crew import Crew
from orbit_sdk.worker.outcomes import of_answer, of_bad_parameters, of_exception
from orbit_sdk.worker.process import run_in_process

__all__ = ["Runner"]

AnyHandler: TypeAlias = Handler[..., Any]
Ended: TypeAlias = Callable[[str, ResultItem | None], None]
_LOG = logging.getLogger("orbit.worker")


class _Running:
    """One attempt that has a slot."""

    __slots__ = ("context", "function", "handler", "offer", "replaced", "task")

    def __init__(
        self, offer: OfferItem, handler: AnyHandler, function: Callable[..., Any], context: RunContext
    ) -> None:
        self.offer = offer
        self.handler = handler
        self.function = function
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.replaced = False


class Runner:
    """Knows the handlers and what runs. `ended(attempt_id, result)` may be called from any thread."""

    def __init__(
        self,
        handlers: Mapping[str, AnyHandler],
        crews: tuple[int, int],
        loop: asyncio.AbstractEventLoop,
        wires: Wires,
        ended: Ended,
    ) -> None:
        """`crews`: how many attempts may be in threads, and how many in processes."""
        self._handlers = handlers
        self._loop = loop
        self._wires = wires
        self._ended = ended
        self._crew, self._tenders = map(Crew, crews)
        """The threads that wait for child processes."""
        self._running: dict[str, _Running] = {}
        self._to_launch: deque[_Running] = deque()
        self._launching = False
        self._replacing = threading.Lock()

    # --- on the uplink's thread ---

    def can_run(self, offer: OfferItem) -> bool:
        """Whether there is a function for this offer."""
        handler = self._handlers.get(handler_key(offer.handler, offer.handler_version))
        return handler is not None and _function_of(handler, offer) is not None

    def begin(self, offer: OfferItem) -> None:
        """Run an attempt that is started and leased."""
        handler = self._handlers[handler_key(offer.handler, offer.handler_version)]
        function = _function_of(handler, offer)
        assert function is not None
        running = _Running(offer, handler, function, self._context(offer))
        self._running[offer.attempt_id] = running
        if not inspect.iscoroutinefunction(function):
            crew = self._tenders if handler.run_in == "process" else self._crew
            crew.submit(lambda: self._run_in_thread(running))
            return
        self._to_launch.append(running)
        if not self._launching:
            self._launching = True
            self._loop.call_soon_threadsafe(self._launch)

    def _context(self, offer: OfferItem) -> RunContext:
        return RunContext(offer, deadline_after(offer.limit_ms), self._wires)

    def stop(self, attempt_id: str, reason: str) -> None:
        """Its lease is gone: a coroutine is cancelled, a thread can only be told."""
        running = self._running.get(attempt_id)
        if running is None:
            return
        running.context.lose(reason)
        task = running.task
        if task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(task.cancel, reason)

    def replace(self, attempt_id: str) -> bool:
        """Give its thread up for lost, so that another takes the slot. False: it is no thread's, or is over.

        A coroutine that goes on after its cancellation keeps its slot: whatever it blocks, it would block
        for the next one, too.
        """
        with self._replacing:
            running = self._running.get(attempt_id)
            if (
                running is None
                or inspect.iscoroutinefunction(running.function)
                or running.handler.run_in == "process"
            ):
                return False
            running.replaced = True
            self._crew.replace_one()
            return True

    def ask_cancel(self, attempt_id: str) -> None:
        """Somebody asked it to stop; the handler looks at `ctx.cancelled` when it can."""
        running = self._running.get(attempt_id)
        if running is not None:
            running.context.ask_cancel()

    def decide_mark(self, attempt_id: str, answer: str) -> None:
        """The answer to a mark."""
        running = self._running.get(attempt_id)
        if running is not None:
            running.context.decide_mark(answer)

    def close(self) -> None:
        """No more attempts; what still runs is told that its lease is gone."""
        for attempt_id in tuple(self._running):
            self.stop(attempt_id, "the worker has left")
        self._crew.close()
        self._tenders.close()

    # --- where handlers run ---

    def _launch(self) -> None:
        self._launching = False
        while self._to_launch:
            running = self._to_launch.popleft()
            task = self._loop.create_task(self._run_on_loop(running))
            running.task = task
            if running.context.lost is not None:
                task.cancel()

    async def _run_on_loop(self, running: _Running) -> None:
        result: ResultItem | None = None
        try:
            parameters = running.handler.parse_parameters(running.offer.parameters)
        except OrbitError as error:
            self._end(running, of_bad_parameters(running.offer, error))
            return
        try:
            answer = await running.function(running.context, **parameters)
            result = of_answer(running.handler, running.offer, answer)
        except asyncio.CancelledError as error:
            # Ours when the lease is gone; else the handler cancelled itself, or the loop is being closed.
            result = (
                None
                if running.context.lost is not None
                else of_exception(running.handler, running.offer, error)
            )
        except BaseException as error:  # noqa: BLE001  # whatever a handler raises is a result
            result = of_raised(running.handler, running.offer, running.context, error)
        self._end(running, result)

    def _run_in_thread(self, running: _Running) -> None:
        result: ResultItem | None = None
        if running.context.lost is None:
            try:
                if running.handler.run_in == "process":
                    result = run_in_process(
                        running.handler, running.offer, running.context, self._wires, execute_blocking
                    )
                else:
                    result = execute_blocking(running.handler, running.offer, running.context)
            except Exception as error:  # noqa: BLE001  # a child that cannot be made is a result, too
                _LOG.exception("attempt %s could not be run", running.offer.attempt_id)
                result = of_exception(running.handler, running.offer, error)
        self._end(running, result)

    def _end(self, running: _Running, result: ResultItem | None) -> None:
        with self._replacing:
            self._running.pop(running.offer.attempt_id, None)
            if running.replaced:
                self._crew.restore()
        self._ended(running.offer.attempt_id, result)


def _function_of(handler: AnyHandler, offer: OfferItem) -> Callable[..., Any] | None:
    return handler.function if offer.kind == "RUN" else handler.verify_function


def execute_blocking(handler: AnyHandler, offer: OfferItem, context: RunContext) -> ResultItem | None:
    """Run a `def` function to its end on this thread; None when its lease was gone first."""
    function = _function_of(handler, offer)
    assert function is not None
    try:
        parameters = handler.parse_parameters(offer.parameters)
    except OrbitError as error:
        return of_bad_parameters(offer, error)
    try:
        return of_answer(handler, offer, function(context, **parameters))
    except BaseException as error:  # noqa: BLE001  # whatever a handler raises is a result
        return of_raised(handler, offer, context, error)


def of_raised(
    handler: AnyHandler, offer: OfferItem, context: RunContext, error: BaseException
) -> ResultItem | None:
    """The result of an exception; None when it only says that the lease is gone."""
    if isinstance(error, LeaseLost) and context.lost is not None:
        return None
    if isinstance(error, Exception):
        _LOG.info("%s of task %s raised", handler.key, offer.task_id, exc_info=error)
    return of_exception(handler, offer, error)
