"""`run_in="process"`: one child process per attempt, for work that would starve the worker's other threads.

The child imports the handler's module anew and speaks with the thread that waits for it over a pipe. It is
killed as soon as the attempt's lease is gone: unlike a thread, a process can be.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from orbit_sdk.handlers import Handler, Registry
from orbit_sdk.protocol.worker import OfferItem, ResultItem
from orbit_sdk.worker.clock import deadline_after
from orbit_sdk.worker.context import RunContext, Wires
from orbit_sdk.worker.outcomes import of_exception

__all__ = ["run_in_process"]

AnyHandler: TypeAlias = Handler[..., Any]
Execute: TypeAlias = Callable[[AnyHandler, OfferItem, RunContext], ResultItem | None]
# How often the parent looks whether the lease is gone or a cancel was asked for.
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class _Job:
    """What the child is told. `module` is imported there; the main module is imported by the start itself."""

    module: str
    key: str
    offer: str
    namespace: str


class ProcessEnded(Exception):
    """The child process ended without an answer."""


def run_in_process(
    handler: AnyHandler, offer: OfferItem, context: RunContext, wires: Wires, execute: Execute
) -> ResultItem | None:
    """Run the attempt in a child; None when its lease was gone first. Blocks the calling thread."""
    pipes: tuple[Any, Any] = multiprocessing.Pipe()  # each platform has its own class
    ours, theirs = pipes
    job = _Job(handler.__module__, handler.key, offer.model_dump_json(), wires.namespace())
    spawn = multiprocessing.get_context("spawn")
    child = spawn.Process(target=_child, args=(theirs, job, execute), daemon=True)
    child.start()
    theirs.close()
    try:
        return _attend(ours, handler, offer, context, wires)
    finally:
        child.kill()
        child.join()
        ours.close()


def _attend(
    pipe: Connection, handler: AnyHandler, offer: OfferItem, context: RunContext, wires: Wires
) -> ResultItem | None:
    told: set[str] = set()
    while context.lost is None:
        for word, true in (("cancel", context.cancelled), ("stopping", context.stopping)):
            if true and word not in told:
                told.add(word)
                pipe.send((word, None))
        if not pipe.poll(_LOOK_S):
            continue
        try:
            word, value = pipe.recv()
        except EOFError:
            return of_exception(handler, offer, ProcessEnded("the process ended without an answer"))
        if word == "end":
            return None if value is None else ResultItem.model_validate_json(value)
        if word == "progress":
            wires.progress(offer.attempt_id, value)
        elif word == "mark":
            pipe.send(("marked", context.mark_blocking()))
    return None


# --- in the child ------------------------------------------------------------------------------------------


class _Line:
    """The child's end of the pipe, and what the parent has said so far."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.stopping = False
        self.context: RunContext | None = None

    def send(self, word: str, value: Any = None) -> None:
        self._pipe.send((word, value))

    def listen(self) -> None:
        """Until the parent is gone."""
        while True:
            try:
                word, value = self._pipe.recv()
            except (EOFError, OSError):
                return
            context = self.context
            if word == "stopping":
                self.stopping = True
            elif word == "cancel" and context is not None:
                context.ask_cancel()
            elif word == "marked" and context is not None:
                context.decide_mark(value)


def _child(pipe: Connection, job: _Job, execute: Execute) -> None:
    line = _Line(pipe)
    wires = Wires(
        mark=lambda _: line.send("mark"),
        progress=lambda _, value: line.send("progress", value),
        owns=lambda _: True,  # the parent kills this process when the lease is gone
        stopping=lambda: line.stopping,
        namespace=lambda: job.namespace,
    )
    offer = OfferItem.model_validate_json(job.offer)
    line.context = RunContext(offer, deadline_after(offer.limit_ms), wires)
    threading.Thread(target=line.listen, daemon=True).start()
    module = sys.modules["__main__"] if job.module == "__main__" else importlib.import_module(job.module)
    result = execute(Registry.of(module)[job.key], offer, line.context)
    line.send("end", None if result is None else result.model_dump_json())
