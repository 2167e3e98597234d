"""`decide`: the one door into the engine. Pure: the same arguments give the same answer, ids included."""

from __future__ import annotations

from orbit_sdk.definition.evaluate import Facts, MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.advance import START, run
from orbit_sdk.engine.commands import (
    DEFAULT_ENGINE_LIMITS,
    AcceptSignal,
    Advance,
    ApplyReport,
    Cancel,
    Command,
    DecideReview,
    EngineLimits,
    ExpireSignals,
    GrantBudget,
    Pause,
    ReportEngineError,
    Resume,
    StartInstance,
    TimePassed,
)
from orbit_sdk.engine.control import cancel, effects_kept, pause, resume
from orbit_sdk.engine.decision import Answer, Missing, Refusal
from orbit_sdk.engine.due import time_passed
from orbit_sdk.engine.errors import engine_error
from orbit_sdk.engine.finish import finish
from orbit_sdk.engine.grants import grant_budget
from orbit_sdk.engine.receive import accept_signal
from orbit_sdk.engine.reports import apply_report
from orbit_sdk.engine.reviews import decide_review
from orbit_sdk.engine.shape import Plan
from orbit_sdk.engine.signals import expire_pending
from orbit_sdk.engine.start import new_instance, start
from orbit_sdk.engine.state import State
from orbit_sdk.engine.turn import MissingBody, Turn


def decide(
    plan: Plan,
    state: State | None,
    command: Command,
    now: int,
    facts: Facts,
    limits: EngineLimits = DEFAULT_ENGINE_LIMITS,
) -> Answer:
    """What a command does to an instance at `now` (microseconds; not before `state.instance.last`).

    `state` is None exactly for StartInstance. `facts` raises MissingFact for what the caller did not load;
    the answer is then Missing, and deciding again with more loaded is always right, because nothing happened.
    """
    before = None if state is None else state.instance
    if isinstance(command, StartInstance):
        state = State(new_instance(plan, command, now))
    assert state is not None, "only StartInstance has no state"
    turn = Turn(plan, state, command.seed, now, facts, limits)
    try:
        refused = _dispatch(turn, command)
        if refused is not None:
            return refused
        return finish(turn, before, effects_kept(turn) if isinstance(command, Cancel) else ())
    except MissingFact as missing:
        return Missing(facts=frozenset({missing.key}) | _reads(turn))
    except MissingBody as missing:
        return Missing(signals=frozenset({missing.signal_id}))


def _dispatch(turn: Turn, command: Command) -> Refusal | None:
    match command:
        case ApplyReport(report=report):
            turn.applied = apply_report(turn, report)
            run(turn)
        case TimePassed(activation_id=activation_id, report=report):
            turn.applied = time_passed(turn, activation_id, report)
            run(turn)
        case ExpireSignals():
            turn.applied = expire_pending(turn)
        case Advance():
            turn.applied = bool(turn.queue) and not turn.paused
            run(turn)
        case ReportEngineError(activation_id=activation_id, message=message):
            turn.applied = engine_error(turn, activation_id, message)
        case AcceptSignal():
            return accept_signal(turn, command)
        case StartInstance():
            return start(turn, command)
        case Pause() | Resume() | Cancel() | DecideReview() | GrantBudget():
            return _order(turn, command)
    return None


def _order(turn: Turn, command: Pause | Resume | Cancel | DecideReview | GrantBudget) -> Refusal | None:
    """What a person orders."""
    match command:
        case Pause():
            return pause(turn, command)
        case Resume():
            return resume(turn, command)
        case Cancel():
            return cancel(turn, command)
        case DecideReview():
            return decide_review(turn, command)
        case GrantBudget():
            return grant_budget(turn, command)


def _reads(turn: Turn) -> frozenset[FactKey]:
    """All that the exit being followed may read, so that a caller who loads in rounds needs few of them."""
    edge = turn.following
    if edge is None:
        return frozenset()
    return turn.plan.start_reads if edge == START else turn.plan.reads.get(edge, frozenset())
