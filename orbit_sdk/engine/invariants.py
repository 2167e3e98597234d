"""Things that must be impossible, as functions over what an instance went through.

A history is the decisions of one instance in the order they were stored; a violation is a sentence. The
numbers are those of the list in the documentation. What concerns leases, permits, lost commands and audit
rows is not visible to the engine and is checked on the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from orbit_sdk.engine.decision import CreateTask, Decision
from orbit_sdk.engine.events import RECOVERED
from orbit_sdk.engine.grants import GRANT
from orbit_sdk.engine.shape import GOTO, Call, Plan, Poll, Task
from orbit_sdk.engine.state import (
    TERMINAL_INSTANCE_STATES,
    Granted,
    Instance,
    InstanceState,
    ReviewClass,
    SignalState,
    State,
    Step,
    StepState,
)
from orbit_sdk.engine.summary import summarize

History: TypeAlias = Sequence[Decision]
Rule: TypeAlias = Callable[[Plan, History], Iterator[str]]

_NOTHING: Final = Granted()


def no_start_while_stopped(_plan: Plan, history: History) -> Iterator[str]:
    """1: nothing new is ordered once a pause, a cancel or the end is stored."""
    for decision in history:
        head = decision.instance
        created = [effect for effect in decision.effects if isinstance(effect, CreateTask)]
        if created and (head.paused or head.cancel_requested or head.state in TERMINAL_INSTANCE_STATES):
            yield f"the task of {created[0].step_key} was ordered by an instance that is {_shown(head)}"


def once_only(_plan: Plan, history: History) -> Iterator[str]:
    """4: once is once: a successor, a consumption, an applied report, the task of a round."""
    yield from _opened_once(history)
    yield from _consumed_once(history)
    rounds: set[tuple[str, int]] = set()
    for order in _orders(history):
        if (order.activation_id, order.round) in rounds:
            yield f"{order.step_key} ordered two tasks for round {order.round} of one activation"
        rounds.add((order.activation_id, order.round))


def _opened_once(history: History) -> Iterator[str]:
    opened: set[tuple[str, int]] = set()
    for change in (change for decision in history for change in decision.steps):
        before, after = change.before, change.after
        if before is None:
            if (after.step_key, after.activation_no) in opened:
                yield f"{after.step_key} was opened twice as activation {after.activation_no}"
            opened.add((after.step_key, after.activation_no))
        elif before.task_id == after.task_id and after.task_revision < before.task_revision:
            yield f"{after.step_key} applied an older report of its task"


def _consumed_once(history: History) -> Iterator[str]:
    waits: set[str] = set()
    signals: set[str] = set()
    for signal in (changed.after for decision in history for changed in decision.signals):
        if signal.consumed_wait_id is None:
            continue
        if signal.consumed_wait_id in waits:
            yield f"the wait {signal.consumed_wait_id} consumed two signals"
        if signal.id in signals:
            yield f"the signal {signal.id} was consumed twice"
        waits.add(signal.consumed_wait_id)
        signals.add(signal.id)


def _orders(history: History) -> Iterator[CreateTask]:
    for decision in history:
        for effect in decision.effects:
            if isinstance(effect, CreateTask):
                yield effect


def final_is_final(_plan: Plan, history: History) -> Iterator[str]:
    """5: a finished instance and a closed activation never change; nothing starts in a finished instance."""
    closed: set[str] = set()
    settled: set[str] = set()
    for decision in history:
        before = decision.before
        if before is not None and before.state in TERMINAL_INSTANCE_STATES:
            if decision.instance != before:
                yield f"an instance that was {before.state.value} changed"
            if decision.steps or decision.effects:
                yield f"an instance that was {before.state.value} still worked"
        for change in decision.steps:
            if change.after.id in closed:
                yield f"{change.after.step_key} changed after it was closed"
            if not change.after.live:
                closed.add(change.after.id)
        for changed in decision.signals:
            if changed.after.id in settled:
                yield f"the signal {changed.after.id} changed after it was settled"
            if changed.after.state is not SignalState.PENDING:
                settled.add(changed.after.id)


def within_budget(plan: Plan, history: History) -> Iterator[str]:
    """6: never more rounds or attempts than defined and granted, across recovery too; deadlines move only by
    what was granted, and only a person grants.
    """
    deadlines: dict[str, int] = {}
    known: dict[str, Granted] = {}
    for decision in history:
        granting = any(event.payload.get("verdict") == GRANT for event in decision.events)
        for change in decision.steps:
            step = change.after
            granted = step.granted or _NOTHING
            defined = None if step.deadline_at is None else step.deadline_at - granted.time_ms * 1000
            if defined is not None and deadlines.setdefault(step.step_key, defined) != defined:
                yield f"the deadline of {step.step_key} moved"
            spec = plan.nodes[step.step_key].spec
            if isinstance(spec, Poll) and step.round > spec.max_rounds + granted.rounds:
                yield f"{step.step_key} began round {step.round} of {spec.max_rounds + granted.rounds}"
            if not granting and _is_more(known.get(step.step_key, _NOTHING), granted):
                yield f"{step.step_key} got more than it was granted"
            known[step.step_key] = granted
        for effect in decision.effects:
            if isinstance(effect, CreateTask):
                yield from _order_within_budget(plan, decision, effect)


def _is_more(known: Granted, granted: Granted) -> bool:
    return (
        granted.attempts > known.attempts or granted.rounds > known.rounds or granted.time_ms > known.time_ms
    )


def _order_within_budget(plan: Plan, decision: Decision, order: CreateTask) -> Iterator[str]:
    call = _call(plan, order.step_key)
    step = next((c.after for c in decision.steps if c.after.id == order.activation_id), None)
    spent = 0 if step is None else step.attempts_spent
    granted = (None if step is None else step.granted) or _NOTHING
    allowed = call.retry.max_attempts + granted.attempts
    if order.attempts_max < 1 or order.attempts_max + spent > allowed:
        yield f"{order.step_key} may try {order.attempts_max} times after {spent} of {allowed}"
    if order.total_deadline_at < decision.instance.last:
        yield f"{order.step_key} was ordered after its deadline"


def unknown_needs_a_person(plan: Plan, history: History) -> Iterator[str]:
    """7: a step whose effect is unknown is left by a person's decision or the truth about its task."""
    for decision in history:
        decided = any(event.type == RECOVERED for event in decision.events)
        for change in decision.steps:
            before, after = change.before, change.after
            if before is None or before.state is not StepState.NEEDS_REVIEW or decided:
                continue
            told = after.task_revision > before.task_revision or after.task_id != before.task_id
            if before.review_class is ReviewClass.UNKNOWN and after.state is not before.state and not told:
                yield f"{after.step_key} left a review of an unknown effect by itself"
        yield from _caught_by_the_definite(plan, decision, decided=decided)


