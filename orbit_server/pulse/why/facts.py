"""Everything that decides whether a task moves, read at one moment without a lock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import Connection, or_, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.keys.queries import KeyFacts
from orbit_server.pulse.keys.queries import facts as key_facts
from orbit_server.pulse.limits.queries import limit_rows
from orbit_server.pulse.queues.queries import Paused, paused_by, queue_row
from orbit_server.pulse.tasks.decide.policy import RetryPolicy, policy_of
from orbit_server.pulse.tasks.keys.records import key_id_of
from orbit_server.pulse.tasks.limits.records import LimitRow, limit_id_of
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.tasks.rows import ATTEMPTS, TASK_SPECS
from orbit_server.pulse.workers.queries import blocked_builds
from orbit_server.storage import tables

_S = tables.sessions.c
_T = tables.tasks.c
_AHEAD_MAX = 1_000
_SESSIONS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """A connected worker. `handlers`: what it announced, by `name@version`."""

    worker: str
    build: str | None
    queues: frozenset[str]
    handlers: Mapping[str, Any]
    blocked: bool
    refused: Mapping[str, str] = field(default_factory=dict)
    """What it announced and does not serve, by `name@version`: the reasons."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What `explain` needs to know. `ahead`: how many go before it, at most 1,000 are counted. `policy` is
    read while an attempt is open.
    """

    now: int
    task: Task
    attempt: Attempt | None
    queue_paused: bool
    queue_pause: Paused | None
    gate: Paused | None
    key: KeyFacts | None
    limits: tuple[LimitRow, ...]
    sessions: tuple[Session, ...]
    ahead: int
    policy: RetryPolicy = field(default_factory=lambda: policy_of(None))


def read_facts(conn: Connection, task: Task, now: int) -> Facts:
    """Read them."""
    queue_id = queue_id_of(task.namespace_id, task.queue)
    row = queue_row(conn, task.namespace_id, task.queue)
    paused = row is not None and row.paused
    ids = (limit_id_of(task.namespace_id, task.queue), limit_id_of(task.namespace_id))
    key = None
    if task.concurrency_key is not None:
        key = key_facts(conn, task, key_id_of(task.namespace_id, task.queue, task.concurrency_key))
    attempts = ATTEMPTS.load(conn, [task.id]).get(task.id, ()) if task.attempt_id is not None else ()
    gated = bool(task.gate) and task.instance_id is not None
    return Facts(
        now=now,
        task=task,
        attempt=next((one for one in attempts if one.id == task.attempt_id), None),
        queue_paused=paused,
        queue_pause=paused_by(conn, queue_id, "queue.pause") if paused else None,
        gate=paused_by(conn, task.instance_id or "", "workflow.pause") if gated else None,
        key=key,
        limits=tuple(limit_rows(conn, ids).values()),
        sessions=tuple(_sessions(conn, task.namespace_id)),
        ahead=_ahead(conn, task),
        policy=_policy(conn, task),
    )


def _policy(conn: Connection, task: Task) -> RetryPolicy:
    spec = TASK_SPECS.load(conn, [task.id]).get(task.id) if task.attempt_id is not None else None
    return policy_of(None if spec is None else spec.policy)


def _sessions(conn: Connection, namespace_id: Id) -> list[Session]:
    rows = conn.execute(
        select(_S.worker, _S.build, _S.queues, _S.handlers, _S.refused)
        .where(_S.namespace_id == namespace_id, _S.closed_at.is_(None))
        .limit(_SESSIONS_MAX)
    ).all()
    blocked = blocked_builds(conn, namespace_id)
    return [
        Session(
            row.worker,
            row.build,
            frozenset(orjson.loads(row.queues)),
            orjson.loads(row.handlers),
            row.build in blocked,
            orjson.loads(row.refused) if row.refused else {},
        )
        for row in rows
    ]


def _ahead(conn: Connection, task: Task) -> int:
    """Tasks of its handler that are claimed before it."""
    if task.state != "READY" or task.blocked:
        return 0
    before = or_(
        _T.priority > task.priority,
        (_T.priority == task.priority) & (_T.virtual_start < task.virtual_start),
        (_T.priority == task.priority) & (_T.virtual_start == task.virtual_start) & (_T.id < task.id),
    )
    rows = conn.execute(
        select(_T.id)
        .where(
            _T.queue_id == task.queue_id,
            _T.state == "READY",
            _T.blocked == 0,
            _T.handler == task.handler,
            _T.handler_version == task.handler_version,
            before,
        )
        .limit(_AHEAD_MAX)
    )
    return len(rows.scalars().all())
