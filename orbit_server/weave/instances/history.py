"""Reads of what a step went through: its activations, the rounds of a POLL, and the operations of people."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.storage.places import Place, below
from orbit_server.storage.tables import audit, steps, task_results, task_specs, tasks
from orbit_server.weave.instances.queries import StepFacts, step_facts
from orbit_server.weave.state.rows import STEPS


@dataclass(frozen=True, slots=True)
class ActivationFacts:
    """One activation with the values it left and the parameters of its (last) task; canonical JSON."""

    facts: StepFacts
    handler: tuple[str, int] | None
    parameters: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """One task of a step: the round of a POLL (0 for a TASK). `result` and `error` are canonical JSON."""

    task_id: Id
    round: int
    activation_id: Id
    state: str
    handler: str
    handler_version: int
    attempts_used: int
    attempts_max: int
    created_at: int
    settled_at: int | None
    error_code: str | None
    result: str | None
    error: str | None


def activations(
    conn: Connection, instance_id: Id, step_key: str, before: int | None, limit: int
) -> list[ActivationFacts]:
    """Newest first; `before` is the number of the last one seen."""
    c = steps.c
    query = select(*[c[name] for name in STEPS.columns])
    query = query.where(c.instance_id == instance_id, c.step_key == step_key)
    if before is not None:
        query = query.where(c.activation_no < before)
    query = query.order_by(c.activation_no.desc()).limit(limit)
    found = []
    for row in STEPS.rows([tuple(values) for values in conn.execute(query)]):
        given = None
        if row.task_id is not None:
            task, spec = tasks.c, task_specs.c
            asked = select(task.handler, task.handler_version, spec.parameters)
            given = conn.execute(
                asked.join(task_specs, spec.task_id == task.id).where(task.id == row.task_id)
            ).first()
        handler, parameters = (None, None) if given is None else ((given[0], given[1]), given[2])
        found.append(ActivationFacts(step_facts(conn, row), handler, parameters))
    return found


def rounds(conn: Connection, instance_id: Id, step_key: str, before: Id | None, limit: int) -> list[Round]:
    """Every task of a step, newest first; `before` is the id of the last one seen."""
    t, r = tasks.c, task_results.c
    query = (
        select(
            t.id,
            t.round,
            t.activation_id,
            t.state,
            t.handler,
            t.handler_version,
            t.attempts_used,
            t.attempts_max,
            t.created_at,
            t.settled_at,
            t.error_code,
            r.result,
            r.error,
        )
        .outerjoin(task_results, r.task_id == t.id)
        .where(t.instance_id == instance_id, t.step_key == step_key)
    )
    if before is not None:
        query = query.where(t.id < before)
    return [Round(*tuple(row)) for row in conn.execute(query.order_by(t.id.desc()).limit(limit))]


def operations(
    conn: Connection, instance_id: Id, before: Place | None, limit: int
) -> list[tuple[AuditRow, str | None]]:
    """What people did to an instance and to its steps, newest first, each with the step it was about."""
    keys: dict[Id, str] = {
        row[0]: row[1]
        for row in conn.execute(
            select(steps.c.id, steps.c.step_key).where(steps.c.instance_id == instance_id)
        )
    }
    c = audit.c
    query = select(*[c[name] for name in AUDIT.columns]).where(c.subject_id.in_([instance_id, *sorted(keys)]))
    if before is not None:
        query = query.where(below(c.at, c.id, before))
    rows = AUDIT.rows(
        [tuple(row) for row in conn.execute(query.order_by(c.at.desc(), c.id.desc()).limit(limit))]
    )
    return [(row, keys.get(row.subject_id)) for row in rows]


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a task exists: the step that ordered it, or the request that submitted it."""

    task_id: Id
    instance_id: Id | None
    step_key: str | None
    activation_id: Id | None
    activation_no: int | None
    round: int
    business_key: str | None
    effect_key: str
    retry_of: Id | None
    submitted_by: str | None


def origin(conn: Connection, namespace_id: Id, task_id: Id) -> Origin | None:
    """The origin of a task of this namespace."""
    t, spec, s = tasks.c, task_specs.c, steps.c
    row = conn.execute(
        select(
            t.id,
            t.instance_id,
            t.step_key,
            t.activation_id,
            s.activation_no,
            t.round,
            t.business_key,
            spec.effect_key,
            spec.retry_of,
            spec.submitted_by,
        )
        .join(task_specs, spec.task_id == t.id)
        .outerjoin(steps, s.id == t.activation_id)
        .where(t.id == task_id, t.namespace_id == namespace_id)
    ).first()
    return None if row is None else Origin(*tuple(row))
