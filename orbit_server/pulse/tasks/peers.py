"""Which other tasks share a task's effect key: later activations of its step, later retries of itself.

Read after the task was touched. Whoever makes such a task settles the one before it in the same transaction,
and so touches it: what is read here can only be short of tasks that will see the flags of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.values.ids import Id
from orbit_server.pulse.ids import retry_id_of
from orbit_server.pulse.tasks.records import Peer
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder
from orbit_server.storage.pipe import Pipe

_RETRIES_MAX = 100
_MINE = tables.tasks.alias("mine").c
_PEER = tables.tasks.alias("peer").c


class PeersKind:
    """A kind that is only read: members of a task."""

    name = "task_peers"
    order = int(LockOrder.TASKS) + 5
    owner_kind: str | None = "tasks"

    def touch(self, conn: Connection, ids: Sequence[Id]) -> None:
        """Nothing of its own is locked: the tasks themselves are named and touched as tasks."""

    def load(self, conn: Connection, ids: Sequence[Id]) -> Mapping[Id, tuple[Peer, ...]]:
        """The peers of each task."""
        return {task_id: tuple(self._of(conn, task_id)) for task_id in ids}

    def ask(
        self,
        conn: Connection,
        pipe: Pipe,  # noqa: ARG002  # a kind's signature
        ids: Sequence[Id],
    ) -> Callable[[], Mapping[Id, Any]]:
        """Nothing is asked ahead: such rows are few and rare."""
        return lambda: self.load(conn, ids)

    def save(self, conn: Connection, inserted: Sequence[Peer], changed: Sequence[tuple[Peer, Peer]]) -> None:
        """There is nothing to write."""

    def key_of(self, row: Peer) -> Id:
        """The peer."""
        return row.id

    def owner_of(self, row: Peer) -> Id:
        """The task it is a peer of."""
        return row.task_id

    def last_of(self, row: Peer) -> int:  # noqa: ARG002  # a kind's signature
        """No instant of its own."""
        return 0

    def stamped(self, row: Peer, at: int) -> Peer:  # noqa: ARG002  # a kind's signature
        """The row itself."""
        return row

    def _of(self, conn: Connection, task_id: Id) -> list[Peer]:
        activations = conn.execute(
            select(_PEER.id)
            .join_from(_MINE.id.table, _PEER.id.table, _PEER.instance_id == _MINE.instance_id)
            .where(
                _MINE.id == task_id,
                _PEER.step_key == _MINE.step_key,
                _PEER.round == _MINE.round,
                _PEER.id != task_id,
            )
        )
        found = [peer for (peer,) in activations]
        retry = retry_id_of(task_id)
        while len(found) < _RETRIES_MAX and _exists(conn, retry):
            found.append(retry)
            retry = retry_id_of(retry)
        return [Peer(peer, task_id) for peer in found]


def _exists(conn: Connection, task_id: Id) -> bool:
    return conn.execute(select(_MINE.id).where(_MINE.id == task_id)).first() is not None
