"""Lists and counts of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, exists, select

from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.tasks.records import Task
from orbit_server.pulse.tasks.rows import TASKS
from orbit_server.storage import lists
from orbit_server.storage.lists import Condition, Grouping, Range, Slice, Tally
from orbit_server.storage.tables import instances, schedule_fires, task_specs, tasks

__all__ = ["GROUPS", "TaskFilter", "TaskPage", "count_tasks", "list_tasks", "page_tasks"]

GROUPS = ("state", "queue", "handler", "step", "error_code", "review_class", "definition")
"""What a count may group by, beside `label:<name>`."""
_T = tasks.c
_QUEUES_MAX = 20
_SEEKS_MAX = 100
"""More queues than this (of the namespace, of all) are not looked through one by one for a state."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """What a list of tasks is narrowed to; None does not narrow.

    Times are microseconds, start included, end not.
    """

    states: tuple[str, ...] | None = None
    queue: str | None = None
    handler: str | None = None
    handler_version: int | None = None
    business_key: str | None = None
    instance_id: Id | None = None
    step: str | None = None
    definition_id: str | None = None
    definition_version: int | None = None
    schedule_id: Id | None = None
    error_code: str | None = None
    review_class: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_from: int | None = None
    created_to: int | None = None
    standalone: bool = False
    """Only tasks that belong to no workflow."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks, newest first. `reached`: the page is short; the next one goes on from there."""

    rows: list[Task]
    reached: Id | None = None


def page_tasks(
    conn: Connection, namespace_id: Id, narrow: TaskFilter, *, before: Id | None = None, limit: int = 20
) -> TaskPage:
    """A page, newest first; `before` is the id of the last row of the page before, or where it had got to."""
    found: Slice | None = None
    ranges, conditions = _by_state(conn, namespace_id, narrow, narrow.states)
    if ranges:
        found = lists.page(conn, tasks, ranges, conditions, before=before, take=limit)
    if found is None:
        found = _in_order(conn, namespace_id, narrow, before, limit)
    rows = TASKS.load(conn, found.ids) if found.ids else {}
    return TaskPage([rows[row_id] for row_id in found.ids if row_id in rows], found.reached)


def list_tasks(
    conn: Connection, namespace_id: Id, narrow: TaskFilter, *, before: Id | None = None, limit: int = 20
) -> list[Task]:
    """The rows of a page."""
    return page_tasks(conn, namespace_id, narrow, before=before, limit=limit).rows


def count_tasks(conn: Connection, namespace_id: Id, narrow: TaskFilter, group_by: str | None) -> Tally:
    """How many tasks there are."""
    by = _grouping(group_by)
    states = narrow.states
    if states is None and group_by in (None, "state"):
        states = tuple(state.value for state in TaskState)
    ranges, conditions = _by_state(conn, namespace_id, narrow, states)
    if not ranges:
        part, conditions = _range(namespace_id, narrow)
        ranges = [part]
    return lists.tally(conn, tasks, ranges, conditions, by)


def _in_order(conn: Connection, namespace_id: Id, narrow: TaskFilter, before: Id | None, limit: int) -> Slice:
    part, conditions = _range(namespace_id, narrow)
    found = lists.page(conn, tasks, [part], conditions, before=before, take=limit)
    assert found is not None, "an ordered range always has a next page"
    return found


# --- which index -------------------------------------------------------------------------------------------


def _range(namespace_id: Id, narrow: TaskFilter) -> tuple[Range, list[Condition]]:
    """The index that finds least, and what it leaves to look at."""
    between = lists.made_between(_T.id, narrow.created_from, narrow.created_to)
    rest = _conditions(narrow)
    if narrow.states is not None:
        rest["states"] = _T.state.in_(narrow.states)
    where: tuple[Condition, ...]
    if narrow.instance_id is not None:
        where = (rest.pop("instance_id"),)
        rest["namespace_id"] = _T.namespace_id == namespace_id
    elif narrow.business_key is not None:
        where = (_T.namespace_id == namespace_id, rest.pop("business_key"))
    else:
        where = (_T.namespace_id == namespace_id,)
    return Range((*where, *between)), list(rest.values())


