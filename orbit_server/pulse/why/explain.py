"""From facts to sentences: pure. Every condition that is not met, and what happens next by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from orbit_sdk.values.ids import Id
from orbit_server.pulse.queues.queries import Paused
from orbit_server.pulse.tasks.decide.finish import Ground, lease_ended
from orbit_server.pulse.tasks.decide.move import last_start_of
from orbit_server.pulse.tasks.decide.stop import may_have_effect
from orbit_server.pulse.tasks.keys.decide import UNCLAIMED_US
from orbit_server.pulse.tasks.lifecycle import TERMINAL, VERIFIED, Block, Recovery, TaskState, stricter
from orbit_server.pulse.tasks.limits.decide import wait_for
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import PulseTimes
from orbit_server.pulse.why.facts import Facts, Session

_ASKED_LATER: Final = "what happened is asked again after a pause"


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that is not so yet. Instants are UTC microseconds."""

    code: str
    message: str
    since: int | None = None
    until: int | None = None
    tasks: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """What happens by itself, and when at the latest (None: as soon as it can)."""

    message: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """`moves`: nothing stands in the way; it takes its turn, or is being worked on."""

    moves: bool
    conditions: tuple[Condition, ...]
    next: Next | None


def explain(facts: Facts, times: PulseTimes) -> Explanation:
    """Why the task is where it is."""
    task = facts.task
    if task.state in TERMINAL:
        code = f" ({task.error_code})" if task.error_code else ""
        settled = Condition("SETTLED", f"the task is {task.state}{code} and stays so", since=task.settled_at)
        return Explanation(moves=False, conditions=(settled,), next=None)
    if task.state is TaskState.NEEDS_REVIEW:
        why = f"a person has to decide ({task.review_class or 'UNKNOWN'}: {task.error_code or 'no code'})"
        review = Condition("REVIEW", why, since=task.last)
        return Explanation(moves=False, conditions=(review, *_intent(task)), next=None)
    if task.attempt_id is not None:
        return _under_way(facts, times)
    conditions = tuple(_conditions(facts))
    shown = (*(conditions or _turn(facts)), *_intent(task))
    return Explanation(not conditions, shown, _next(facts, conditions))


def _intent(task: Task) -> Iterator[Condition]:
    """A cancel that waits for the truth."""
    if not task.cancel_requested:
        return
    if task.state is TaskState.NEEDS_REVIEW:
        yield Condition("CANCELLING", "a cancel was asked for; it waits for the same decision")
    elif task.attempt_id is not None and task.state is TaskState.CANCELLING:
        yield Condition("CANCELLING", "a cancel was asked for; the worker has been told")
    else:
        yield Condition("CANCELLING", "a cancel was asked for; first it is found out what happened")


# --- an attempt is open ------------------------------------------------------------------------------------


def _under_way(facts: Facts, times: PulseTimes) -> Explanation:
    task, attempt = facts.task, facts.attempt
    who = "a worker" if attempt is None else f"worker {attempt.worker} (build {attempt.build})"
    lease = task.lease_until or facts.now
    ends = lease + times.lease_skew_ms * 1_000
    started = None if attempt is None else attempt.started_at
    if started is None:
        offered = Condition("OFFERED", f"offered to {who}, which has not asked to start yet", until=lease)
        after = Next("the offer is taken back and made to another worker", ends)
        return Explanation(moves=True, conditions=(offered,), next=after)
    word = "verifies it" if task.state is TaskState.VERIFYING else "runs it"
    found = [Condition("RUNNING", f"{who} {word}", since=started, until=lease)]
    found += _intent(task)
    until = None if attempt is None else attempt.progress_until
    if attempt is not None and until is not None:
        said = "has said nothing yet" if attempt.progress_at is None else "last reported"
        silence = f"its handler {said}; it has to report progress every {attempt.progress_timeout_ms} ms"
        found.append(Condition("PROGRESS", silence, since=attempt.progress_at or started, until=until))
    limit = None if attempt is None else attempt.limit_at
    if limit is not None and limit <= lease:
        end = "its time is over"
    elif until is not None and until <= lease:
        end = "its time without progress is over"
    else:
        end = "its lease ends unless it is renewed"
    after = Next(f"a result comes, or {end}{_without_result(facts, attempt, ends, times)}", ends)
    return Explanation(moves=True, conditions=tuple(found), next=after)


