"""What others do to tasks inside their own transaction. Weave uses only this; commands of Pulse end here too.

Every function works on rows the transaction holds: the task named in "tasks", and its attempts named in
"attempts" (by task id) wherever an open attempt may have to be closed. Every change that a workflow must see
writes an event and an inbox row with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.engine.records import altered
from orbit_sdk.errors import FailedPrecondition, NotFound
from orbit_sdk.values.canonical import canonical_json, digest_of_text
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.ids import evidence_id_of, inbox_id_of
from orbit_server.pulse.tasks import holdings
from orbit_server.pulse.tasks.decide import start as starting
from orbit_server.pulse.tasks.decide import stop as stopping
from orbit_server.pulse.tasks.decide.evidence import PROBE
from orbit_server.pulse.tasks.decide.move import Body, Move, Note
from orbit_server.pulse.tasks.decide.stop import Resolution, Verdict
from orbit_server.pulse.tasks.decide.submit import NewTask, submit
from orbit_server.pulse.tasks.hints import (
    AttemptEnded,
    CancelWanted,
    InboxWritten,
    OfferWithdrawn,
    TaskReady,
    TasksDueAt,
)
from orbit_server.pulse.tasks.lifecycle import TERMINAL, AttemptKind, ErrorCode, TaskState
from orbit_server.pulse.tasks.records import Attempt, Evidence, InboxRow, Task, TaskResult
from orbit_server.pulse.tasks.rows import ATTEMPTS, EVIDENCE, INBOX, TASK_RESULTS, TASK_SPECS, TASKS
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.events import EventRow

__all__ = [
    "NewTask",
    "Resolution",
    "Verdict",
    "apply",
    "cancel_task",
    "create_task",
    "detach_task",
    "error_text",
    "gate_tasks",
    "mark_inbox",
    "open_attempt",
    "settle_task",
    "task_of",
]

_SEEN_BY_WORKFLOWS = TERMINAL | {TaskState.NEEDS_REVIEW}
_TOLD = _SEEN_BY_WORKFLOWS | {TaskState.CANCELLING, TaskState.VERIFYING, TaskState.RETRY_WAIT}
_MESSAGES = {
    ErrorCode.ATTEMPTS_EXHAUSTED: "every attempt failed",
    ErrorCode.EXPIRED: "no attempt could start in time",
    ErrorCode.EFFECT_UNKNOWN: "it is not known whether the effect happened",
    ErrorCode.LATE_SUCCESS: "an attempt that was given up reported success later",
    ErrorCode.INVALID_RESULT: "the handler returned a value that cannot be used",
    ErrorCode.NEEDS_PERSON: "the handler asked for a person",
    ErrorCode.VERIFICATION_EXHAUSTED: "verification gave no answer in time",
    ErrorCode.CANCELLED: "the task was cancelled",
    ErrorCode.DETACHED: "nobody waits for this task any more",
    ErrorCode.RESOLVED_BY_RETRY: "a person decided to retry it as a new task",
    ErrorCode.RESOLVED_BY_RECOVERY: "a person decided to run the step again",
    ErrorCode.RESOLVED: "a person settled it",
    ErrorCode.NOT_READ_ONLY: "the worker declares that its handler is not READ_ONLY; a probe does not run it",
}


def create_task(book: Book, new: NewTask, *, counted: int = 0) -> Task:
    """Insert the rows of a task. A workflow's task writes no event: its step's event tells of it.

    `counted`: the backlogs in which the caller has counted it.
    """
    task, spec = submit(new, book.now)
    if counted:
        task = altered(task, counted=counted)
    if task.concurrency_key is not None or task.fairness_key is not None:
        task = _lined_up(book, task)
    book.insert(TASKS, task)
    book.insert(TASK_SPECS, spec)
    if task.instance_id is None:
        _tell(book, task, "task.submitted")
    _hint_ready(book, task)
    return task


def cancel_task(book: Book, task_id: Id, reason: str | None = None) -> Task:
    """Cancel what has not started, ask what runs. Repeating it changes nothing. Needs "tasks", "attempts"."""
    task = task_of(book, task_id)
    attempt = open_attempt(book, task)
    done = stopping.cancel(task, attempt, book.now)
    if done.move is None:
        return task
    after = apply(book, task, attempt, done.move, reason=reason)
    _withdrawn(book, task, attempt)
    if done.tell and attempt is not None and attempt.session_id is not None:
        book.after_commit(CancelWanted(attempt.session_id, attempt.id))
    return after


def gate_tasks(book: Book, task_ids: Iterable[Id], closed: bool) -> None:
    """Close (pause) or open (resume) the gate of these tasks; offers are withdrawn. Needs "tasks",
    "attempts".
    """
    moves = []
    for task_id in task_ids:
        task = task_of(book, task_id)
        attempt = open_attempt(book, task)
        move = starting.gate(task, attempt, closed, book.now)
        if move is not None:
            moves.append((task, attempt, move))
    holdings.require(book, [(task, move.task, attempt, move.attempt) for task, attempt, move in moves])
    for task, attempt, move in moves:
        apply(book, task, attempt, move)
        if closed:
            _withdrawn(book, task, attempt)


def detach_task(book: Book, task_id: Id) -> Task:
    """The workflow no longer waits for it: unstarted it is cancelled, started it settles on its own."""
    task = task_of(book, task_id)
    attempt = open_attempt(book, task)
    move = stopping.detach(task, attempt, book.now)
    if move is None:
        return task
    after = apply(book, task, attempt, move)
    _withdrawn(book, task, attempt)
    return after


def settle_task(book: Book, task_id: Id, resolution: Resolution, reason: str | None = None) -> Task:
    """Settle a task in review as a person decided. One that is settled already stays as it is.

    No inbox row is written: the caller is the workflow that decides. Needs "tasks".

    Raises:
        FailedPrecondition: it is neither in review nor settled.
    """
    task = task_of(book, task_id)
    if task.state in TERMINAL:
        return task
    move = stopping.resolve(task, resolution, book.now)
    if move is None:
        raise FailedPrecondition(f"task {task_id} is {task.state}, not in review")
    return apply(book, task, None, move, reason=reason, inbox=False)


def mark_inbox(book: Book, inbox_id: Id, state: str) -> InboxRow:
    """Mark an inbox row APPLIED, STALE or ERROR. Needs "inbox"."""
    row = book.get(INBOX, inbox_id)
    if row is None:
        raise NotFound(f"inbox row {inbox_id} is gone")
    return row if row.state == state else book.change(INBOX, row, altered(row, state=state))


def task_of(book: Book, task_id: Id) -> Task:
    """The task as it stands; NotFound when there is none."""
    task = book.get(TASKS, task_id)
    if task is None:
        raise NotFound(f"there is no task {task_id}")
    return task


def open_attempt(book: Book, task: Task) -> Attempt | None:
    """The task's open attempt, or None."""
    return None if task.attempt_id is None else book.member(ATTEMPTS, task.id, task.attempt_id)