def _by_state(
    conn: Connection, namespace_id: Id, narrow: TaskFilter, states: tuple[str, ...] | None
) -> tuple[list[Range], list[Condition]]:
    """One range per queue and state, where few queues hold them all and no other index finds less."""
    if states is None or narrow.instance_id is not None or narrow.business_key is not None:
        return [], []
    ids = (
        [queue_id_of(namespace_id, narrow.queue)] if narrow.queue is not None else _queues(conn, namespace_id)
    )
    if len(ids) > _QUEUES_MAX:
        return [], []
    rest = _conditions(narrow)
    rest.pop("queue", None)
    between = lists.made_between(_T.id, narrow.created_from, narrow.created_to)
    ranges = [
        Range((_T.queue_id == queue_id, _T.state == state), ordered=False)
        for queue_id in ids
        for state in states
    ]
    # A namespace without a queue has no task; a range that holds nothing says so.
    return ranges or [Range((_T.queue_id == "",), ordered=False)], [*rest.values(), *between]


def _queues(conn: Connection, namespace_id: Id) -> list[Id]:
    """The queues of the namespace that have a task: one seek in the ready index for each of any namespace."""
    found: list[Id] = []
    last = ""
    for _ in range(_SEEKS_MAX):
        query = select(_T.queue_id, _T.namespace_id).where(_T.queue_id > last).order_by(_T.queue_id).limit(1)
        row = conn.execute(query).first()
        if row is None:
            return found
        last = row.queue_id
        if row.namespace_id == namespace_id:
            found.append(last)
    return [""] * (_QUEUES_MAX + 1)


def _conditions(narrow: TaskFilter) -> dict[str, Condition]:
    equal: dict[str, tuple[ColumnElement[Any], object | None]] = {
        "queue": (_T.queue, narrow.queue),
        "handler": (_T.handler, narrow.handler),
        "handler_version": (_T.handler_version, narrow.handler_version),
        "business_key": (_T.business_key, narrow.business_key),
        "instance_id": (_T.instance_id, narrow.instance_id),
        "step": (_T.step_key, narrow.step),
        "error_code": (_T.error_code, narrow.error_code),
        "review_class": (_T.review_class, narrow.review_class),
    }
    found: dict[str, Condition] = {
        name: column == value for name, (column, value) in equal.items() if value is not None
    }
    if narrow.standalone:
        found["standalone"] = _T.instance_id.is_(None)
    if narrow.created_from is not None:
        found["created_from"] = _T.created_at >= narrow.created_from
    if narrow.created_to is not None:
        found["created_to"] = _T.created_at < narrow.created_to
    if narrow.definition_id is not None:
        i = instances.c
        of = [i.id == _T.instance_id, i.definition_id == narrow.definition_id]
        if narrow.definition_version is not None:
            of.append(i.definition_version == narrow.definition_version)
        found["definition"] = exists().where(*of)
    if narrow.schedule_id is not None:
        f = schedule_fires.c
        found["schedule"] = exists().where(f.target_id == _T.id, f.schedule_id == narrow.schedule_id)
    if narrow.labels:
        s = task_specs.c
        members = [lists.has_member(s.labels, member) for member in label_members(narrow.labels)]
        found["labels"] = exists().where(s.task_id == _T.id, *members)
    return found


def label_members(labels: Mapping[str, str]) -> list[str]:
    """How each label stands in canonical JSON; nothing else there can look the same."""
    return [canonical_json({name: value})[1:-1] for name, value in labels.items()]


# --- groups ------------------------------------------------------------------------------------------------


def _grouping(group_by: str | None) -> Grouping:
    i, s = instances.c, task_specs.c
    if group_by is None:
        return Grouping()
    if group_by.startswith("label:"):
        name = group_by.removeprefix("label:")
        return Grouping((s.labels,), lambda text: label_in(text, name), task_specs, s.task_id == _T.id)
    if group_by == "handler":
        return Grouping((_T.handler, _T.handler_version), lambda handler, version: f"{handler}@{version}")
    if group_by == "definition":
        columns = (i.definition_id, i.definition_version)
        return Grouping(columns, lambda name, version: f"{name}@{version}", instances, i.id == _T.instance_id)
    columns_of = {
        "state": _T.state,
        "queue": _T.queue,
        "step": _T.step_key,
        "error_code": _T.error_code,
        "review_class": _T.review_class,
    }
    return Grouping((columns_of[group_by],), lambda value: value)


def label_in(text: str | None, name: str) -> str | None:
    """The value of one label of stored ones."""
    return None if text is None else orjson.loads(text).get(name)
