"""The kind of a limit's row."""

from __future__ import annotations

from orbit_server.pulse.tasks.limits.records import LimitRow
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

LIMITS: RowKind[LimitRow] = RowKind("limits", LockOrder.LIMITS, tables.limits, LimitRow, touchable=True)
KINDS = (LIMITS,)
