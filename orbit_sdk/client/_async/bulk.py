"""Many at once: a plan is made on the server, looked at, and applied there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic import BaseModel

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_same
from orbit_sdk.client.wire import Call, new_key
from orbit_sdk.protocol.bulk import Bulk, BulkAction, BulkAnswer, BulkDetail, BulkFilter, BulkItem

_LOOK_S = 0.2
_UNDER_WAY = ("PLANNING", "APPLYING")


class AsyncBulk:
    """`client.bulk`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def plan(  # one keyword per thing that may be said
        self,
        action: BulkAction | Mapping[str, Any],
        filter: BulkFilter | Mapping[str, Any] | None = None,  # noqa: A002  # the word of the interface
        *,
        reason: str,
        most: int = 1000,
        idempotency_key: str | None = None,
        on_behalf_of: str | None = None,
    ) -> BulkAnswer:
        """Ask for a plan: nothing is done yet. `wait` for it, then look at it and `apply` it.

        Both are models of `protocol.bulk`, or have their fields: `{"kind": "workflow.pause"}` with
        `{"definition_id": "order.payment"}`.
        """
        body: dict[str, Any] = {
            "action": _body(action),
            "filter": _body(filter or {}),
            "reason": reason,
            "most": most,
        }
        if on_behalf_of is not None:
            body["on_behalf_of"] = on_behalf_of
        call = Call("POST", "/v1/bulk", body=body, key=idempotency_key or new_key())
        return parse(BulkAnswer, await self._transport.call(call))

    async def get(self, bulk_id: str) -> BulkDetail:
        """One bulk: what was asked, and how far it is."""
        found = parse(BulkDetail, await self._transport.call(Call("GET", f"/v1/bulk/{bulk_id}")))
        check_same(found.id, bulk_id, "bulk")
        return found

    async def wait(self, bulk_id: str) -> BulkDetail:
        """Look again until it is neither being planned nor applied. Cancel the call to wait no longer."""
        while True:
            found = await self.get(bulk_id)
            if found.state not in _UNDER_WAY:
                return found
            await asyncio.sleep(_LOOK_S)

    def list(self, *, state: str | None = None) -> AsyncIterator[Bulk]:
        """Bulks, newest first."""
        return each(self._transport, "/v1/bulk", Bulk, {"state": state})

    def items(
        self, bulk_id: str, *, result: str | None = None, allowed: bool | None = None
    ) -> AsyncIterator[BulkItem]:
        """Its items in the order in which they are done."""
        words = None if allowed is None else str(allowed).lower()
        path = f"/v1/bulk/{bulk_id}/items"
        return each(self._transport, path, BulkItem, {"result": result, "allowed": words})

    async def apply(  # noqa: PLR0913  # one keyword per thing that may be said
        self,
        bulk_id: str,
        *,
        per_second: float = 10.0,
        max_failures: int | None = 3,
        max_failure_percent: int | None = None,
        reason: str | None = None,
        operation_id: str | None = None,
        on_behalf_of: str | None = None,
    ) -> BulkAnswer:
        """Start a plan. The server carries it on; `wait` until it has ended."""
        body = {
            "per_second": per_second,
            "max_failures": max_failures,
            "max_failure_percent": max_failure_percent,
            "reason": reason,
            "on_behalf_of": on_behalf_of,
        }
        return await self._order(bulk_id, "apply", body, operation_id)

    async def stop(self, bulk_id: str, *, reason: str, operation_id: str | None = None) -> BulkAnswer:
        """Stop it, or give its plan up. What is done stays done."""
        return await self._order(bulk_id, "stop", {"reason": reason}, operation_id)

    async def _order(
        self, bulk_id: str, action: str, body: Mapping[str, Any], operation_id: str | None
    ) -> BulkAnswer:
        path = f"/v1/bulk/{bulk_id}/{action}"
        call = Call("POST", path, body=dict(body), key=operation_id or new_key())
        found = parse(BulkAnswer, await self._transport.call(call))
        check_same(found.id, bulk_id, "bulk")
        return found


def _body(given: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
    return given.model_dump(mode="json", exclude_none=True) if isinstance(given, BaseModel) else dict(given)
