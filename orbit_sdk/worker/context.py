"""The run-time context of one attempt. Made by the runner; flags are set by the uplink's thread."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers import Cancelled, LeaseLost
from orbit_sdk.protocol.worker import PROGRESS_BYTES_MAX, OfferItem
from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import handler_key

__all__ = ["RunContext", "RunLog", "Wires"]

_LOG = logging.getLogger("orbit.task")


class Wires:
    """How a context reaches the socket: handed in, so that a context knows neither threads nor frames."""

    def __init__(
        self,
        *,
        mark: Callable[[str], None],
        progress: Callable[[str, Json], None],
        owns: Callable[[str], bool],
        stopping: Callable[[], bool],
        namespace: Callable[[], str],
    ) -> None:
        self.mark = mark
        self.progress = progress
        self.owns = owns
        self.stopping = stopping
        self.namespace = namespace


class RunLog:
    """`log.info("sent", rows=3)`: the standard logger `orbit.task`, with the task's ids in the record."""

    def __init__(self, bound: Mapping[str, object]) -> None:
        self._bound = bound

    def debug(self, event: str, /, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        self._write(logging.ERROR, event, fields)

    def _write(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        if not _LOG.isEnabledFor(level):
            return
        shown = {"task": self._bound["task_id"], **fields}
        text = " ".join(f"{key}={json.dumps(value, default=str)}" for key, value in shown.items())
        _LOG.log(level, "%s %s", event, text, extra={"orbit": {**self._bound, **fields}})


class RunContext:
    """Implements `orbit_sdk.handlers.TaskContext`."""

    def __init__(self, offer: OfferItem, deadline: datetime, wires: Wires) -> None:
        self._offer = offer
        self._deadline = deadline
        self._wires = wires
        self._cancel_asked = offer.cancel_requested and offer.kind == "RUN"
        self._mark: Future[str] | None = None
        self.lost: str | None = None
        """Why the lease is gone, once it is."""

    @property
    def namespace(self) -> str:
        return self._wires.namespace()

    @property
    def queue(self) -> str:
        return self._offer.queue

    @property
    def task_id(self) -> str:
        return self._offer.task_id

    @property
    def attempt_id(self) -> str:
        return self._offer.attempt_id

    @property
    def attempt(self) -> int:
        return self._offer.attempt_no

    @property
    def generation(self) -> int:
        return self._offer.generation

    @property
    def effect_key(self) -> str:
        return self._offer.effect_key

    @property
    def business_key(self) -> str | None:
        return self._offer.business_key

    @property
    def parameters_version(self) -> int:
        return self._offer.parameters_version

    @property
    def workflow_id(self) -> str | None:
        return self._offer.workflow_id

    @property
    def step_key(self) -> str | None:
        return self._offer.step_key

    @property
    def round(self) -> int | None:
        return self._offer.round or None

    @property
    def deadline(self) -> datetime:
        return self._deadline

    @property
    def cancelled(self) -> bool:
        return self._cancel_asked or self.lost is not None

    @property
    def stopping(self) -> bool:
        return self._wires.stopping()

    @property
    def previous_progress(self) -> Json:
        progress: Json = self._offer.previous_progress
        return progress

    @property
    def log(self) -> RunLog:
        return RunLog(
            {
                "task_id": self.task_id,
                "attempt_id": self.attempt_id,
                "attempt": self.attempt,
                "handler": handler_key(self._offer.handler, self._offer.handler_version),
                "workflow_id": self.workflow_id,
                "step_key": self.step_key,
            }
        )

    @property
    def trace(self) -> Mapping[str, str]:
        return {"traceparent": self._offer.trace} if self._offer.trace else {}

    def heartbeat(self, progress: Json = None) -> None:
        """InvalidArgument when the progress is no JSON or larger than 4 KiB; LeaseLost when too late."""
        if self.lost is not None:
            raise LeaseLost(self.lost)
        size = len(canonical_bytes(progress))
        if size > PROGRESS_BYTES_MAX:
            raise InvalidArgument.at("progress", f"is {size} bytes long; the limit is {PROGRESS_BYTES_MAX}")
        self._wires.progress(self.attempt_id, progress)

    async def begin_effect(self) -> None:
        self._allow(await asyncio.wrap_future(self._ask()))

    def begin_effect_blocking(self) -> None:
        self._allow(self._ask().result())

    def mark_blocking(self) -> str:
        """Ask for the mark on behalf of a child process; the bare answer."""
        answer = self._ask().result()
        return answer if answer != "GRANTED" or self._wires.owns(self.attempt_id) else "LOST"

    def _ask(self) -> Future[str]:
        if self._mark is None:
            self._mark = Future()
            if self.lost is not None:
                self._mark.set_result("LOST")
            else:
                self._wires.mark(self.attempt_id)
        return self._mark

    def _allow(self, answer: str) -> None:
        """The mark is stored; but an effect also needs a lease that still runs on our own clock."""
        if answer == "CANCELLED":
            raise Cancelled("the task is cancelled")
        if answer != "GRANTED" or self.lost is not None or not self._wires.owns(self.attempt_id):
            raise LeaseLost(self.lost or "the lease ended before the effect began")

    # --- set from the uplink's thread ---

    def ask_cancel(self) -> None:
        """Somebody asked this attempt to stop."""
        self._cancel_asked = True

    def lose(self, reason: str) -> None:
        """The lease is gone; a handler that waits for its mark is told so."""
        self.lost = reason
        self.decide_mark("LOST")

    def decide_mark(self, answer: str) -> None:
        """The answer to `begin_effect`; only the first counts."""
        if self._mark is not None and not self._mark.done():
            self._mark.set_result(answer)
