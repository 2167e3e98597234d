"""A queue's row. It exists only once something was said about the queue; without a row nothing holds it back.

Limits of queues, namespaces and keys are kinds of their own, touched after this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.values.ids import Id
from orbit_server.pulse.tasks.fairness import rows as fairness
from orbit_server.pulse.tasks.keys import rows as keys
from orbit_server.pulse.tasks.limits import rows as limits
from orbit_server.pulse.workers import rows as workers
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


@dataclass(frozen=True, slots=True)
class QueueRow:
    """`paused` is a brake: claims read it without a lock, one in flight may pass. `wake_seq` rises when a
    node leaves ready work that it cannot place itself; `virtual_time` is how far claims have come, where
    fairness counts.
    """

    id: Id
    namespace_id: Id
    name: str
    paused: bool
    wake_seq: int
    virtual_time: int
    revision: int
    last: int


QUEUES: RowKind[QueueRow] = RowKind("queues", LockOrder.QUEUES, tables.queues, QueueRow, touchable=True)
KINDS = (QUEUES, *limits.KINDS, *keys.KINDS, *fairness.KINDS, *workers.KINDS)
"""Everything that decides about order and room."""
