"""What a filter finds: the things a bulk may act on, oldest first, in bites. No locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, null, select

from orbit_sdk.values.ids import Id
from orbit_server.bulk.lifecycle import Target
from orbit_server.pulse.tasks.decide.evidence import adoptable_kinds
from orbit_server.storage.tables import evidence, instances, steps, tasks
from orbit_server.weave.state.rows import INSTANCES, InstanceRow

__all__ = ["FILTERS", "Candidate", "adoptable", "candidates", "heads", "tasks_of_evidence"]

Filter = Mapping[str, Any]
_NO_STEP: Final = null().label("step_key")

FILTERS: Final[Mapping[Target, frozenset[str]]] = {
    Target.STEPS: frozenset(
        {"business_keys", "definition_id", "version", "step_key", "review_class", "reason"}
    ),
    Target.WORKFLOWS: frozenset({"business_keys", "definition_id", "version", "state", "paused"}),
    Target.TASKS: frozenset({"business_keys", "state", "queue", "handler", "error_code", "review_class"}),
}
"""Which filters fit what."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that a filter found. `place` is where the next bite goes on; `expected` what is frozen."""

    place: Id
    subject_id: Id
    step_key: str | None
    business_key: str | None
    expected: int
    task_id: Id | None = None
    """What stored evidence would be of."""


def adoptable(conn: Connection, task_ids: Sequence[Id], *, denies: bool) -> dict[Id, Id]:
    """By task, the newest stored evidence that a decision may adopt."""
    c = evidence.c
    query = (
        select(c.task_id, c.id)
        .where(c.task_id.in_(task_ids), c.kind.in_(sorted(adoptable_kinds(denies=denies))))
        .order_by(c.at, c.id)
    )
    return {row[0]: row[1] for row in conn.execute(query)} if task_ids else {}


def tasks_of_evidence(conn: Connection, ids: Sequence[Id]) -> dict[Id, Id]:
    """Which tasks these pieces of evidence are of."""
    c = evidence.c
    query = select(c.id, c.task_id).where(c.id.in_(ids))
    return {row[0]: row[1] for row in conn.execute(query)} if ids else {}


def candidates(  # noqa: PLR0913  # a filter, and where to go on
    conn: Connection,
    namespace_id: Id,
    action: str,
    target: Target,
    narrow: Filter,
    *,
    after: Id | None,
    limit: int,
) -> list[Candidate]:
    """A bite of what fits, beyond `after`."""
    query = _QUERIES[target](namespace_id, action, narrow)
    place = query.selected_columns[0]
    if after is not None:
        query = query.where(place > after)
    return [Candidate(*row) for row in conn.execute(query.order_by(place).limit(limit))]


def heads(conn: Connection, ids: Sequence[Id]) -> dict[Id, InstanceRow]:
    """Workflows by id, with the roots of their effects."""
    found = dict(INSTANCES.load(conn, ids)) if ids else {}
    roots = {row.effect_root for row in found.values()} - set(found)
    return {**found, **INSTANCES.load(conn, sorted(roots))} if roots else found


def _steps(namespace_id: Id, _action: str, narrow: Filter) -> Select[*tuple[Any, ...]]:
    s, i = steps.c, instances.c
    query = (
        select(s.id, s.instance_id, s.step_key, i.business_key, s.revision, s.task_id)
        .join(instances, i.id == s.instance_id)
        .where(s.namespace_id == namespace_id, s.state == "NEEDS_REVIEW")
    )
    columns = {
        "definition_id": i.definition_id,
        "version": i.definition_version,
        "step_key": s.step_key,
        "review_class": s.review_class,
        "reason": s.reason,
    }
    return _narrowed(query, narrow, columns, i.business_key)


def _workflows(namespace_id: Id, action: str, narrow: Filter) -> Select[*tuple[Any, ...]]:
    i = instances.c
    frozen = i.revision if action == "workflow.restart" else i.control_version
    query = select(i.id, i.id.label("subject"), _NO_STEP, i.business_key, frozen).where(
        i.namespace_id == namespace_id
    )
    if action != "workflow.restart":
        query = query.where(i.ended_at.is_(None))
    columns = {
        "definition_id": i.definition_id,
        "version": i.definition_version,
        "state": i.state,
        "paused": i.paused,
    }
    return _narrowed(query, narrow, columns, i.business_key)


def _tasks(namespace_id: Id, action: str, narrow: Filter) -> Select[*tuple[Any, ...]]:
    t = tasks.c
    query = select(
        t.id, t.id.label("subject"), _NO_STEP, t.business_key, t.revision, t.id.label("task")
    ).where(t.namespace_id == namespace_id, t.instance_id.is_(None))
    if action in ("task.review", "task.probe"):
        query = query.where(t.state == "NEEDS_REVIEW")
    if action == "task.cancel":
        query = query.where(t.settled_at.is_(None))
    handler, at, version = str(narrow.get("handler", "")).partition("@")
    columns = {
        "state": t.state,
        "queue": t.queue,
        "handler": t.handler,
        "error_code": t.error_code,
        "review_class": t.review_class,
    }
    if handler:
        narrow = {**narrow, "handler": handler}
    if at:
        query = query.where(t.handler_version == int(version))
    return _narrowed(query, narrow, columns, t.business_key)


def _narrowed(
    query: Select[*tuple[Any, ...]], narrow: Filter, columns: Mapping[str, Any], business_key: Any
) -> Select[*tuple[Any, ...]]:
    for name, column in columns.items():
        value = narrow.get(name)
        if value is not None:
            query = query.where(column == (int(value) if isinstance(value, bool) else value))
    keys = narrow.get("business_keys")
    return query if keys is None else query.where(business_key.in_(keys))


_QUERIES: Mapping[Target, Callable[[Id, str, Filter], Select[*tuple[Any, ...]]]] = {
    Target.STEPS: _steps,
    Target.WORKFLOWS: _workflows,
    Target.TASKS: _tasks,
}