def _without_result(facts: Facts, attempt: Attempt | None, ends: int, times: PulseTimes) -> str:
    """What the same decision that a sweeper will take makes of the task if nothing is heard until then."""
    if attempt is None:
        return ""
    move = lease_ended(facts.task, attempt, Ground(ends + 1, facts.policy, times))
    if move is None:
        return ""
    after = move.task
    code = f" ({after.error_code})" if after.error_code else ""
    words = {
        TaskState.RETRY_WAIT: "it is tried again",
        TaskState.VERIFYING: "a verify handler is asked what happened",
        TaskState.NEEDS_REVIEW: f"a person is asked{code}",
        TaskState.FAILED: f"it fails{code}",
    }
    return f": then {words.get(after.state, f'it is {after.state}{code}')}"


# --- no attempt is open ------------------------------------------------------------------------------------


def _conditions(facts: Facts) -> Iterator[Condition]:
    task = facts.task
    if task.due_at is not None:
        what = {
            TaskState.SCHEDULED: "it is not due yet",
            TaskState.RETRY_WAIT: f"it backs off before attempt {task.attempts_used + 1}",
            TaskState.VERIFYING: _ASKED_LATER,
            TaskState.CANCELLING: _ASKED_LATER,
        }.get(task.state, "it backs off before it is offered again")
        yield Condition("NOT_DUE", what, until=task.due_at)
    if task.gate and task.state not in VERIFIED:
        yield _stopped("PAUSED_WORKFLOW", f"workflow {task.instance_id} is paused", facts.gate)
    if facts.queue_paused:
        yield _stopped("PAUSED_QUEUE", f"queue {task.queue} is paused", facts.queue_pause)
    yield from _key(facts)
    yield from _limits(facts)
    yield from _workers(facts)


def _stopped(code: str, what: str, who: Paused | None) -> Condition:
    if who is None:
        return Condition(code, what)
    reason = f": {who.reason}" if who.reason else ""
    return Condition(code, f"{what} by {who.actor}{reason}", since=who.at)


def _key(facts: Facts) -> Iterator[Condition]:
    task, key = facts.task, facts.key
    if key is None or task.state is not TaskState.READY or task.blocked != Block.KEY:
        return
    room = "1 task" if key.most == 1 else f"{key.most} tasks"
    holders = ", ".join(f"task {one.id} ({one.state})" for one in key.holders[:3]) or "no task any more"
    ahead = f", {key.ahead} wait before it" if key.ahead else ""
    until = min((one.lease_until for one in key.holders if one.lease_until is not None), default=None)
    yield Condition(
        "KEY",
        f"key {task.concurrency_key} admits {room} at a time and is held by {holders}{ahead}",
        until=until,
        tasks=tuple(one.id for one in key.holders),
    )


def _limits(facts: Facts) -> Iterator[Condition]:
    for row in facts.limits:
        wait = wait_for(row, facts.now)
        if wait is None:
            continue
        whose = "the namespace" if row.queue is None else f"queue {row.queue}"
        if wait.us is None:
            yield Condition("LIMIT", f"{whose} runs {row.running} of at most {row.running_max} tasks")
        else:
            rate = f"{row.rate} per {row.rate_per_ms} ms, {row.burst} at once"
            yield Condition("RATE", f"{whose} has spent its rate ({rate})", until=facts.now + wait.us)


def _workers(facts: Facts) -> Iterator[Condition]:
    task = facts.task
    key = f"{task.handler}@{task.handler_version}"
    on_queue = [one for one in facts.sessions if task.queue in one.queues]
    if not on_queue:
        yield Condition("NO_WORKER", f"no connected worker takes from queue {task.queue}")
        return
    able = [one for one in on_queue if _serves(one, key, facts)]
    if not able:
        yield Condition("NO_HANDLER", _nobody_offers(on_queue, key, facts))
        return
    if all(one.blocked for one in able):
        builds = ", ".join(sorted({one.build or "?" for one in able}))
        yield Condition("BLOCKED_BUILD", f"every worker that offers {key} has a blocked build ({builds})")


