"""Claiming: the command that opens attempts for reserved slots, and the offer that comes of each."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.sessions import Offer
from orbit_server.pulse.tasks.decide.move import Move
from orbit_server.pulse.tasks.decide.start import Claimant, claim
from orbit_server.pulse.tasks.holdings import tried_before
from orbit_server.pulse.tasks.keys.operations import key_of
from orbit_server.pulse.tasks.lifecycle import VERIFIED, AttemptKind, AttemptState
from orbit_server.pulse.tasks.limits.operations import may_take, take
from orbit_server.pulse.tasks.operations import apply
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASK_PROGRESS, TASK_SPECS, TASKS
from orbit_server.pulse.times import TIMES, PulseTimes
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.commands import Done, Keyless, Missing, Needs, Outcome


@dataclass(frozen=True, slots=True)
class Ticket:
    """One reserved slot for one task. The attempt's id is made before the transaction, so a rerun finds its
    own. `limits`: the rows of limits that this node knows of; each has to give a permit.
    """

    task_id: Id
    attempt_id: Id
    who: Claimant
    ready_number: int
    limits: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimTasks(Keyless):
    """Claim these tasks for these slots. Answers the offers that came of it by attempt id; the rest lost a
    race.
    """

    tickets: tuple[Ticket, ...]
    times: PulseTimes = TIMES

    @property
    def lane(self) -> str:
        if not self.tickets:
            return ""
        first = self.tickets[0]
        return first.limits[0] if first.limits else first.task_id

    def needs(self) -> Needs:
        ids = [ticket.task_id for ticket in self.tickets]
        limits = {limit_id for ticket in self.tickets for limit_id in ticket.limits}
        return {"tasks": ids, "task_specs": ids, "limits": limits} if limits else _plain(ids)

    def more(self, book: Book) -> Needs:
        asked = [ticket.task_id for ticket in self.tickets if _attempts_count(book, ticket)]
        again = [ticket.task_id for ticket in self.tickets if tried_before(book.get(TASKS, ticket.task_id))]
        found: dict[str, list[Id]] = {"attempts": asked} if asked else {}
        return {**found, "task_progress": again} if again else found

    def decide(self, book: Book) -> Outcome[dict[Id, Offer]]:
        offers = {}
        missing: dict[str, list[Id]] = {}
        for ticket in self.tickets:
            try:
                offer = claim_one(book, ticket, self.times)
            except MissingRow as found:
                # Such as the keys of tasks whose time is over: one rerun brings them all.
                for kind, ids in found.needs.items():
                    missing.setdefault(kind, []).extend(ids)
                continue
            if offer is not None:
                offers[ticket.attempt_id] = offer
        return Missing(missing) if missing else Done(offers)


def claim_one(book: Book, ticket: Ticket, times: PulseTimes) -> Offer | None:
    """Claim one task on the book; None when it is not there to be claimed any more. Needs "tasks",
    "task_specs".
    """
    task = book.get(TASKS, ticket.task_id)
    if task is None or task.namespace_id != ticket.who.namespace_id:
        return None
    spec = book.get(TASK_SPECS, task.id)
    if spec is None:
        return None
    progress = book.get(TASK_PROGRESS, task.id) if tried_before(task) else None
    if task.attempt_id == ticket.attempt_id:
        attempt = book.member(ATTEMPTS, task.id, ticket.attempt_id)
    else:
        earlier = book.members(ATTEMPTS, task.id) if task.state in VERIFIED else ()
        move = claim(task, earlier, ticket.who, ticket.attempt_id, book.now, times)
        if move is not None and ticket.limits:
            move = _permitted(book, move, ticket.limits)
        if move is None:
            return None
        attempt = move.attempt
        task = apply(book, task, None, move)
    if attempt is None:
        return None
    return Offer(
        attempt_id=attempt.id,
        task_id=task.id,
        namespace_id=task.namespace_id,
        generation=attempt.generation,
        attempt_no=attempt.attempt_no,
        kind=attempt.kind,
        started=attempt.state is AttemptState.RUNNING,
        queue=task.queue,
        handler=task.handler,
        handler_version=task.handler_version,
        recovery=attempt.recovery,
        lease_ms=_lease_ms(attempt),
        limit_ms=task.attempt_timeout_ms,
        parameters=spec.parameters,
        parameters_version=spec.parameters_version,
        effect_key=spec.effect_key,
        ready_number=ticket.ready_number,
        deadline_at=task.total_deadline_at,
        business_key=task.business_key,
        workflow_id=task.instance_id,
        activation_id=task.activation_id,
        step_key=task.step_key,
        round=task.round,
        asked_generation=attempt.asked_generation,
        # A verification finds out the truth that a cancel waits for: it is not stopped.
        cancel_requested=task.cancel_requested and attempt.kind is AttemptKind.RUN,
        trace=spec.trace,
        previous_progress=None if progress is None else progress.body,
        waited_us=max(0, attempt.offered_at - task.virtual_start),
        virtual_start=task.virtual_start,
        key=None if task.concurrency_key is None else key_of(task, task.concurrency_key),
        fair=task.fairness_key is not None,
    )


def _permitted(book: Book, move: Move, limits: tuple[Id, ...]) -> Move | None:
    """The move with a permit of every limit, where it opens an attempt; None when one of them is full."""
    if move.attempt is None:
        return move
    if not may_take(book, limits):
        return None
    return altered(move, attempt=altered(move.attempt, permits=take(book, limits)))


def _plain(ids: list[Id]) -> Needs:
    return {"tasks": ids, "task_specs": ids}


def _lease_ms(attempt: Attempt) -> int:
    return (attempt.lease_until - attempt.offered_at) // 1000


def _attempts_count(book: Book, ticket: Ticket) -> bool:
    """Earlier attempts are read for a verification, and for an attempt that an earlier run of this command
    opened.
    """
    task: Task | None = book.get(TASKS, ticket.task_id)
    return task is not None and (task.state in VERIFIED or task.attempt_id == ticket.attempt_id)
