"""Reading what could be claimed: through the ready index alone, without a lock; stale is harmless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.dispatch.sessions import HandlerKey
from orbit_server.pulse.dispatch.slots import Lane
from orbit_server.pulse.ids import queue_id_of
from orbit_server.pulse.queues.queries import Signpost, signposts
from orbit_server.pulse.tasks.lifecycle import TaskState
from orbit_server.storage import tables

_T = tables.tasks.c
_QUERY = (
    select(_T.priority, _T.virtual_start, _T.id)
    .where(
        _T.queue_id == bindparam("queue_id"),
        _T.state == bindparam("state"),
        _T.blocked == 0,
        _T.handler == bindparam("handler"),
        _T.handler_version == bindparam("version"),
    )
    .order_by(_T.priority.desc(), _T.virtual_start, _T.id)
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class Look:
    """What to look for in one lane: handlers to run and to verify, and how many at most of each."""

    lane: Lane
    run: frozenset[HandlerKey]
    verify: frozenset[HandlerKey]
    most: int

    @property
    def queue_id(self) -> Id:
        """The lane's queue."""
        return queue_id_of(*self.lane)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A task that could be claimed; the order is that of claiming."""

    place: int
    virtual_start: int
    task_id: Id
    key: HandlerKey
    verify: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look found: candidates in order, whether there may be more, and the queue's signpost."""

    look: Look
    candidates: Sequence[Candidate]
    more: bool
    signpost: Signpost | None


def look(conn: Connection, looks: Iterable[Look]) -> list[Seen]:
    """Candidates of several lanes. A paused queue has none."""
    wanted = list(looks)
    posts = signposts(conn, [one.queue_id for one in wanted])
    return [_look(conn, one, posts.get(one.queue_id)) for one in wanted]


def _look(conn: Connection, wanted: Look, post: Signpost | None) -> Seen:
    if post is not None and post.paused:
        return Seen(wanted, (), more=False, signpost=post)
    found: list[Candidate] = []
    more = False
    asked = [(TaskState.READY, key, False) for key in wanted.run]
    asked += [
        (state, key, True) for key in wanted.verify for state in (TaskState.VERIFYING, TaskState.CANCELLING)
    ]
    queue_id = wanted.queue_id
    for state, (handler, version), verify in asked:
        values = {
            "queue_id": queue_id,
            "state": state.value,
            "handler": handler,
            "version": version,
            "most": wanted.most,
        }
        rows = conn.execute(_QUERY, values).all()
        more = more or len(rows) >= wanted.most
        found.extend(
            Candidate(-priority, start, task_id, (handler, version), verify)
            for priority, start, task_id in rows
        )
    found.sort()
    return Seen(wanted, found, more, post)
