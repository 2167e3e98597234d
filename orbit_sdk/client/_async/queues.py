"""Queues: figures, pause, limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call, new_key
from orbit_sdk.protocol.queues import Limits, Queue, QueueDetail, QueueState, Revision


class AsyncQueues:
    """`client.queues`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self) -> AsyncIterator[Queue]:
        """Queues by name, with their figures."""
        return each(self._transport, "/v1/queues", Queue, {})

    async def get(self, queue: str) -> QueueDetail:
        """One queue: figures, limits, who paused it."""
        return parse(QueueDetail, await self._transport.call(Call("GET", f"/v1/queues/{queue}")))

    async def pause(
        self,
        queue: str,
        *,
        reason: str,
        expected_revision: int | None = None,
        operation_id: str | None = None,
    ) -> QueueState:
        """Hand out nothing of it any more; what runs goes on."""
        return await self._control(queue, "pause", reason, expected_revision, operation_id)

    async def resume(
        self,
        queue: str,
        *,
        reason: str,
        expected_revision: int | None = None,
        operation_id: str | None = None,
    ) -> QueueState:
        """Hand out its tasks again."""
        return await self._control(queue, "resume", reason, expected_revision, operation_id)

    async def namespace_limits(self) -> Limits:
        """The limits of the whole namespace."""
        return parse(Limits, await self._transport.call(Call("GET", "/v1/limits")))

    async def set_limits(
        self, queue: str | None, limits: Mapping[str, Any], *, operation_id: str | None = None
    ) -> Revision:
        """Replace the limits of a queue (None: of the namespace); `limits` has the fields of
        `protocol.queues.SetLimits`.
        """
        path = "/v1/limits" if queue is None else f"/v1/queues/{queue}/limits"
        return await self._set(path, limits, operation_id)

    async def set_key_class(
        self, queue: str, name: str, running_max: int, *, reason: str, operation_id: str | None = None
    ) -> Revision:
        """Say how many tasks of each concurrency key of this class may be under way at once."""
        body = {"name": name, "running_max": running_max, "reason": reason}
        return await self._set(f"/v1/queues/{queue}/key-classes", body, operation_id)

    async def set_weight(
        self, queue: str, fairness_key: str, weight: int, *, reason: str, operation_id: str | None = None
    ) -> Revision:
        """Say how large the share of a fairness key is."""
        body = {"fairness_key": fairness_key, "weight": weight, "reason": reason}
        return await self._set(f"/v1/queues/{queue}/weights", body, operation_id)

    async def _set(self, path: str, body: Mapping[str, Any], operation_id: str | None) -> Revision:
        call = Call("POST", path, body=dict(body), key=operation_id or new_key())
        return parse(Revision, await self._transport.call(call))

    async def _control(
        self, queue: str, action: str, reason: str, expected: int | None, operation_id: str | None
    ) -> QueueState:
        body: dict[str, Any] = {"reason": reason}
        if expected is not None:
            body["expected_revision"] = str(expected)
        call = Call("POST", f"/v1/queues/{queue}/{action}", body=body, key=operation_id or new_key())
        return parse(QueueState, await self._transport.call(call))
