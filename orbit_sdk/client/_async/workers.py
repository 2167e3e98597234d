"""Connected workers, and builds that get no work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call, new_key
from orbit_sdk.protocol.platform import BuildState, WorkerSession


class AsyncWorkers:
    """`client.workers`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, connected: bool | None = None) -> AsyncIterator[WorkerSession]:
        """Sessions of workers, newest first; only open ones, or only those that ended, where it is said."""
        filters = {} if connected is None else {"connected": "true" if connected else "false"}
        return each(self._transport, "/v1/workers", WorkerSession, filters)

    async def block(self, build: str, *, reason: str, operation_id: str | None = None) -> BuildState:
        """Give the workers of this build no work any more; what they run goes on."""
        return await self._say(build, "block", reason, operation_id)

    async def unblock(self, build: str, *, reason: str, operation_id: str | None = None) -> BuildState:
        """Give them work again."""
        return await self._say(build, "unblock", reason, operation_id)

    async def _say(self, build: str, action: str, reason: str, operation_id: str | None) -> BuildState:
        body: dict[str, Any] = {"build": build, "reason": reason}
        call = Call("POST", f"/v1/workers/{action}", body=body, key=operation_id or new_key())
        return parse(BuildState, await self._transport.call(call))
