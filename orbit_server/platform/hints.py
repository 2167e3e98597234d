"""What this node learns from its own commits, handed to whoever can use it. Hints save waiting; they never
carry work, so losing one only costs time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

log = logging.getLogger(__name__)

H = TypeVar("H")


class Hints:
    """Listeners by type of hint. Everything runs on the event loop, and listeners return at once."""

    def __init__(self) -> None:
        self._listeners: dict[type, list[Callable[[Any], None]]] = {}

    def listen(self, hint: type[H], listener: Callable[[H], None]) -> None:
        """Call the listener with every hint of exactly this type."""
        self._listeners.setdefault(hint, []).append(listener)

    def publish(self, hints: Sequence[object]) -> None:
        """Tell the listeners. One that fails is logged and never stops the others."""
        for hint in hints:
            for listener in self._listeners.get(type(hint), ()):
                try:
                    listener(hint)
                except Exception:
                    log.exception("a listener of %s failed", type(hint).__name__)
