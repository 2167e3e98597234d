"""The trace of the workflow function that is running on this thread."""

from __future__ import annotations

from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.problems import BuildError, Problem, caller_place
from orbit_sdk.handlers.recording import RECORDER

__all__ = ["current_trace"]


def current_trace(what: str) -> Trace:
    """The trace to record into. Raises BuildError when no workflow function runs here."""
    recorder = RECORDER.get()
    if isinstance(recorder, Trace):
        return recorder
    found = f"{what} was called outside a workflow function, where it declares nothing"
    instead = "call it inside a function decorated with @orbit.workflow"
    raise BuildError([Problem("OUTSIDE_WORKFLOW", found, instead, caller_place())])
