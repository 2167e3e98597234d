"""Which signal serves which wait: type and key equal, oldest accepted first, leftovers and addresses
respected.
"""

from __future__ import annotations

from orbit_sdk.definition.evaluate import Misfit
from orbit_sdk.engine.state import Signal, Step, StepState
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

OPEN_WAIT_STATES = frozenset({StepState.WAITING_SIGNAL, StepState.WAITING_TASK, StepState.WAITING_TIME})

MAX_KEY_CHARS = 255
"""Keys are stored in indexed columns: the longest canonical match, concurrency key or fairness key."""


def match_key(value: Json) -> str:
    """The comparable form of a match value: its canonical JSON, so that `1` and `"1"` stay apart."""
    return canonical_json(value)


def wait_key(value: Json) -> str:
    """The match key of a wait. Misfit for what could not tell one piece of business from another."""
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (isinstance(value, str | int) or whole):
        raise Misfit("a wait is matched by a text or an integer")
    key = match_key(value)
    if len(key) > MAX_KEY_CHARS:
        raise Misfit(f"the match of a wait has more than {MAX_KEY_CHARS} characters")
    return key


def is_open_wait(step: Step) -> bool:
    """A WAIT that waits, or a POLL (in a round or between rounds) that may end by a receipt."""
    return step.signal is not None and step.state in OPEN_WAIT_STATES


def may_serve(signal: Signal, step: Step, keep: bool) -> bool:
    """Whether this pending signal may be consumed by this wait, time left aside.

    `keep` is `early: KEEP` of the wait: it also takes what an earlier wait left over.
    """
    if signal.signal != step.signal or signal.match_key != step.match_key:
        return False
    if signal.activation_id is not None:
        return signal.activation_id == step.id
    if signal.step_key is not None:
        return signal.step_key == step.step_key
    return signal.leftover_of is None or keep or signal.leftover_of == step.step_key


def has_expired(signal: Signal, now: int) -> bool:
    """Compared at matching, sweep or no sweep; the last instant still counts."""
    return signal.expires_at is not None and now > signal.expires_at