def apply(
    book: Book,
    task: Task,
    attempt: Attempt | None,
    move: Move,
    *,
    reason: str | None = None,
    inbox: bool = True,
) -> Task:
    """Write a decision: the rows, what is stored beside them, and who has to know.

    `attempt` is the one the decision was about, as it was before; None when it opens a new one (or has none).
    """
    after, closing = move.task, move.attempt
    if _has_holdings(after, attempt):
        holdings.require(book, [(task, after, attempt, closing)])
        after = holdings.moved(book, task, after, holdings.freed_by(attempt, closing))
    if after is not task:
        book.change(TASKS, task, after)
    if closing is not None:
        if attempt is None:
            book.insert(ATTEMPTS, closing)
        else:
            book.change(ATTEMPTS, attempt, closing)
        if closing.outcome is not None:
            retried = after.state is TaskState.RETRY_WAIT
            book.after_commit(AttemptEnded(closing.outcome, retried))
    for note in move.notes:
        _keep(book, after, attempt, note)
    if after.state is not task.state and after.state in _TOLD:
        if after.probe_of is not None and after.state in TERMINAL and not move.notes:
            _keep(book, after, attempt, _unanswered(after))
        if after.state in TERMINAL:
            _store_end(book, after, move.body)
        _tell(book, after, "task.changed", reason=reason)
        if (
            inbox
            and after.state in _SEEN_BY_WORKFLOWS
            and after.instance_id is not None
            and not after.detached
        ):
            _post(book, after, after.instance_id)
    if starting.claimable(task) is None:
        _hint_ready(book, after)
    return after


def _withdrawn(book: Book, task: Task, attempt: Attempt | None) -> None:
    """The task is not for the worker any more that it was offered to, if it was."""
    if attempt is not None and attempt.session_id is not None and task.state is TaskState.OFFERED:
        book.after_commit(OfferWithdrawn(attempt.session_id, attempt.id))


