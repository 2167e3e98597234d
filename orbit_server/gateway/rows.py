"""The rows of sessions, and what the gateway reads of attempts and tasks. One statement per function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, or_, select, update

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.attempts import Held
from orbit_server.storage.tables import attempts, namespaces, sessions, tasks

__all__ = ["OpenAttempt", "SessionRow"]

_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One connection of a worker. `handlers` and `queues` are canonical JSON; instants UTC microseconds."""

    id: Id
    namespace_id: Id
    credential_id: Id
    node_id: Id
    nonce: str
    worker: str
    build: str
    handlers: str
    queues: str
    refused: str | None = None
    """Handlers of the hello that are not served, `name@version` to the reason (canonical JSON)."""


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that is offered or runs, as its session's row says. `cancel_requested`: its worker should
    stop it (a verification is not stopped).
    """

    held: Held
    session_id: Id
    started: bool
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task belongs."""

    queue: str
    workflow_id: Id | None


def write_session(conn: Connection, row: SessionRow, now: int) -> None:
    """Insert the row of a new session; running it twice is harmless."""
    conn.execute(delete(sessions).where(sessions.c.id == row.id))
    conn.execute(
        insert(sessions).values(
            id=row.id,
            namespace_id=row.namespace_id,
            credential_id=row.credential_id,
            node_id=row.node_id,
            nonce=row.nonce,
            worker=row.worker,
            build=row.build,
            handlers=row.handlers,
            queues=row.queues,
            connected_at=now,
            seen_at=now,
            closed_at=None,
            stuck=0,
            refused=row.refused,
        )
    )


def tell_stuck(conn: Connection, session_id: Id, stuck: int) -> None:
    """Say how many handlers of the worker go on although their attempts are over."""
    conn.execute(update(sessions).where(sessions.c.id == session_id).values(stuck=stuck))


def close_session(conn: Connection, session_id: Id, now: int) -> None:
    """Say when the session ended."""
    conn.execute(
        update(sessions)
        .where(sessions.c.id == session_id, sessions.c.closed_at.is_(None))
        .values(closed_at=now, seen_at=now)
    )


def touch_sessions(conn: Connection, session_ids: Sequence[Id], now: int) -> None:
    """Say that these sessions live."""
    for part in _parts(session_ids):
        conn.execute(update(sessions).where(sessions.c.id.in_(part)).values(seen_at=now))


def close_stale(conn: Connection, unseen_since: int) -> None:
    """End the rows of sessions whose node died: nobody has seen them for long."""
    conn.execute(
        update(sessions)
        .where(sessions.c.closed_at.is_(None), sessions.c.seen_at < unseen_since)
        .values(closed_at=sessions.c.seen_at)
    )


def earlier_sessions(conn: Connection, namespace_id: Id, nonce: str, since: int) -> list[Id]:
    """Sessions of one worker process that are open, or were closed after `since`."""
    recent = or_(sessions.c.closed_at.is_(None), sessions.c.closed_at > since)
    found = conn.execute(
        select(sessions.c.id).where(
            recent, sessions.c.namespace_id == namespace_id, sessions.c.nonce == nonce
        )
    )
    return list(found.scalars())


def live_handlers(conn: Connection, namespace_id: Id, since: int) -> list[str]:
    """The handlers (canonical JSON) of the namespace's open sessions that were seen after `since`."""
    found = conn.execute(
        select(sessions.c.handlers).where(
            sessions.c.closed_at.is_(None),
            sessions.c.seen_at > since,
            sessions.c.namespace_id == namespace_id,
        )
    )
    return list(found.scalars())


def open_attempts(conn: Connection, session_ids: Iterable[Id]) -> list[OpenAttempt]:
    """Attempts bound to these sessions that are not closed."""
    found: list[OpenAttempt] = []
    a = attempts.c
    columns = (a.id, a.task_id, a.generation, a.session_id, a.state, a.kind, tasks.c.cancel_requested)
    query = select(*columns).join(tasks, tasks.c.id == a.task_id)
    for part in _parts(list(session_ids)):
        rows = conn.execute(query.where(a.session_id.in_(part), a.state != "CLOSED"))
        found.extend(
            OpenAttempt(
                Held(row.task_id, row.id, row.generation),
                row.session_id,
                started=row.state == "RUNNING",
                cancel_requested=bool(row.cancel_requested) and row.kind == "RUN",
            )
            for row in rows
        )
    return found


def name_of_namespace(conn: Connection, namespace_id: Id) -> str:
    """Its name; the id where there is no row (which only tests do)."""
    name = conn.execute(select(namespaces.c.name).where(namespaces.c.id == namespace_id)).scalar_one_or_none()
    return namespace_id if name is None else str(name)


def places_of(conn: Connection, task_ids: Sequence[Id]) -> dict[Id, Place]:
    """Task id -> where it belongs, for tasks that exist."""
    found: dict[Id, Place] = {}
    columns = tasks.c.id, tasks.c.queue, tasks.c.instance_id
    for part in _parts(task_ids):
        rows = conn.execute(select(*columns).where(tasks.c.id.in_(part)))
        found.update({row.id: Place(row.queue, row.instance_id) for row in rows})
    return found


def _parts(ids: Sequence[Id]) -> Iterable[Sequence[Id]]:
    return (ids[first : first + _IDS_AT_ONCE] for first in range(0, len(ids), _IDS_AT_ONCE))
