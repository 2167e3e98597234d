"""Ids that follow from what they name."""

from __future__ import annotations

from orbit_sdk.values.ids import Id, derive_id


def queue_id_of(namespace_id: Id, queue: str) -> Id:
    """The id of a queue's row, whether or not the row exists yet."""
    return derive_id(namespace_id, queue)


def retry_id_of(task_id: Id) -> Id:
    """The id of the one task that may retry a task: a second retry of it cannot exist.

    It begins like the id of the task, so that lists show the two together.
    """
    return task_id[:13] + derive_id("retry", task_id)[13:]


def evidence_id_of(attempt_id: Id, digest: str) -> Id:
    """The same report of one attempt is one piece of evidence, however often it comes."""
    return derive_id("evidence", attempt_id, digest)


def inbox_id_of(task_id: Id, source_revision: int) -> Id:
    """The inbox row of one revision of a task."""
    return derive_id("inbox", task_id, str(source_revision))
