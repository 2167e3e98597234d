"""Fairness inside a transaction: where a task with a fairness key stands when it becomes READY."""

from __future__ import annotations

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.fairness.rows import CLOCKS, FLOWS, FlowRow, flow_id_of, served_after
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.pulse.tasks.records import Task
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Needs


def rows_for(queue_id: Id, key: str) -> Needs:
    """The rows that placing a task of this key reads and writes."""
    return {"queue_clocks": [queue_id], "fair_flows": [flow_id_of(queue_id, key)]}


def enters(before: Task | None, after: Task) -> bool:
    """Whether the task becomes READY for the first time, or for a new attempt: it queues up anew."""
    if after.fairness_key is None or after.state is not TaskState.READY:
        return False
    return before is None or before.state in (TaskState.SCHEDULED, TaskState.RETRY_WAIT)


def placed(book: Book, task: Task) -> Task:
    """The task with its virtual start. Needs what `rows_for` says."""
    key = task.fairness_key
    if key is None:
        return task
    clock = book.get(CLOCKS, task.queue_id)
    flow_id = flow_id_of(task.queue_id, key)
    known = book.get(FLOWS, flow_id)
    flow = known or FlowRow(flow_id, task.namespace_id, task.queue_id, key, weight=1, finish=0, last=0)
    flow, start = served_after(flow, 0 if clock is None else clock.virtual_time)
    if known is None:
        book.insert(FLOWS, flow)
    else:
        book.change(FLOWS, known, flow)
    return altered(task, virtual_start=start)
