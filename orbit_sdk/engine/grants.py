"""More attempts, rounds or time for a step in review: added to what it had, never reset, and capped."""

from __future__ import annotations

from orbit_sdk.engine.commands import GrantBudget
from orbit_sdk.engine.decision import Refusal
from orbit_sdk.engine.events import RECOVERED
from orbit_sdk.engine.find import find_review, refusal
from orbit_sdk.engine.shape import Poll, Spec, Task, Wait
from orbit_sdk.engine.state import Granted
from orbit_sdk.engine.tasks import latest_start
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.errors import Code, Detail

GRANT = "GRANT"
"""What the event of a recovery says in place of a verdict."""

_TAKES = {"attempts": (Task, Poll), "rounds": (Poll,), "time_ms": (Task, Poll, Wait)}


def grant_budget(turn: Turn, command: GrantBudget) -> Refusal | None:
    """Adds to the budgets of the activation in review, which stays in review: a re-run is a decision of its
    own.
    """
    step = find_review(turn, command.step_key, command.expected_revision)
    if isinstance(step, Refusal):
        return step
    if turn.is_stopped(step.step_key):
        return refusal("what is being stopped is not run again; conclude it")
    asked = {"attempts": command.attempts, "rounds": command.rounds, "time_ms": command.time_ms}
    node = turn.node(step)
    granted = _added(step.granted, command)
    refused = _refuse_kind(asked, node.spec, node.kind) or _refuse_more(turn, granted)
    if refused is not None:
        return refused
    deadline = step.deadline_at
    if command.time_ms:
        deadline = (deadline or turn.now) + command.time_ms * 1000
        refused = _refuse_past(turn, node.spec, deadline)
        if refused is not None:
            return refused
    turn.change(step, granted=granted, deadline_at=deadline)
    turn.leads.append(
        Lead(
            RECOVERED,
            {"step_key": step.step_key, "activation_id": step.id, "verdict": GRANT, **_said(asked)},
        )
    )
    return None


def _added(before: Granted | None, command: GrantBudget) -> Granted:
    known = before or Granted()
    return Granted(
        known.attempts + command.attempts, known.rounds + command.rounds, known.time_ms + command.time_ms
    )


def _said(asked: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in asked.items() if amount}


def _refuse_kind(asked: dict[str, int], spec: Spec, kind: str) -> Refusal | None:
    if not any(asked.values()):
        return _invalid("attempts", "rounds or time_ms has to be more than 0")
    for name, amount in asked.items():
        if amount < 0:
            return _invalid(name, "is added, so it cannot be negative")
        if amount and not isinstance(spec, _TAKES[name]):
            return _invalid(name, f"is nothing that a {kind} has")
    return None


def _refuse_more(turn: Turn, granted: Granted) -> Refusal | None:
    limits = turn.limits
    for name, amount, most in (
        ("attempts", granted.attempts, limits.granted_attempts),
        ("rounds", granted.rounds, limits.granted_rounds),
        ("time_ms", granted.time_ms, limits.granted_ms),
    ):
        if amount > most:
            reason = f"would come to {amount}; at most {most} may be granted in all; conclude the step"
            return Refusal(Code.FAILED_PRECONDITION, f"{name} {reason}", (Detail(name, reason),))
    return None


def _refuse_past(turn: Turn, spec: Spec, deadline: int) -> Refusal | None:
    """Time that leaves the deadline in the past would change nothing."""
    last = latest_start(spec.call, deadline) if isinstance(spec, Task) else None
    short = turn.now - (deadline if last is None else last)
    if short < 0:
        return None
    more = short // 1000 + 1
    reason = f"its time was over so long ago that this is not enough; grant at least {more} ms more"
    return Refusal(Code.FAILED_PRECONDITION, f"time_ms: {reason}", (Detail("time_ms", reason),))


def _invalid(field: str, reason: str) -> Refusal:
    return Refusal(Code.INVALID_ARGUMENT, f"{field} {reason}", (Detail(field, reason),))
