"""What waits for a signal of a person or another system."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call, spoken
from orbit_sdk.protocol.waits import Wait
from orbit_sdk.protocol.workflows import Signal


class AsyncWaits:
    """`client.waits`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        workflow_id: str | None = None,
        definition_id: str | None = None,
        business_key: str | None = None,
        signal: str | None = None,
    ) -> AsyncIterator[Wait]:
        """Open waits, newest first."""
        filters = {
            "workflow_id": workflow_id,
            "definition_id": definition_id,
            "business_key": business_key,
            "signal": signal,
        }
        return each(self._transport, "/v1/waits", Wait, filters)

    async def answer(
        self, wait_id: str, body: Any, *, evidence: str | None = None, on_behalf_of: str | None = None
    ) -> Signal:
        """Answer one wait. The signal's identity follows from the wait, so repeating it is safe.

        Raises FailedPrecondition when the wait is over, Conflict when it was answered in other words.
        """
        content = spoken(evidence=evidence, on_behalf_of=on_behalf_of) | {"body": body}
        call = Call("POST", f"/v1/waits/{wait_id}/answer", body=content)
        return parse(Signal, await self._transport.call(call))
