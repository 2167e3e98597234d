"""Who waits for something new in a subscription, woken by this node's fan-outs; other nodes' are found by
looking again once a second.
"""

from __future__ import annotations

import asyncio

from orbit_sdk.values.ids import Id
from orbit_server.platform.hints import Hints
from orbit_server.pulse.subscriptions.fanout import Delivered


class Arrivals:
    """Events of the event loop, by subscription."""

    def __init__(self, hints: Hints) -> None:
        self._waiting: dict[Id, set[asyncio.Event]] = {}
        hints.listen(Delivered, self._arrived)

    def watch(self, subscription_id: Id) -> asyncio.Event:
        """An event that is set when something arrives; give it back with `leave`."""
        event = asyncio.Event()
        self._waiting.setdefault(subscription_id, set()).add(event)
        return event

    def leave(self, subscription_id: Id, event: asyncio.Event) -> None:
        """Nobody waits for this event any more."""
        events = self._waiting.get(subscription_id)
        if events is not None:
            events.discard(event)
            if not events:
                del self._waiting[subscription_id]

    def _arrived(self, hint: Delivered) -> None:
        for event in self._waiting.get(hint.subscription_id, ()):
            event.set()
