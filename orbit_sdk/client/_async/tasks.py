"""Tasks by id."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Unpack

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_same
from orbit_sdk.client.filters import TaskFilters, params_of
from orbit_sdk.client.wire import Call, new_key, spoken
from orbit_sdk.protocol.common import Count
from orbit_sdk.protocol.explain import StuckTasks
from orbit_sdk.protocol.history import Origin
from orbit_sdk.protocol.tasks import Attempt, Task, TaskDetail
from orbit_sdk.protocol.why import Why
from orbit_sdk.protocol.workflows import BatchResult


class AsyncTasks:
    """`client.tasks`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def submit(self, task: Mapping[str, Any], *, idempotency_key: str | None = None) -> Task:
        """Submit one task; `task` has the fields of `protocol.tasks.SubmitTask`."""
        call = Call("POST", "/v1/tasks", body=dict(task), key=idempotency_key or new_key())
        return parse(Task, await self._transport.call(call))

    async def submit_batch(self, items: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Submit up to 1,000 tasks; one result per item, in order. Every item has its `idempotency_key`."""
        call = Call("POST", "/v1/tasks/batch", body={"items": [dict(item) for item in items]})
        return parse(BatchResult, await self._transport.call(call))

    async def get(self, task_id: str) -> TaskDetail:
        """One task with parameters, result or error, and evidence."""
        found = parse(TaskDetail, await self._transport.call(Call("GET", f"/v1/tasks/{task_id}")))
        check_same(found.id, task_id, "task")
        return found

    def list(self, **filters: Unpack[TaskFilters]) -> AsyncIterator[Task]:
        """Tasks, newest first."""
        return each(self._transport, "/v1/tasks", Task, params_of(filters))

    async def count(self, group_by: str | None = None, **filters: Unpack[TaskFilters]) -> Count:
        """How many tasks there are; in groups by state, queue, handler, step, error_code, review_class,
        definition or `label:<name>`.
        """
        params = {**params_of(filters), "group_by": group_by}
        return parse(Count, await self._transport.call(Call("GET", "/v1/tasks/count", params=params)))

    def attempts(self, task_id: str) -> AsyncIterator[Attempt]:
        """The attempts of a task, newest first."""
        return each(self._transport, f"/v1/tasks/{task_id}/attempts", Attempt, {})

    async def origin(self, task_id: str) -> Origin:
        """Why a task exists: the step that ordered it, or the request that submitted it."""
        found = parse(Origin, await self._transport.call(Call("GET", f"/v1/tasks/{task_id}/origin")))
        check_same(found.task_id, task_id, "task")
        return found

    async def why(self, task_id: str) -> Why:
        """What it waits for, with names and times, and what happens next by itself."""
        found = parse(Why, await self._transport.call(Call("GET", f"/v1/tasks/{task_id}/why")))
        check_same(found.task_id, task_id, "task")
        return found

    async def stuck(self, *, queue: str | None = None, ready_s: int | None = None) -> StuckTasks:
        """Tasks that do not move, counted by queue, handler, state and reason, the largest groups first."""
        call = Call("GET", "/v1/tasks/stuck", params={"queue": queue, "ready_s": ready_s})
        return parse(StuckTasks, await self._transport.call(call))

    async def cancel(
        self,
        task_id: str,
        *,
        reason: str,
        operation_id: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Task:
        """Cancel what has not started, ask what runs."""
        path = f"/v1/tasks/{task_id}/cancel"
        body = spoken(reason=reason, on_behalf_of=on_behalf_of)
        call = Call("POST", path, body=body, key=operation_id or new_key())
        return parse(Task, await self._transport.call(call))

    async def probe(
        self, task_id: str, question: Mapping[str, Any], *, operation_id: str | None = None
    ) -> Task:
        """Find out about a task in review; `question` has the fields of `protocol.reviews.ProbeReview`.

        The answer is the probe, a task that ends by itself; what it found is evidence of the task.
        """
        path = f"/v1/tasks/{task_id}/probe"
        call = Call("POST", path, body=dict(question), key=operation_id or new_key())
        return parse(Task, await self._transport.call(call))

    async def resolve(
        self, task_id: str, decision: Mapping[str, Any], *, operation_id: str | None = None
    ) -> Task:
        """Decide on a task in review; `decision` has the fields of `protocol.tasks.ResolveTask`."""
        path = f"/v1/tasks/{task_id}/review"
        call = Call("POST", path, body=dict(decision), key=operation_id or new_key())
        return parse(Task, await self._transport.call(call))
