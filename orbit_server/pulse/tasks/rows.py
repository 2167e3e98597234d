"""The kinds of a task's rows: how the committer touches, loads and saves them."""

from __future__ import annotations

from orbit_server.pulse.tasks.peers import PeersKind
from orbit_server.pulse.tasks.records import Attempt, Evidence, InboxRow, Progress, Task, TaskResult, TaskSpec
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind

TASKS: RowKind[Task] = RowKind("tasks", LockOrder.TASKS, tables.tasks, Task, touchable=True)
ATTEMPTS: RowKind[Attempt] = RowKind(
    "attempts", LockOrder.ATTEMPTS, tables.attempts, Attempt, owner="task_id", owner_kind="tasks"
)
TASK_SPECS: RowKind[TaskSpec] = RowKind(
    "task_specs", LockOrder.COLD, tables.task_specs, TaskSpec, key="task_id"
)
TASK_RESULTS: RowKind[TaskResult] = RowKind(
    "task_results", LockOrder.COLD, tables.task_results, TaskResult, key="task_id"
)
TASK_PROGRESS: RowKind[Progress] = RowKind(
    "task_progress", LockOrder.COLD, tables.task_progress, Progress, key="task_id"
)
INBOX: RowKind[InboxRow] = RowKind("inbox", LockOrder.INBOX, tables.inbox, InboxRow)
EVIDENCE: RowKind[Evidence] = RowKind("evidence", LockOrder.RECORDS, tables.evidence, Evidence)

TASK_PEERS = PeersKind()

KINDS = (TASKS, TASK_PEERS, ATTEMPTS, TASK_SPECS, TASK_RESULTS, TASK_PROGRESS, INBOX, EVIDENCE)
