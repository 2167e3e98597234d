"""The state of an instance, computed from facts: terminal, then the first of this order that holds.

| state | when |
| --- | --- |
| NEEDS_REVIEW | a step is in review |
| CANCELLING | a cancel is intended |
| RUNNING | an exit is still to be followed, or a task is not settled |
| WAITING | all that is left waits for a signal or for time |
"""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.engine.state import InstanceState, Step, StepState


def summarize(live: Iterable[Step], *, can_advance: bool, cancel_requested: bool) -> InstanceState:
    """The state of an instance that has not ended."""
    busy = can_advance
    for step in live:
        if step.state is StepState.NEEDS_REVIEW:
            return InstanceState.NEEDS_REVIEW
        if step.state is StepState.WAITING_TASK:
            busy = True
    if cancel_requested:
        return InstanceState.CANCELLING
    return InstanceState.RUNNING if busy else InstanceState.WAITING
