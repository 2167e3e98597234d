"""What fairness remembers: where each key's last task ends in virtual time, how far the queue has come."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_sdk.values.ids import Id, derive_id
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

COST = 1_000
"""What a task of weight 1 takes of virtual time; tasks without a key stand at their time of arrival (in
microseconds).
"""
WEIGHT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One fairness key of one queue. `finish`: the virtual time at which its last task ends."""

    id: Id
    namespace_id: Id
    queue_id: Id
    name: str
    weight: int
    finish: int
    last: int


@dataclass(frozen=True, slots=True)
class QueueClock:
    """A queue's virtual time, read without a lock: how far its claims have come."""

    id: Id
    virtual_time: int


def flow_id_of(queue_id: Id, key: str) -> Id:
    """The id of a fairness key's row, whether or not it exists."""
    return derive_id("flow", queue_id, key)


def served_after(row: FlowRow, virtual_time: int) -> tuple[FlowRow, int]:
    """The flow with one task more, and where that task starts: behind its own, not before what is served."""
    start = max(virtual_time, row.finish)
    return altered(row, finish=start + max(1, COST // row.weight)), start


FLOWS: RowKind[FlowRow] = RowKind(
    "fair_flows", LockOrder.LIMITS + 4, tables.fair_flows, FlowRow, touchable=True
)
CLOCKS: RowKind[QueueClock] = RowKind("queue_clocks", LockOrder.QUEUES + 1, tables.queues, QueueClock)
KINDS = (FLOWS, CLOCKS)
