"""The step that a person speaks of: it must be in review, and as the person saw it."""

from __future__ import annotations

from orbit_sdk.engine.decision import Refusal
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, Step, StepState
from orbit_sdk.engine.turn import Turn
from orbit_sdk.errors import Code, Detail


def find_review(turn: Turn, step_key: str, expected_revision: int) -> Step | Refusal:
    """The step in review, at the revision that was looked at."""
    if turn.head.state in TERMINAL_INSTANCE_STATES:
        return refusal(f"the workflow is {turn.head.state.value}")
    step = turn.steps.get(step_key)
    if step is None or step.state is not StepState.NEEDS_REVIEW:
        return refusal(f"the step {step_key} is not in review")
    if step.revision != expected_revision:
        reason = f"expected {expected_revision}, the current revision is {step.revision}"
        return Refusal(Code.FAILED_PRECONDITION, reason, (Detail("expected_revision", reason),))
    return step


def refusal(reason: str) -> Refusal:
    """The state of things does not allow it."""
    return Refusal(Code.FAILED_PRECONDITION, reason)
