"""The end of a turn: ends the instance when nothing is left, and turns the bookkeeping into a `Decision`."""

from __future__ import annotations

from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.decision import Decision, Event, SignalChange, StepChange
from orbit_sdk.engine.events import outcomes, signal_event, step_event, workflow_events
from orbit_sdk.engine.records import altered
from orbit_sdk.engine.refs import pending_exit
from orbit_sdk.engine.shape import Fail
from orbit_sdk.engine.signals import reject_all
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES, Instance, InstanceState
from orbit_sdk.engine.summary import summarize
from orbit_sdk.engine.turn import Turn


def finish(turn: Turn, before: Instance | None, effects_kept: tuple[str, ...] = ()) -> Decision:
    """The decision of a turn. May raise MissingFact: the error of a failed workflow is a stored fact."""
    head = turn.head
    frozen = head.state in TERMINAL_INSTANCE_STATES
    if not frozen:
        _end_if_done(turn)
    if not _changed(turn, before):
        return Decision(before=before, instance=head, applied=turn.applied)
    state = head.state if frozen else _state(turn)
    leads = outcomes(turn, state)
    events = workflow_events(turn, leads, state)
    steps = tuple(StepChange(entry.before, entry.after) for entry in turn.touched.values())
    signals = tuple(SignalChange(entry.before, entry.after) for entry in turn.signals.values())
    return Decision(
        before=before,
        instance=head if frozen else _new_head(turn, state, len(events)),
        steps=steps,
        signals=signals,
        payloads=tuple(turn.payloads),
        events=_in_order(turn, events, steps, signals),
        effects=tuple(turn.effects),
        applied=turn.applied,
        output=turn.output,
        error=turn.error,
        effects_kept=effects_kept,
        transitions=turn.transitions,
    )


def _end_if_done(turn: Turn) -> None:
    """Nothing live and nothing to follow: only a cancel or a failure can have led there without an END."""
    if turn.ended is None and not turn.steps and not turn.queue:
        if turn.cancel_requested:
            turn.ended = InstanceState.CANCELLED
        elif turn.stopping is not None:
            turn.ended = InstanceState.FAILED
            turn.error = _error(turn, turn.stopping)
    if turn.ended is not None:
        turn.queue.clear()
        reject_all(turn)


def _error(turn: Turn, step_key: str) -> tuple[str, str]:
    spec = turn.plan.nodes[step_key].spec
    if isinstance(spec, Fail):
        return spec.code, spec.message
    failure = turn.get(FactKey("step", step_key, "failure"))
    found = failure if isinstance(failure, dict) else {}
    return str(found.get("code")), str(found.get("message"))


def _changed(turn: Turn, before: Instance | None) -> bool:
    return bool(
        before is None
        or turn.touched
        or turn.signals
        or turn.leads
        or turn.ended is not None
        or turn.transitions
    )


def _state(turn: Turn) -> InstanceState:
    if turn.ended is not None:
        return turn.ended
    return summarize(
        turn.steps.values(), can_advance=bool(turn.queue), cancel_requested=turn.cancel_requested
    )


def _new_head(turn: Turn, state: InstanceState, events: int) -> Instance:
    head = turn.head
    checkpoint = tuple(pending_exit(*edge) for edge in turn.queue)
    return altered(
        head,
        state=state,
        paused=turn.paused,
        cancel_requested=turn.cancel_requested,
        stopping=turn.stopping,
        control_version=turn.control_version,
        revision=head.revision + max(events, 1),
        pending_signals=len(turn.pending),
        checkpoint=checkpoint,
        advance_due_at=turn.now if checkpoint and not turn.paused else None,
        ended_at=None if turn.ended is None else turn.now,
        last=turn.now,
    )


def _in_order(
    turn: Turn, workflow: list[Event], steps: tuple[StepChange, ...], signals: tuple[SignalChange, ...]
) -> tuple[Event, ...]:
    """What the command was, what it did to signals and steps, what became of the instance."""
    told = len(turn.leads)
    head = turn.head
    changed = [signal_event(turn, head, change) for change in signals]
    moved = [step_event(turn, head, change) for change in steps]
    between = [event for event in (*changed, *moved) if event is not None]
    return (*workflow[:told], *between, *workflow[told:])
