"""Reads of instances and their steps. No locks, no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from orbit_sdk.engine.refs import parse_ref
from orbit_sdk.values.ids import Id
from orbit_server.storage.tables import (
    instance_inputs,
    instance_outputs,
    instances,
    payloads,
    signal_bodies,
    steps,
    task_results,
    tasks,
)
from orbit_server.weave.state.rows import INSTANCES, STEPS, InstanceRow, StepRow


@dataclass(frozen=True, slots=True)
class InstanceDetail:
    """An instance with its cold parts; texts are canonical JSON."""

    row: InstanceRow
    input: str
    labels: str | None
    started_by: str
    output: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class StepFacts:
    """The latest activation of a step, its task's own phase, and the values it left (canonical JSON)."""

    row: StepRow
    task_state: str | None
    result: str | None = None
    failure: str | None = None


_INSTANCE = [instances.c[name] for name in INSTANCES.columns]
_STEP = [steps.c[name] for name in STEPS.columns]


def _instances(rows: Sequence[Sequence[object]]) -> list[InstanceRow]:
    return INSTANCES.rows([tuple(row) for row in rows])


def head(conn: Connection, namespace_id: Id, instance_id: Id) -> InstanceRow | None:
    """The hot row alone."""
    query = select(*_INSTANCE).where(instances.c.id == instance_id)
    rows = _instances(conn.execute(query).all())
    return rows[0] if rows and rows[0].namespace_id == namespace_id else None


def get(conn: Connection, namespace_id: Id, instance_id: Id) -> InstanceDetail | None:
    """One instance with input and, once it ended, output or error."""
    row = head(conn, namespace_id, instance_id)
    if row is None:
        return None
    i, o = instance_inputs.c, instance_outputs.c
    given = conn.execute(select(i.input, i.labels, i.started_by).where(i.instance_id == instance_id)).one()
    ended = conn.execute(select(o.output, o.error).where(o.instance_id == instance_id)).first()
    return InstanceDetail(
        row,
        given[0],
        given[1],
        given[2],
        None if ended is None else ended[0],
        None if ended is None else ended[1],
    )


def open_by_key(
    conn: Connection, namespace_id: Id, definition_id: str, business_key: str, limit: int
) -> list[Id]:
    """Instances of a definition with this business key that have not ended, newest first."""
    c = instances.c
    query = select(c.id).where(
        c.namespace_id == namespace_id,
        c.business_key == business_key,
        c.definition_id == definition_id,
        c.ended_at.is_(None),
    )
    return [found for (found,) in conn.execute(query.order_by(c.id.desc()).limit(limit))]


def latest_steps(conn: Connection, instance_id: Id) -> list[StepFacts]:
    """The latest activation of every step that was ever activated, in the order of activation."""
    rows = STEPS.rows(
        [tuple(row) for row in conn.execute(select(*_STEP).where(steps.c.instance_id == instance_id))]
    )
    latest: dict[str, StepRow] = {}
    for row in rows:
        known = latest.get(row.step_key)
        if known is None or row.activation_no > known.activation_no:
            latest[row.step_key] = row
    ids = [row.task_id for row in latest.values() if row.task_id is not None]
    states = _task_states(conn, ids)
    ordered = sorted(latest.values(), key=lambda row: (row.opened_at, row.step_key))
    return [StepFacts(row, states.get(row.task_id or "")) for row in ordered]


def step(conn: Connection, instance_id: Id, step_key: str) -> StepFacts | None:
    """The latest activation of one step with what it left."""
    query = select(*_STEP).where(steps.c.instance_id == instance_id, steps.c.step_key == step_key)
    rows = STEPS.rows([tuple(row) for row in conn.execute(query)])
    if not rows:
        return None
    return step_facts(conn, max(rows, key=lambda found: found.activation_no))


def step_facts(conn: Connection, row: StepRow) -> StepFacts:
    """One activation with what it left."""
    state = _task_states(conn, [row.task_id] if row.task_id else [])
    return StepFacts(
        row,
        state.get(row.task_id or ""),
        _value(conn, row.result_ref, failure=False),
        _value(conn, row.failure_ref, failure=True),
    )


def _task_states(conn: Connection, ids: Sequence[Id]) -> dict[Id, str]:
    if not ids:
        return {}
    query = select(tasks.c.id, tasks.c.state).where(tasks.c.id.in_(ids))
    return {row[0]: row[1] for row in conn.execute(query)}


def _value(conn: Connection, ref: str | None, *, failure: bool) -> str | None:
    if ref is None:
        return None
    kind, row_id = parse_ref(ref)
    if kind == "T":
        c = task_results.c
        query = select(c.error if failure else c.result).where(c.task_id == row_id)
    elif kind == "S":
        query = select(signal_bodies.c.body).where(signal_bodies.c.id == row_id)
    else:
        query = select(payloads.c.body).where(payloads.c.id == row_id)
    return conn.execute(query).scalar()
