"""Subscriptions: make them, and read them without losing anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call
from orbit_sdk.protocol.subscriptions import (
    Acknowledged,
    Delivery,
    Pulled,
    Subscription,
    SubscriptionDetail,
)

_WAIT_S = 20.0


class AsyncSubscriptions:
    """`client.subscriptions`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        *,
        when_full: str,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  # the word of the interface
        **more: Any,
    ) -> SubscriptionDetail:
        """Make it, or find the same. `filter` and `more` are fields of
        `protocol.subscriptions.CreateSubscription`.
        """
        body = {"name": name, "when_full": when_full, "filter": dict(filter or {}), **more}
        return parse(
            SubscriptionDetail, await self._transport.call(Call("POST", "/v1/subscriptions", body=body))
        )

    def list(self) -> AsyncIterator[Subscription]:
        """Every subscription."""
        return each(self._transport, "/v1/subscriptions", Subscription, {})

    async def get(self, name: str) -> SubscriptionDetail:
        """One subscription with its figures."""
        return parse(SubscriptionDetail, await self._transport.call(Call("GET", f"/v1/subscriptions/{name}")))

    async def pull(
        self, name: str, *, limit: int = 100, wait: float = 0.0, visibility_ms: int | None = None
    ) -> Pulled:
        """Take events; they come again unless they are acknowledged in time. `wait` seconds for the first."""
        body: dict[str, Any] = {"limit": limit, "wait_ms": int(wait * 1_000)}
        if visibility_ms is not None:
            body["visibility_ms"] = visibility_ms
        # A repeat may take other events: those of the lost answer come again by themselves.
        call = Call("POST", f"/v1/subscriptions/{name}/pull", body=body, timeout=wait + 30)
        return parse(Pulled, await self._transport.call(call))

    async def acknowledge(self, name: str, ids: Sequence[str]) -> int:
        """These were dealt with; gives how many of them were still in the backlog."""
        call = Call("POST", f"/v1/subscriptions/{name}/acknowledge", body={"ids": list(ids)})
        return parse(Acknowledged, await self._transport.call(call)).acknowledged

    async def end(self, name: str, *, reason: str) -> None:
        """End it and forget its backlog."""
        body = {"reason": reason}
        await self._transport.call(Call("POST", f"/v1/subscriptions/{name}/end", body=body))

    async def read(
        self, name: str, *, batch: int = 20, wait: float = _WAIT_S, once: bool = False
    ) -> AsyncIterator[Delivery]:
        """Events for ever, each acknowledged once the loop's body has come back for the next.

        A body that raises leaves its event to come again. Acknowledgements go out by batches: after a crash,
        up to `batch` events that were dealt with come again, so a body must bear a repeat. `once`: stop when
        nothing waits.
        """
        while True:
            pulled = await self.pull(name, limit=batch, wait=0.0 if once else wait)
            done: list[str] = []
            try:
                for delivery in pulled.items:
                    yield delivery
                    done.append(delivery.id)
            finally:
                if done:
                    await self.acknowledge(name, done)
            if once and not pulled.items:
                return
