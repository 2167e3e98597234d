"""What a caller had better load before it asks for a decision. A guess that is cheap and nearly always right;
what it misses is named by `Missing`.
"""

from __future__ import annotations

from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.advance import START
from orbit_sdk.engine.commands import (
    AcceptSignal,
    Advance,
    ApplyReport,
    Cancel,
    Command,
    DecideReview,
    ExpireSignals,
    GrantBudget,
    Pause,
    ReportEngineError,
    Resume,
    StartInstance,
    TimePassed,
)
from orbit_sdk.engine.refs import split_exit
from orbit_sdk.engine.shape import Plan
from orbit_sdk.engine.state import State

_NOTHING: frozenset[FactKey] = frozenset()


def needed_facts(plan: Plan, state: State | None, command: Command) -> frozenset[FactKey]:
    """Facts that the decision may read. A fact of a branch that was not taken does not exist: load those that
    do.

    The meta of a WAIT that a person concluded is null.
    """
    if isinstance(command, StartInstance):
        return plan.start_reads - {FactKey("input")}
    if state is None or isinstance(command, Pause | Cancel | ExpireSignals | GrantBudget | ReportEngineError):
        return _NOTHING
    match command:
        case ApplyReport(report=report):
            found = _of_activation(plan, state, report.activation_id)
        case TimePassed(activation_id=activation_id):
            found = _of_activation(plan, state, activation_id)
        case DecideReview(step_key=step_key):
            found = plan.reads_of(step_key) if step_key in plan.nodes else _NOTHING
        case AcceptSignal(signal=signal):
            found = _union(plan, [s.step_key for s in state.steps.values() if s.signal == signal.signal])
        case Resume(reports=reports):
            live = {report.activation_id for report in reports}
            due = [s.step_key for s in state.steps.values() if s.id in live or s.due_at is not None]
            return _union(plan, due) | _checkpoint(plan, state)
        case Advance():
            found = _NOTHING
    return found if state.instance.paused else found | _checkpoint(plan, state)


def _of_activation(plan: Plan, state: State, activation_id: str) -> frozenset[FactKey]:
    return _union(plan, [step.step_key for step in state.steps.values() if step.id == activation_id])


def _union(plan: Plan, step_keys: list[str]) -> frozenset[FactKey]:
    found = _NOTHING
    for key in step_keys:
        found = found | plan.reads_of(key)
    return found


def _checkpoint(plan: Plan, state: State) -> frozenset[FactKey]:
    found = _NOTHING
    for entry in state.instance.checkpoint:
        edge = split_exit(entry)
        if edge == START:
            found = found | plan.start_reads
        elif edge in plan.reads:
            found = found | plan.reads[edge]
        else:
            found = found | plan.nodes[edge[0]].own
    return found
