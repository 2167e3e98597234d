"""Signals: acceptance, matching with waits, leftovers.

A wait is open while its step waits; it consumes one signal. When it closes, every pending signal of its type
and key that names no step becomes its leftover: an old approval must not approve the next stage.
"""

from __future__ import annotations

from orbit_sdk.engine.commands import AcceptSignal
from orbit_sdk.engine.decision import Refusal
from orbit_sdk.engine.events import SIGNAL_ACCEPTED
from orbit_sdk.engine.matching import has_expired, is_open_wait, may_serve
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import signal_ref, wait_id
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, Signal, SignalState, Step, StepState
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.errors import Code, Detail
from orbit_sdk.values.json_strict import Json

MATCHED = "WAIT_MATCHED"
MOVED_NOTHING = "STILL_PENDING"
TIME_OVER = "EXPIRED"
WAIT_OVER = "WAIT_TIMED_OUT"
TIMED_OUT = "TIMED_OUT"
FINISHED = "INSTANCE_FINISHED"


def accepted_too_late(turn: Turn, signal: Signal) -> bool:
    """Whether the only wait it could serve is one whose time was over when it was accepted.

    It does not matter whether a clock has looked at that wait yet: one that is still open, one that a person
    decides on and, where the caller loaded it, one that took its time-out exit count alike.
    """
    late = any(
        step.reason == TIMED_OUT and step.signal == signal.signal and may_serve(signal, step, keep=True)
        for step in turn.closed.values()
    )
    for step in turn.steps.values():
        if step.signal != signal.signal or not may_serve(signal, step, keep=True):
            continue
        if is_open_wait(step) and not _is_over(step, turn.now):
            return False
        late = late or _is_over(step, turn.now)
    return late


def find_wait(turn: Turn, signal: Signal) -> Step | None:
    """The open wait that a newly accepted signal serves: the oldest, then by step key."""
    found = [
        step
        for step in turn.steps.values()
        if is_open_wait(step)
        and not _is_over(step, turn.now)
        and may_serve(signal, step, turn.node(step).keep_early)
        and not turn.is_stopped(step.step_key)
    ]
    return min(found, key=lambda step: (step.opened_at, step.step_key), default=None)


def find_signal(turn: Turn, step: Step, *, accepted_until: int | None = None) -> Signal | None:
    """The oldest pending signal that serves this wait; signals whose own time is over expire on the way."""
    keep = turn.node(step).keep_early
    for signal in tuple(turn.pending):
        if not may_serve(signal, step, keep):
            continue
        if accepted_until is not None and signal.accepted_at > accepted_until:
            continue
        if has_expired(signal, turn.now):
            drop(turn, signal, SignalState.EXPIRED, TIME_OVER)
            continue
        return signal
    return None


def consume(turn: Turn, signal: Signal, step: Step) -> str:
    """One wait takes one signal: its body and meta become facts. Returns the body's reference."""
    body = turn.body_of(signal)
    turn.pending.remove(signal)
    turn.put_signal(
        altered(
            signal,
            state=SignalState.CONSUMED,
            revision=signal.revision + 1,
            disposition=MATCHED,
            consumed_step=step.step_key,
            consumed_wait_id=wait_id(step.id),
        ),
        signal,
    )
    turn.know(step.step_key, "result", body.body)
    turn.know(step.step_key, "meta", body.meta)
    return signal_ref(signal.id)


def drop(turn: Turn, signal: Signal, state: SignalState, disposition: str) -> None:
    """A pending signal that will serve nobody."""
    turn.pending.remove(signal)
    turn.put_signal(
        altered(signal, state=state, revision=signal.revision + 1, disposition=disposition), signal
    )


def close_wait(turn: Turn, step: Step) -> None:
    """The wait is over: what it leaves behind serves only further activations of the same step."""
    if step.signal is None:
        return
    for index, signal in enumerate(turn.pending):
        unaddressed = signal.step_key is None and signal.activation_id is None and signal.leftover_of is None
        if unaddressed and signal.signal == step.signal and signal.match_key == step.match_key:
            marked = altered(signal, leftover_of=step.step_key, revision=signal.revision + 1)
            turn.pending[index] = marked
            turn.put_signal(marked, signal)


def expire_pending(turn: Turn) -> bool:
    """Marks the pending signals whose own time is over; false when there is none."""
    over = [signal for signal in turn.pending if has_expired(signal, turn.now)]
    for signal in over:
        drop(turn, signal, SignalState.EXPIRED, TIME_OVER)
    return bool(over)


def reject_all(turn: Turn) -> None:
    """The end of the instance: nothing stays pending for ever."""
    expire_pending(turn)
    for signal in tuple(turn.pending):
        drop(turn, signal, SignalState.REJECTED, FINISHED)


def complete_wait(turn: Turn, step: Step, signal: Signal) -> None:
    """A WAIT got its signal."""
    ref = consume(turn, signal, step)
    close_wait(turn, step)
    turn.close(step, StepState.COMPLETED, result_ref=ref, exit_taken="next")
    turn.follow(step.step_key, "next")


def receive(turn: Turn, command: AcceptSignal) -> Refusal | Step | None:
    """Stores a signal; the open wait it serves, if any, is returned (it is not consumed yet)."""
    signal = altered(command.signal, accepted_at=turn.now)
    ended = turn.ended is not None or turn.head.state in TERMINAL_INSTANCE_STATES
    if ended:
        _store(turn, signal, SignalState.REJECTED, FINISHED)
        return None
    if has_expired(signal, turn.now):
        _store(turn, signal, SignalState.EXPIRED, TIME_OVER)
        return None
    if accepted_too_late(turn, signal):
        _store(turn, signal, SignalState.EXPIRED, WAIT_OVER)
        return None
    wait = find_wait(turn, signal)
    if wait is None and len(turn.pending) >= turn.limits.pending_signals:
        limit = turn.limits.pending_signals
        return Refusal(
            Code.RESOURCE_EXHAUSTED,
            f"{limit} signals of this workflow wait to be matched already",
            (Detail("signal", f"at most {limit} unmatched signals per workflow"),),
        )
    _store(turn, signal, SignalState.PENDING, None)
    turn.bodies[signal.id] = command.body
    return wait


def _store(turn: Turn, signal: Signal, state: SignalState, disposition: str | None) -> None:
    stored = altered(signal, state=state, disposition=disposition, revision=1)
    turn.put_signal(stored, None)
    if state is SignalState.PENDING:
        turn.pending.append(stored)
    payload: dict[str, Json] = {"signal_id": signal.id, "signal": signal.signal, "state": state.value}
    if disposition is not None:
        payload["disposition"] = disposition
    turn.leads.append(Lead(SIGNAL_ACCEPTED, payload, state.value, "SIGNAL", signal.id))


def _is_over(step: Step, now: int) -> bool:
    return step.deadline_at is not None and now > step.deadline_at
