"""What a task holds or asks for beside its own rows: its key, permits, a backlog's place, its turn.

Most tasks have none of these, and nothing here reads or writes a row for them. Where rows are needed that the
transaction does not hold, everything that is missing is named at once, before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.fairness import operations as fairness
from orbit_server.pulse.tasks.keys import decide as keys
from orbit_server.pulse.tasks.keys import operations as key_rows
from orbit_server.pulse.tasks.lifecycle import TERMINAL, AttemptState, TaskState
from orbit_server.pulse.tasks.limits import operations as limits
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASKS
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.commands import Needs

_AT_REST = TERMINAL | {TaskState.NEEDS_REVIEW}


class MissingRows(MissingRow):
    """Several rows that this transaction has not loaded."""

    def __init__(self, needs: dict[str, list[Id]]) -> None:
        kind, ids = next(iter(needs.items()))
        super().__init__(kind, ids[0])
        self.needs: Needs = needs


def may_need(task: Task, attempt: Attempt | None = None) -> dict[str, list[Id]]:
    """Every row that any change of this task (and of this attempt of it) may have to read or write."""
    wanted: dict[str, list[Id]] = {}
    if attempt is not None and attempt.permits is not None:
        _add(wanted, {"limits": limits.permits_of(attempt.permits)})
    if task.counted:
        _add(wanted, {"limits": limits.backlog_ids(task.namespace_id, task.queue, task.counted)})
    if task.concurrency_key is not None:
        _add(wanted, key_rows.rows_of(task))
    if task.fairness_key is not None and task.state in (TaskState.SCHEDULED, TaskState.RETRY_WAIT):
        _add(wanted, fairness.rows_for(task.queue_id, task.fairness_key))
    return wanted


def tried_before(task: Task | None) -> bool:
    """Whether an earlier attempt may have left its progress: only then the next claim reads it."""
    return task is not None and (task.attempts_used > 0 or task.uncharged > 0)


def more_of(book: Book, task_ids: Iterable[Id]) -> dict[str, list[Id]]:
    """What a command on these tasks may need of this kind, once they (and perhaps attempts) are loaded."""
    wanted: dict[str, list[Id]] = {}
    for task_id in task_ids:
        task = book.get(TASKS, task_id)
        if task is not None:
            _add(wanted, may_need(task, _open(book, task)))
    return wanted


def require(book: Book, changes: Iterable[tuple[Task | None, Task, Attempt | None, Attempt | None]]) -> None:
    """Be sure that these changes can be written: (before, after, open attempt before, and after).

    Raises:
        MissingRows: with everything that these tasks, and others of the same workflow, may need.
    """
    wanted: dict[str, list[Id]] = {}
    instances = set()
    for before, after, attempt, closing in changes:
        needed: dict[str, list[Id]] = {}
        freed = freed_by(attempt, closing)
        if freed is not None:
            _add(needed, {"limits": limits.permits_of(freed)})
        if after.counted and after.state in _AT_REST:
            _add(needed, {"limits": limits.backlog_ids(after.namespace_id, after.queue, after.counted)})
        if after.concurrency_key is not None and keys.concerns(before, after):
            _add(needed, key_rows.rows_of(after))
        if after.fairness_key is not None and fairness.enters(before, after):
            _add(needed, fairness.rows_for(after.queue_id, after.fairness_key))
        if needed:
            _add(wanted, needed)
            instances.add(after.instance_id)
    if not _missing(book, wanted):
        return
    # A workflow's decision changes several of its tasks, one after the other: one rerun is enough for all.
    for task in book.known(TASKS):
        if task.instance_id in instances and task.instance_id is not None:
            _add(wanted, may_need(task, _open(book, task)))
    raise MissingRows(_missing(book, wanted))


def moved(book: Book, before: Task | None, after: Task, freed: str | None) -> Task:
    """Write what this change means for key, permits, backlog and turn; the task as it is to be stored.

    `freed`: the permits of the attempt that the change closes.
    """
    if freed is not None:
        limits.give_back(book, freed)
    if after.counted and after.state in _AT_REST:
        limits.count_out(book, limits.backlog_ids(after.namespace_id, after.queue, after.counted))
        after = altered(after, counted=0)
    if after.fairness_key is not None and fairness.enters(before, after):
        after = fairness.placed(book, after)
    return key_rows.settle(book, before, after)


def freed_by(attempt: Attempt | None, closing: Attempt | None) -> str | None:
    """The permits that are free once an attempt has become what it is to be."""
    if attempt is None or closing is None or closing.state is not AttemptState.CLOSED:
        return None
    return attempt.permits


def _open(book: Book, task: Task) -> Attempt | None:
    if task.attempt_id is None:
        return None
    try:
        return book.member(ATTEMPTS, task.id, task.attempt_id)
    except MissingRow:
        return None


def _missing(book: Book, wanted: Needs) -> dict[str, list[Id]]:
    missing = {kind: book.missing(kind, list(ids)) for kind, ids in wanted.items()}
    return {kind: ids for kind, ids in missing.items() if ids}


def _add(wanted: dict[str, list[Id]], more: Needs) -> None:
    for kind, ids in more.items():
        known = wanted.setdefault(kind, [])
        known.extend(one for one in ids if one not in known)