def _caught_by_the_definite(plan: Plan, decision: Decision, *, decided: bool) -> Iterator[str]:
    for change in decision.steps:
        node = plan.nodes[change.after.step_key]
        caught = change.after.exit_taken == node.failure_exit and node.policy == GOTO
        if caught and isinstance(node.spec, Task) and change.after.failure_ref is None and not decided:
            yield f"{change.after.step_key} took its catch arm without a definite failure"


def always_waits_for_something(_plan: Plan, history: History) -> Iterator[str]:
    """8: an instance is finished, in review, paused, or waits for something that is stored and found by an
    index.
    """
    live: dict[str, Step] = {}
    for decision in history:
        for change in decision.steps:
            if change.after.live:
                live[change.after.step_key] = change.after
            elif live.get(change.after.step_key, change.after).id == change.after.id:
                live.pop(change.after.step_key, None)
        yield from check_state(State(decision.instance, live))


def check_state(state: State) -> list[str]:
    """The part of 8 that one stored state shows: what `orbit verify` asks of every instance."""
    head = state.instance
    found = [reason for step in state.steps.values() if (reason := _rests_on_nothing(step)) is not None]
    if head.state in TERMINAL_INSTANCE_STATES:
        if state.steps or head.checkpoint or head.pending_signals:
            found.append(f"an instance that is {head.state.value} still has something to do")
        return found
    if not state.steps and not head.checkpoint:
        found.append("the instance waits for nothing")
    if (head.advance_due_at is not None) != (bool(head.checkpoint) and not head.paused):
        found.append("the stored checkpoint would not be found, or a scan would find none")
    expected = summarize(
        state.steps.values(), can_advance=bool(head.checkpoint), cancel_requested=head.cancel_requested
    )
    if expected is not head.state:
        found.append(f"the instance says {head.state.value} but its steps say {expected.value}")
    return found