def _has_holdings(task: Task, attempt: Attempt | None) -> bool:
    """Whether anything beside its own rows belongs to the task; for most nothing does."""
    return (
        task.concurrency_key is not None
        or task.fairness_key is not None
        or task.counted != 0
        or (attempt is not None and attempt.permits is not None)
    )


def _lined_up(book: Book, task: Task) -> Task:
    """A new task with its place in line. Where the rows of that are not at hand (a workflow works its keys
    out while it decides), it is due at once: the command of that brings them.
    """
    try:
        holdings.require(book, [(None, task, None, None)])
    except MissingRow:
        book.after_commit(TasksDueAt(book.now))
        return altered(task, state=TaskState.SCHEDULED, due_at=book.now)
    return holdings.moved(book, None, task, None)


def error_text(code: str, message: str, details: Json = None) -> str:
    """The stored form of an error."""
    error: dict[str, Json] = {"code": code, "message": message}
    if details is not None:
        error["details"] = details
    return canonical_json(error)


def _store_end(book: Book, task: Task, body: Body | None) -> None:
    result = None if body is None else body.result
    error = None if body is None else body.error
    if task.state is not TaskState.SUCCEEDED:
        error = _final_error(task, error)
        result = None
    stored_digest = body.digest if body is not None and result is not None else None
    book.insert(TASK_RESULTS, TaskResult(task.id, result, error, stored_digest, book.now))


def _final_error(task: Task, said: str | None) -> str:
    """The task's own error: what the handler said where that is what ended it, else Orbit's code and
    sentence.
    """
    code = task.error_code or ErrorCode.RESOLVED
    if said is not None and code not in _MESSAGES:
        return said
    if said is None:
        return error_text(code, _MESSAGES[ErrorCode(code)] if code in _MESSAGES else code)
    return f'{{"code":"{code}","last":{said},"message":"{_MESSAGES[ErrorCode(code)]}"}}'


def _keep(book: Book, task: Task, attempt: Attempt | None, note: Note) -> None:
    source = task.id if attempt is None else attempt.id
    evidence_id = evidence_id_of(source, note.digest)
    book.insert(
        EVIDENCE,
        Evidence(
            evidence_id,
            task.id if task.probe_of is None else task.probe_of,
            None if attempt is None else attempt.id,
            task.namespace_id,
            note.kind if task.probe_of is None else f"{PROBE}{note.kind}",
            note.body,
            note.digest,
            note.contradiction,
            book.now,
        ),
    )


def _unanswered(probe: Task) -> Note:
    """A probe ended without a word of anybody: it was cancelled, or nobody could be asked in time."""
    body = _final_error(probe, None)
    return Note(probe.state.value, body, digest_of_text(body), contradiction=False)


def _tell(book: Book, task: Task, kind: str, *, reason: str | None = None) -> None:
    payload: dict[str, Json] = {"task_id": task.id, "state": task.state.value}
    for name in ("instance_id", "activation_id", "step_key", "business_key", "error_code"):
        value = getattr(task, name)
        if value is not None:
            payload["workflow_id" if name == "instance_id" else name] = str(value)
    if reason is not None:
        payload["reason"] = reason
    book.emit(
        EventRow(
            id=IdSeed(book.now, f"event:{task.id}").nth(task.revision),
            namespace_id=task.namespace_id,
            workflow_id=None,
            task_id=task.id,
            aggregate_kind="task",
            aggregate_id=task.id,
            aggregate_revision=task.revision,
            type=kind,
            state_scope="TASK",
            state=task.state.value,
            step_key=task.step_key,
            signal_id=None,
            occurred_at=book.now,
            payload=canonical_json(payload),
        )
    )


def _post(book: Book, task: Task, instance_id: Id) -> None:
    inbox_id = inbox_id_of(task.id, task.revision)
    book.insert(
        INBOX,
        InboxRow(
            inbox_id,
            task.namespace_id,
            instance_id,
            task.id,
            task.activation_id or "",
            task.revision,
            "PENDING",
            book.now,
        ),
    )
    book.after_commit(InboxWritten(inbox_id, instance_id, task.id))


def _hint_ready(book: Book, task: Task) -> None:
    kind = starting.claimable(task)
    if kind is not None:
        book.after_commit(
            TaskReady(
                task.id,
                task.namespace_id,
                task.queue_id,
                task.queue,
                task.handler,
                task.handler_version,
                verify=kind is AttemptKind.VERIFY,
            )
        )
