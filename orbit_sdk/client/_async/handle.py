"""A handle on one instance, typed by its workflow."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Literal, TypeVar

from orbit_sdk.client._async.workflows import AsyncWorkflows
from orbit_sdk.client.outcomes import NeedsReview, NotFinished, WorkflowCancelled, WorkflowFailed
from orbit_sdk.client.settings import ClientSettings
from orbit_sdk.client.typed import TypedSignal
from orbit_sdk.protocol.workflows import ControlResult, EventSummary, Signal, Steps, WorkflowDetail

O = TypeVar("O")  # noqa: E741  # the output type


class Handle(Generic[O]):
    """One instance. `id` is the workflow id."""

    def __init__(
        self,
        workflow_id: str,
        workflows: AsyncWorkflows,
        settings: ClientSettings,
        parse_output: Callable[[Any], O],
    ) -> None:
        self.id = workflow_id
        self._workflows = workflows
        self._settings = settings
        self._parse_output = parse_output

    async def get(self) -> WorkflowDetail:
        """How it stands now."""
        return await self._workflows.get(self.id)

    async def steps(self) -> Steps:
        """Every step as it stands."""
        return await self._workflows.steps(self.id)

    async def result(
        self,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the server is asked to wait that long
        on_review: Literal["wait", "raise"] = "wait",
    ) -> O:
        """Wait for the output.

        Raises WorkflowFailed, WorkflowCancelled; NotFinished after `timeout` seconds; NeedsReview when a
        person has to decide and `on_review` is "raise". Waiting costs one open request, not one per second.
        """
        until = None if timeout is None else time.monotonic() + timeout
        seen: int | None = None
        while True:
            left = self._settings.poll if until is None else max(0.0, until - time.monotonic())
            found = await self._workflows.get(
                self.id, wait=min(left, self._settings.poll), after_revision=seen
            )
            if found.state == "SUCCEEDED":
                return self._parse_output(found.output)
            if found.state == "FAILED":
                raise WorkflowFailed(found)
            if found.state == "CANCELLED":
                raise WorkflowCancelled(found)
            if found.state == "NEEDS_REVIEW" and on_review == "raise":
                raise NeedsReview(found)
            if until is not None and time.monotonic() >= until:
                raise NotFinished(found)
            seen = found.revision

    async def send(
        self,
        signal: TypedSignal,
        body: Any,
        *,
        match: str | int,
        idempotency_key: str | None = None,
        step_key: str | None = None,
    ) -> Signal:
        """Send a signal of the definition; its body is checked before it leaves."""
        return await self._workflows.signal(
            self.id,
            signal.name,
            match,
            signal.dump_body(body),
            idempotency_key=idempotency_key,
            step_key=step_key,
        )

    async def cancel(self, *, reason: str) -> ControlResult:
        """Stop what has not started and wait for the truth about the rest."""
        return await self._workflows.cancel(self.id, reason=reason)

    async def pause(self, *, reason: str) -> ControlResult:
        """Start nothing new."""
        return await self._workflows.pause(self.id, reason=reason)

    async def resume(self, *, reason: str) -> ControlResult:
        """Lift the pause."""
        return await self._workflows.resume(self.id, reason=reason)

    async def events(self) -> AsyncIterator[EventSummary]:
        """The whole timeline, newest first."""
        cursor: str | None = None
        while True:
            found = await self._workflows.list_workflow_events(self.id, limit=100, cursor=cursor)
            for event in found.items:
                yield event
            cursor = found.next_cursor
            if cursor is None:
                return