def _rests_on_nothing(step: Step) -> str | None:
    held = {
        StepState.WAITING_TASK: step.task_id is not None,
        StepState.WAITING_SIGNAL: step.due_at is not None and step.signal is not None,
        StepState.WAITING_TIME: step.due_at is not None,
        StepState.NEEDS_REVIEW: step.review_class is not None and step.reason is not None,
        StepState.PENDING: step.arms is not None,
    }
    if not held.get(step.state, False):
        return f"{step.step_key} is {step.state.value} and nothing will ever move it"
    return None


def revisions_are_true(_plan: Plan, history: History) -> Iterator[str]:
    """9: an event names a revision that its aggregate really had, and no two events of one aggregate share
    one.
    """
    seen: set[tuple[str, int]] = set()
    latest: dict[str, int] = {}
    for decision in history:
        ended = decision.before is not None and decision.before.state in TERMINAL_INSTANCE_STATES
        latest[decision.instance.id] = decision.instance.revision
        for change in decision.steps:
            if change.before is not None and change.after.revision <= change.before.revision:
                yield f"{change.after.step_key} changed without a new revision"
        stored = {change.after.id: change.after.revision for change in decision.signals}
        for event in decision.events:
            key = (event.aggregate_id, event.aggregate_revision)
            if key in seen and not ended:
                yield f"two events of {event.type} share revision {event.aggregate_revision}"
            seen.add(key)
            limit = latest.get(event.aggregate_id, stored.get(event.aggregate_id))
            if limit is not None and event.aggregate_revision > limit:
                yield f"{event.type} names revision {event.aggregate_revision}, which never existed"


def summary_is_told(_plan: Plan, history: History) -> Iterator[str]:
    """9: an instance never ends, and never goes into review, without an event that says so."""
    for decision in history:
        before = None if decision.before is None else decision.before.state
        after = decision.instance.state
        told = {event.state for event in decision.events if event.state_scope == "WORKFLOW"}
        loud = after in TERMINAL_INSTANCE_STATES or after is InstanceState.NEEDS_REVIEW
        if loud and after is not before and after.value not in told:
            yield f"the instance became {after.value} without an event"


RULES: Final[tuple[Rule, ...]] = (
    no_start_while_stopped,
    once_only,
    final_is_final,
    within_budget,
    unknown_needs_a_person,
    always_waits_for_something,
    revisions_are_true,
    summary_is_told,
)


def violations(plan: Plan, history: History) -> list[str]:
    """Every violation of every rule; empty is good."""
    return [f"{rule.__name__}: {sentence}" for rule in RULES for sentence in rule(plan, history)]


def _call(plan: Plan, step_key: str) -> Call:
    spec = plan.nodes[step_key].spec
    assert isinstance(spec, Task | Poll)
    return spec.call


def _shown(head: Instance) -> str:
    return "paused" if head.paused else "being cancelled" if head.cancel_requested else head.state.value
