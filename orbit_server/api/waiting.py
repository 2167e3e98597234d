"""Long polls: a reader waits until an instance has moved, woken by this node's commits.

Other nodes' commits are found by looking again once a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from orbit_sdk.values.ids import Id
from orbit_server.platform.hints import Hints
from orbit_server.weave.state.apply import InstanceMoved

LOOK_AGAIN_S: Final = 1.0


class Movements:
    """Who waits for which instance."""

    def __init__(self, hints: Hints) -> None:
        self._waiting: dict[Id, dict[asyncio.Event, Callable[[InstanceMoved], bool]]] = {}
        hints.listen(InstanceMoved, self._moved)

    def watch(self, instance_id: Id, is_news: Callable[[InstanceMoved], bool]) -> asyncio.Event:
        """An event that is set when the instance moves in a way that is news; give it back with `leave`."""
        event = asyncio.Event()
        self._waiting.setdefault(instance_id, {})[event] = is_news
        return event

    def leave(self, instance_id: Id, event: asyncio.Event) -> None:
        """Nobody waits for this event any more."""
        events = self._waiting.get(instance_id)
        if events is not None:
            events.pop(event, None)
            if not events:
                del self._waiting[instance_id]

    def waited_for(self, instance_id: Id) -> bool:
        """Whether somebody waits for this instance now."""
        return instance_id in self._waiting

    def release(self) -> None:
        """Wake everybody: the server stops."""
        for events in self._waiting.values():
            for event in events:
                event.set()

    def _moved(self, hint: InstanceMoved) -> None:
        for event, is_news in self._waiting.get(hint.instance_id, {}).items():
            if is_news(hint):
                event.set()


async def wait_for(event: asyncio.Event, gone: asyncio.Future[Any], seconds: float) -> None:
    """Until the event is set, the caller is gone, or it is time to look again."""
    moved: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait(
            {moved, gone}, timeout=min(seconds, LOOK_AGAIN_S), return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        moved.cancel()
