"""Reads of tasks, for pages and details. Nothing here takes a lock.

Lists are newest first by id (ids begin with the time they were made), which is also the key of the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import retry_id_of
from orbit_server.pulse.tasks.records import Attempt, Evidence, Task, TaskResult, TaskSpec
from orbit_server.pulse.tasks.rows import ATTEMPTS, EVIDENCE, TASK_RESULTS, TASK_SPECS, TASKS
from orbit_server.storage import tables

_T = tables.tasks.c
_HELD_MAX = 10_000


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """Everything stored about one task."""

    task: Task
    spec: TaskSpec | None
    result: TaskResult | None


@dataclass(frozen=True, slots=True)
class Link:
    """Where an attempt belongs: links that never change."""

    attempt_id: Id
    task_id: Id
    namespace_id: Id
    instance_id: Id | None
    generation: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of the trials of a task: the error of the last that had one, and the key of the effect.

    `error` is canonical JSON.
    """

    effect_key: str | None
    error: str | None


def get_task(conn: Connection, namespace_id: Id, task_id: Id) -> Task | None:
    """One task of this namespace."""
    task = TASKS.load(conn, [task_id]).get(task_id)
    return task if task is not None and task.namespace_id == namespace_id else None


def get_detail(conn: Connection, namespace_id: Id, task_id: Id) -> TaskDetail | None:
    """One task with its parameters and its end."""
    task = get_task(conn, namespace_id, task_id)
    if task is None:
        return None
    spec = TASK_SPECS.load(conn, [task_id]).get(task_id)
    return TaskDetail(task, spec, TASK_RESULTS.load(conn, [task_id]).get(task_id))


def retry_of(conn: Connection, task_id: Id) -> Id | None:
    """The task that retries this one, if there is one."""
    return conn.execute(select(_T.id).where(_T.id == retry_id_of(task_id))).scalar()


def attempts_of(conn: Connection, task_id: Id) -> list[Attempt]:
    """All attempts of a task, oldest first."""
    return sorted(ATTEMPTS.load(conn, [task_id]).get(task_id, ()), key=lambda attempt: attempt.generation)


def trials_of(conn: Connection, task_ids: Sequence[Id]) -> dict[Id, Trial]:
    """The last error and the effect key of each of these tasks."""
    if not task_ids:
        return {}
    attempts = ATTEMPTS.load(conn, task_ids)
    specs = tables.task_specs.c
    keys = {
        row[0]: row[1]
        for row in conn.execute(select(specs.task_id, specs.effect_key).where(specs.task_id.in_(task_ids)))
    }
    return {task_id: Trial(keys.get(task_id), _last_error(attempts.get(task_id, ()))) for task_id in task_ids}


def _last_error(attempts: Iterable[Attempt]) -> str | None:
    newest = sorted(attempts, key=lambda attempt: attempt.generation, reverse=True)
    return next((attempt.error for attempt in newest if attempt.error is not None), None)


def task_of_evidence(conn: Connection, namespace_id: Id, evidence_id: Id) -> Id | None:
    """Which task a piece of evidence is about."""
    c = tables.evidence.c
    query = select(c.task_id).where(c.id == evidence_id, c.namespace_id == namespace_id)
    found: Id | None = conn.execute(query).scalar()
    return found


def evidence_of(conn: Connection, task_id: Id, *, limit: int = 100) -> list[Evidence]:
    """What was reported beside the decided course, oldest first."""
    columns = tables.evidence.c
    ids = conn.execute(
        select(columns.id).where(columns.task_id == task_id).order_by(columns.at, columns.id).limit(limit)
    )
    wanted = [row_id for (row_id,) in ids]
    rows = EVIDENCE.load(conn, wanted) if wanted else {}
    return [rows[row_id] for row_id in wanted if row_id in rows]


def links_of(conn: Connection, attempt_ids: Sequence[Id]) -> dict[Id, Link]:
    """Attempt to task to workflow, for whoever knows only the attempt."""
    attempts = tables.attempts.c
    rows = conn.execute(
        select(attempts.id, attempts.task_id, attempts.namespace_id, _T.instance_id, attempts.generation)
        .join(tables.tasks, _T.id == attempts.task_id)
        .where(attempts.id.in_(attempt_ids))
    )
    return {row[0]: Link(*row) for row in rows}


def held_by_session(conn: Connection, session_id: Id) -> list[Attempt]:
    """The open attempts bound to a session, through the index on it."""
    attempts = tables.attempts.c
    ids = conn.execute(select(attempts.task_id).where(attempts.session_id == session_id).limit(_HELD_MAX))
    wanted = sorted({task_id for (task_id,) in ids})
    found = ATTEMPTS.load(conn, wanted) if wanted else {}
    return [attempt for rows in found.values() for attempt in rows if attempt.session_id == session_id]
