"""Commands of people and of programs that submit: submit, cancel, resolve a review, retry.

Those of workers are in `attempts.py`, those of time in `due.py`, the claim in `dispatch/claim.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from orbit_sdk.errors import Detail, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.pulse.ids import queue_id_of, retry_id_of
from orbit_server.pulse.tasks.decide.evidence import adopted, adopted_result, require_denial, trace_of
from orbit_server.pulse.tasks.decide.move import Body
from orbit_server.pulse.tasks.decide.policy import policy_of
from orbit_server.pulse.tasks.decide.stop import Resolution, Verdict, may_have_effect, resolve
from orbit_server.pulse.tasks.fairness.operations import rows_for as flow_rows_for
from orbit_server.pulse.tasks.holdings import may_need, more_of
from orbit_server.pulse.tasks.keys.operations import rows_for as key_rows_for
from orbit_server.pulse.tasks.lifecycle import TERMINAL, ErrorCode, TaskState
from orbit_server.pulse.tasks.limits.operations import count_in
from orbit_server.pulse.tasks.operations import NewTask, apply, cancel_task, create_task, error_text
from orbit_server.pulse.tasks.records import Evidence, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, EVIDENCE, TASK_SPECS, TASKS
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Order

TaskAnswer = dict[str, Json]
"""`{"task_id", "state", "revision"}`: what these commands answer (kept with their key, so a repeat gets the
same).
"""


def answer_of(task: Task) -> TaskAnswer:
    """The task as the answer of a command."""
    return {"task_id": task.id, "state": task.state.value, "revision": str(task.revision)}


# --- submit ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubmitTask(Order):
    """Accept a task. Relative times are counted when it is accepted, limits from the time it may start.

    `new.due_at`, `new.latest_start_at` and `new.total_deadline_at` are for absolute instants. `limits`: rows
    of limits that may restrict the backlog; a full one refuses the task (ResourceExhausted).
    """

    key: CommandKey | None
    new: NewTask
    delay_ms: int | None = None
    start_within_ms: int | None = None
    total_timeout_ms: int | None = None
    limits: tuple[Id, ...] = ()

    @property
    def lane(self) -> str:
        return self.limits[0] if self.limits else self.new.id

    def needs(self) -> Needs:
        new = self.new
        ids = [new.id] if new.linked_to is None else [new.id, new.linked_to]
        if new.concurrency_key is None and new.fairness_key is None and not self.limits:
            return {"tasks": ids}
        found: dict[str, Iterable[Id]] = {"tasks": ids, "limits": self.limits}
        if new.concurrency_key is not None:
            found |= key_rows_for(new.namespace_id, new.queue, new.concurrency_key)
        if new.fairness_key is not None:
            found |= flow_rows_for(queue_id_of(new.namespace_id, new.queue), new.fairness_key)
        return found

    def decide(self, book: Book) -> Done[TaskAnswer]:
        known = book.get(TASKS, self.new.id)
        if known is None:
            self._check_link(book)
            counted = count_in(book, self.limits) if self.limits else 0
            known = create_task(book, self._timed(book.now), counted=int(counted))
        return Done(answer_of(known), subject_id=known.id)

    def _check_link(self, book: Book) -> None:
        linked = None if self.new.linked_to is None else book.get(TASKS, self.new.linked_to)
        if self.new.linked_to is not None and (
            linked is None or linked.namespace_id != self.new.namespace_id
        ):
            raise InvalidArgument.at("linked_to", "names no task of this namespace")

    def _timed(self, now: int) -> NewTask:
        new = self.new
        due_at = new.due_at if self.delay_ms is None else now + self.delay_ms * 1000
        first = now if due_at is None else max(now, due_at)
        latest, total = new.latest_start_at, new.total_deadline_at
        if self.start_within_ms is not None:
            latest = first + self.start_within_ms * 1000
        if self.total_timeout_ms is not None:
            total = first + self.total_timeout_ms * 1000
        key_id = None if self.key is None else self.key.id
        return replace(
            new, due_at=due_at, latest_start_at=latest, total_deadline_at=total, idempotency_id=key_id
        )


# --- a person's orders -------------------------------------------------------------------------------------


class Basis(StrEnum):
    """What a decision about an unknown effect rests on."""

    PROVEN = "PROVEN"
    ACCEPTED_RISK = "ACCEPTED_RISK"


@dataclass(frozen=True, slots=True)
class By:
    """Who orders it and why; becomes the audit row. `evidence` is canonical JSON."""

    actor: str
    reason: str
    seed: IdSeed
    on_behalf_of: str | None = None
    basis: Basis | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class CancelTask(Order):
    """Cancel a standalone task: at once while it has not started, else as an intent the worker is told of."""

    key: CommandKey | None
    namespace_id: Id
    task_id: Id
    by: By

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        return {"tasks": [self.task_id], "attempts": [self.task_id]}

    def more(self, book: Book) -> Needs:
        return more_of(book, [self.task_id])

    def decide(self, book: Book) -> Done[TaskAnswer]:
        task = standalone(book, self.task_id, self.namespace_id, "cancel")
        after = cancel_task(book, task.id, self.by.reason)
        if after is not task:
            audit(book, "task.cancel", task, after, self.by)
        return Done(answer_of(after), subject_id=task.id)


@dataclass(frozen=True, slots=True)
class ResolveReview(Order):
    """A person's decision on a standalone task in review.

    SUCCEEDED takes `result` (canonical JSON), or adopts the stored evidence `adopt`; FAILED takes `code`. For
    any other verdict `adopt` has to say that no effect can happen any more.
    """

    key: CommandKey | None
    namespace_id: Id
    task_id: Id
    expected_revision: int
    verdict: Verdict
    by: By
    result: str | None = None
    result_digest: str | None = None
    code: str | None = None
    message: str = ""
    adopt: Id | None = None

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        found: dict[str, list[Id]] = {"tasks": [self.task_id]}
        if self.adopt is not None:
            found |= {"attempts": [self.task_id], "evidence": [self.adopt]}
        return found

    def decide(self, book: Book) -> Done[TaskAnswer]:
        task = standalone(book, self.task_id, self.namespace_id, "review")
        check_decision(task, self.expected_revision, self.by, adopts=self.adopt is not None)
        adopts = adopted_by(book, task, self.adopt, denies=self.verdict is not Verdict.SUCCEEDED)
        move = resolve(task, Resolution(self.verdict, self._body(adopts), self._code()), book.now)
        if move is None:
            raise FailedPrecondition(f"the task is {task.state}, not in review")
        after = apply(book, task, None, move, reason=self.by.reason)
        audit(book, "task.resolve", task, after, self.by, adopts)
        return Done(answer_of(after), subject_id=task.id)

    def _code(self) -> str | None:
        return self.code if self.verdict is Verdict.FAILED else None

    def _body(self, adopts: Evidence | None) -> Body:
        if self.verdict is not Verdict.SUCCEEDED:
            code = self.code or (
                ErrorCode.CANCELLED if self.verdict is Verdict.CANCELLED else ErrorCode.RESOLVED
            )
            return Body(error=error_text(code, self.message or self.by.reason))
        if adopts is not None:
            return adopted_result(adopts)
        if self.result is None:
            raise InvalidArgument.at("result", "is needed to conclude a task as succeeded")
        return Body(result=self.result, digest=self.result_digest)


@dataclass(frozen=True, slots=True)
class RetryTask(Order):
    """Run a standalone task again as a new one that names it (`retry_of`), with a budget of its own.

    A task in review is settled by it (RESOLVED_BY_RETRY); a failed, expired or cancelled one stays as it is.
    Each task is retried at most once: the retry of a retry names the newest. The effect key stays. A task of
    a priority above `priority_max`, the cap of whoever orders it, is refused: it is for others to retry.
    """

    key: CommandKey | None
    namespace_id: Id
    task_id: Id
    expected_revision: int
    by: By
    attempts_max: int
    total_timeout_ms: int | None = None
    adopt: Id | None = None
    priority_max: int | None = None

    @property
    def lane(self) -> str:
        return self.task_id

    def needs(self) -> Needs:
        found = {"tasks": [self.task_id, retry_id_of(self.task_id)], "task_specs": [self.task_id]}
        if self.adopt is not None:
            found |= {"attempts": [self.task_id], "evidence": [self.adopt]}
        return found

    def more(self, book: Book) -> Needs:
        task = book.get(TASKS, self.task_id)
        if task is None:
            return {}
        found: dict[str, Iterable[Id]] = {**may_need(task)}
        if task.fairness_key is not None:
            found |= flow_rows_for(task.queue_id, task.fairness_key)
        return found

    def decide(self, book: Book) -> Done[TaskAnswer]:
        task = standalone(book, self.task_id, self.namespace_id, "retry")
        if self.priority_max is not None and task.priority > self.priority_max:
            raise PermissionDenied(
                f"the task has priority {task.priority}; this credential starts work with a priority of at "
                f"most {self.priority_max}: let a credential without that cap retry it",
                [Detail("priority", f"is more than {self.priority_max}")],
            )
        if book.get(TASKS, retry_id_of(task.id)) is not None:
            raise FailedPrecondition(
                "the task was retried before; retry its newest retry",
                [Detail("task_id", f"was retried as {retry_id_of(task.id)}")],
            )
        settled = task
        adopts = adopted_by(book, task, self.adopt, denies=True)
        if task.state is TaskState.NEEDS_REVIEW:
            check_decision(task, self.expected_revision, self.by, adopts=adopts is not None)
            move = resolve(task, Resolution(Verdict.FAILED, None, ErrorCode.RESOLVED_BY_RETRY), book.now)
            if move is not None:
                settled = apply(book, task, None, move, reason=self.by.reason)
        elif task.state not in TERMINAL or task.state is TaskState.SUCCEEDED:
            raise FailedPrecondition(f"a task that is {task.state} cannot be retried")
        else:
            check_decision(task, self.expected_revision, self.by, adopts=adopts is not None)
        new = create_task(book, self._new(book, task))
        audit(book, "task.retry", task, settled, self.by, adopts)
        return Done(answer_of(new), subject_id=new.id)

    def _new(self, book: Book, task: Task) -> NewTask:
        spec = book.get(TASK_SPECS, task.id)
        if spec is None:
            raise NotFound(f"task {task.id} has no parameters any more")
        total = None if self.total_timeout_ms is None else book.now + self.total_timeout_ms * 1000
        return NewTask(
            id=retry_id_of(task.id),
            namespace_id=task.namespace_id,
            queue=task.queue,
            handler=task.handler,
            handler_version=task.handler_version,
            parameters=spec.parameters,
            parameters_digest=spec.digest,
            effect_key=spec.effect_key,
            recovery=task.recovery,
            can_verify=task.can_verify,
            policy=policy_of(spec.policy),
            attempts_max=self.attempts_max,
            attempt_timeout_ms=task.attempt_timeout_ms,
            total_deadline_at=total,
            priority=task.priority,
            # A person has just decided in the light of the stored evidence.
            late_success=False,
            generation=task.generation,
            business_key=task.business_key,
            concurrency_key=task.concurrency_key,
            fairness_key=task.fairness_key,
            labels=spec.labels,
            parameters_version=spec.parameters_version,
            submitted_by=self.by.actor,
            retry_of=task.id,
            trace=spec.trace,
            idempotency_id=None if self.key is None else self.key.id,
        )


# --- shared ------------------------------------------------------------------------------------------------


def standalone(book: Book, task_id: Id, namespace_id: Id, operation: str) -> Task:
    """The task, if it may be managed by itself.

    Raises:
        NotFound: absent, or of another namespace.
        FailedPrecondition: it belongs to a workflow, whose own operations apply.
    """
    task = book.get(TASKS, task_id)
    if task is None or task.namespace_id != namespace_id:
        raise NotFound(f"there is no task {task_id}")
    if task.instance_id is not None:
        raise FailedPrecondition(
            f"the task belongs to workflow {task.instance_id}: use the workflow's own {operation}",
            [Detail("workflow_id", task.instance_id), Detail("step_key", task.step_key or "")],
        )
    return task


def check_decision(task: Task, expected_revision: int, by: By, *, adopts: bool) -> None:
    """A decision names the revision it looked at; one about an unknown effect also basis and evidence."""
    if task.revision != expected_revision:
        raise FailedPrecondition(
            f"the task is at revision {task.revision}, not {expected_revision}",
            [Detail("expected_revision", f"is {expected_revision}, the task is at {task.revision}")],
        )
    problems: list[Detail] = []
    if not by.reason.strip():
        problems.append(Detail("reason", "is empty"))
    if may_have_effect(task):
        if by.basis is None:
            problems.append(Detail("basis", "is needed where an effect may have happened"))
        if by.evidence is None and not adopts:
            problems.append(Detail("evidence", "is needed where an effect may have happened"))
    if problems:
        raise InvalidArgument("the decision is incomplete", problems)


def adopted_by(book: Book, task: Task, evidence_id: Id | None, *, denies: bool) -> Evidence | None:
    """The evidence that a decision rests on, if it names one. `denies`: it has to say that no effect can
    happen any more. Needs "evidence" and "attempts". Raises NotFound, FailedPrecondition.
    """
    if evidence_id is None:
        return None
    found = adopted(book.get(EVIDENCE, evidence_id), evidence_id, task.id)
    if denies:
        require_denial(found, task.id, book.members(ATTEMPTS, task.id))
    return found


def audit(book: Book, action: str, before: Task, after: Task, by: By, adopts: Evidence | None = None) -> None:
    """Leave the trace of a management action; `adopts`: the evidence that it rests on."""
    book.insert(
        AUDIT,
        AuditRow(
            id=by.seed.nth(0),
            namespace_id=before.namespace_id,
            at=book.now,
            actor=by.actor,
            action=action,
            subject_kind="task",
            subject_id=before.id,
            on_behalf_of=by.on_behalf_of,
            reason=by.reason,
            basis=None if by.basis is None else by.basis.value,
            evidence=by.evidence,
            before_digest=digest(_looks(before)),
            after_digest=digest(_looks(after)),
            details=None if adopts is None else canonical_json(trace_of(adopts)),
        ),
    )


def _looks(task: Task) -> dict[str, Json]:
    return {
        "cancel_requested": task.cancel_requested,
        "error_code": task.error_code,
        "id": task.id,
        "revision": task.revision,
        "state": task.state.value,
    }