def _serves(session: Session, key: str, facts: Facts) -> bool:
    found = session.handlers.get(key)
    if found is None:
        return False
    return facts.task.state not in VERIFIED or bool(found.get("verify"))


def _nobody_offers(on_queue: list[Session], key: str, facts: Facts) -> str:
    task = facts.task
    if task.state in VERIFIED and any(key in one.handlers for one in on_queue):
        return f"no worker on queue {task.queue} can verify {key}"
    refused = sorted(one.worker for one in on_queue if key in one.refused)
    if refused:
        reason = next(one.refused[key] for one in on_queue if key in one.refused)
        return f"{key} of {', '.join(refused)} on queue {task.queue} is refused: {reason}; then start it anew"
    others = sorted(
        {
            int(name.rpartition("@")[2])
            for one in on_queue
            for name in one.handlers
            if name.rpartition("@")[0] == task.handler
        }
    )
    what = f"no worker on queue {task.queue} offers version {task.handler_version} of {task.handler}"
    return f"{what} (offered: {', '.join(map(str, others))})" if others else f"{what}, nor any other version"


def _turn(facts: Facts) -> Iterator[Condition]:
    """Nothing is missing but a free slot."""
    task = facts.task
    key = f"{task.handler}@{task.handler_version}"
    able = [
        one
        for one in facts.sessions
        if task.queue in one.queues and _serves(one, key, facts) and not one.blocked
    ]
    ahead = "it is next in line"
    if facts.ahead:
        ahead = "1 task goes before it" if facts.ahead == 1 else f"{facts.ahead} tasks go before it"
    does = "verify" if task.state in VERIFIED else "offer"
    third = "verifies" if task.state in VERIFIED else "offers"
    many = f"1 worker {third}" if len(able) == 1 else f"{len(able)} workers {does}"
    yield Condition("TURN", f"{many} {key}; {ahead}")
    levels = {str(one.handlers[key].get("recovery")) for one in able} - {task.recovery.value}
    for level in sorted(levels):
        effective = stricter(task.recovery, Recovery(level))
        yield Condition(
            "RECOVERY", f"it was accepted as {task.recovery}, a worker declares {level}: {effective} counts"
        )


def _next(facts: Facts, conditions: tuple[Condition, ...]) -> Next | None:
    """The earliest thing that happens without anybody."""
    task = facts.task
    coming: list[Next] = []
    codes = {one.code for one in conditions}
    if task.due_at is not None:
        ready = "its verify handler may be asked" if task.state in VERIFIED else "it becomes ready"
        coming.append(Next(ready, task.due_at))
    limit = last_start_of(task) if task.state not in VERIFIED else task.verify_deadline_at
    if limit is not None:
        end = "a person is asked" if task.state in VERIFIED or may_have_effect(task) else "it expires"
        coming.append(Next(f"{end}: no attempt may start after that", limit))
    if "RATE" in codes:
        until = min(one.until for one in conditions if one.code == "RATE" and one.until is not None)
        coming.append(Next("the rate allows another start", until))
    if "KEY" in codes and facts.key is not None:
        at = facts.key.row.admit_at or facts.now + UNCLAIMED_US
        coming.append(
            Next("the key is looked at again; it is admitted when a holder ends and it is first", at)
        )
    if not conditions:
        turn = "the next free slot of a worker takes it"
        return Next(f"{turn}, or {coming[-1].message}", limit) if limit is not None else Next(turn)
    stuck = codes & {"PAUSED_WORKFLOW", "PAUSED_QUEUE", "NO_WORKER", "NO_HANDLER", "BLOCKED_BUILD"}
    if "LIMIT" in codes and not stuck:
        coming.append(Next("it takes its turn when a running task ends"))
    return min(coming, key=lambda one: one.at or facts.now + 10**15, default=None)
