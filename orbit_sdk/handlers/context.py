"""What a handler may ask while it runs. The real contexts are made by the worker and by the test kit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from orbit_sdk.values.json_strict import Json

__all__ = ["TaskContext", "TaskLog"]


class TaskLog(Protocol):
    """A logger bound to the task's ids."""

    def debug(self, event: str, /, **fields: object) -> None: ...
    def info(self, event: str, /, **fields: object) -> None: ...
    def warning(self, event: str, /, **fields: object) -> None: ...
    def error(self, event: str, /, **fields: object) -> None: ...


class TaskContext(Protocol):
    """One attempt of one task, as its handler sees it. Safe to use from the handler's own thread."""

    @property
    def namespace(self) -> str:
        """Name of the namespace."""
        ...

    @property
    def queue(self) -> str:
        """Name of the queue the task came from."""
        ...

    @property
    def task_id(self) -> str:
        """Stays the same over all attempts."""
        ...

    @property
    def attempt_id(self) -> str:
        """Of this attempt alone."""
        ...

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""
        ...

    @property
    def generation(self) -> int:
        """Grows with every attempt: hand it to systems that can refuse an older one (fencing)."""
        ...

    @property
    def effect_key(self) -> str:
        """The idempotency key to give to the outside: equal over attempts and re-runs, different per step."""
        ...

    @property
    def business_key(self) -> str | None:
        """What the business calls the task or its workflow."""
        ...

    @property
    def parameters_version(self) -> int:
        """As stated by whoever submitted or started."""
        ...

    @property
    def workflow_id(self) -> str | None:
        """The instance, when the task belongs to a workflow."""
        ...

    @property
    def step_key(self) -> str | None:
        """The workflow's step, when the task belongs to one."""
        ...

    @property
    def round(self) -> int | None:
        """The poll round, from 1, when the step is a poll."""
        ...

    @property
    def deadline(self) -> datetime:
        """When this attempt's time is over (aware, UTC)."""
        ...

    @property
    def cancelled(self) -> bool:
        """The task is cancelled: stop where it is safe and raise `Cancelled`."""
        ...

    @property
    def stopping(self) -> bool:
        """The worker shuts down: finish soon, or raise `HandBack` when nothing is left open."""
        ...

    @property
    def previous_progress(self) -> Json:
        """What the last attempt gave to `heartbeat`, or None."""
        ...

    @property
    def log(self) -> TaskLog:
        """A logger bound to the ids above."""
        ...

    @property
    def trace(self) -> Mapping[str, str]:
        """W3C trace context (`traceparent`, `tracestate`) of whoever submitted; may be empty."""
        ...

    def heartbeat(self, progress: Json = None) -> None:
        """Say that work goes on; `progress` is kept for the next attempt. Never blocks, works in threads."""
        ...

    async def begin_effect(self) -> None:
        """Store the mark before an irrevocable call (MARKED). Raises Cancelled or LeaseLost when refused."""
        ...

    def begin_effect_blocking(self) -> None:
        """The same for `def` handlers, from their own thread."""
        ...
