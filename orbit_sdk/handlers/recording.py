"""The seam through which a called handler reaches the workflow that is being built.

Handlers do not know the builder. While a workflow function runs, the builder stands in this context
variable, so two threads, or two nested builds, never meet each other's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from orbit_sdk.handlers.options import StepOptions
from orbit_sdk.handlers.problems import BuildCode, BuildError

__all__ = ["RECORDER", "Recorder"]


class Recorder(Protocol):
    """What a handler's call needs of the builder."""

    def step(
        self,
        handler: Any,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        options: StepOptions,
    ) -> Any:
        """Declare a step that runs `handler` (a `Handler`) and give the reference to its result."""
        ...

    def refuse(self, code: BuildCode, found: str, instead: str) -> BuildError:
        """Remember a misuse, so that it cannot be swallowed, and give the error to raise."""
        ...


RECORDER: ContextVar[Recorder | None] = ContextVar("orbit_recorder", default=None)
