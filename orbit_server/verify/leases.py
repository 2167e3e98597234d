"""Rules 1 and 2: leases, starts and permits."""

from __future__ import annotations

from typing import Final

from orbit_server.verify.finding import Probe

ONE_LEASE: Final = (
    Probe(
        "task",
        "has {0} open attempts",
        "SELECT task_id, COUNT(*) FROM attempts WHERE state <> 'CLOSED' GROUP BY task_id HAVING COUNT(*) > 1",
    ),
    Probe(
        "attempt",
        "is open but is not the attempt that its task holds",
        """
        SELECT a.id FROM attempts a LEFT JOIN tasks t ON t.id = a.task_id
        WHERE a.state <> 'CLOSED' AND (t.attempt_id IS NULL OR t.attempt_id <> a.id)
        """,
    ),
    Probe(
        "task",
        "holds an attempt that is closed or gone",
        """
        SELECT t.id FROM tasks t LEFT JOIN attempts a ON a.id = t.attempt_id
        WHERE t.attempt_id IS NOT NULL AND (a.id IS NULL OR a.state = 'CLOSED' OR a.task_id <> t.id)
        """,
    ),
    Probe(
        "task",
        "gave generation {0} to {1} attempts",
        """
        SELECT task_id, generation, COUNT(*) FROM attempts
        GROUP BY task_id, generation HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "attempt",
        "has generation {0}; its task never gave more than {1}",
        """
        SELECT a.id, a.generation, t.generation FROM attempts a JOIN tasks t ON t.id = a.task_id
        WHERE a.generation > t.generation
        """,
    ),
    Probe(
        "attempt",
        "started before attempt {0} of the same task was closed",
        """
        SELECT late.id, early.id FROM attempts early
        JOIN attempts late ON late.task_id = early.task_id AND late.generation > early.generation
        WHERE late.started_at IS NOT NULL AND early.started_at IS NOT NULL
          AND (early.closed_at IS NULL OR early.closed_at > late.started_at)
        """,
    ),
    Probe(
        "attempt",
        "started at {0}, after the last moment allowed",
        """
        SELECT a.id, a.started_at FROM attempts a JOIN tasks t ON t.id = a.task_id
        WHERE a.kind = 'RUN' AND (a.started_at > t.latest_start_at OR a.started_at > t.total_deadline_at)
        """,
    ),
    Probe(
        "attempt",
        "started after the cancel of its workflow was stored",
        """
        SELECT DISTINCT a.id FROM attempts a JOIN tasks t ON t.id = a.task_id
        JOIN audit c ON c.subject_id = t.instance_id AND c.action = 'workflow.cancel'
        WHERE a.kind = 'RUN' AND a.started_at > c.at
        """,
    ),
    Probe(
        "attempt",
        "started after the cancel of its task was stored",
        """
        SELECT DISTINCT a.id FROM attempts a
        JOIN audit c ON c.subject_id = a.task_id AND c.action = 'task.cancel'
        WHERE a.kind = 'RUN' AND a.started_at > c.at
        """,
    ),
    Probe(
        "attempt",
        "started while its workflow was paused",
        """
        SELECT DISTINCT a.id FROM attempts a JOIN tasks t ON t.id = a.task_id
        JOIN audit p ON p.subject_id = t.instance_id AND p.action = 'workflow.pause'
        WHERE a.kind = 'RUN' AND a.started_at > p.at AND NOT EXISTS (
          SELECT 1 FROM audit r WHERE r.subject_id = t.instance_id AND r.action = 'workflow.resume'
            AND r.at >= p.at AND r.at <= a.started_at)
        """,
    ),
)

PERMITS: Final = (
    Probe(
        "attempt",
        "is closed and still holds a session or permits",
        """
        SELECT id FROM attempts
        WHERE state = 'CLOSED' AND (session_id IS NOT NULL OR permits IS NOT NULL OR closed_at IS NULL)
        """,
    ),
    Probe(
        "attempt",
        "is open and bound to no session",
        "SELECT id FROM attempts WHERE state <> 'CLOSED' AND session_id IS NULL",
    ),
    Probe(
        "task",
        "is held back by a gate that nobody closed",
        """
        SELECT t.id FROM tasks t JOIN instances i ON i.id = t.instance_id
        WHERE t.gate = 1 AND i.paused = 0 AND t.settled_at IS NULL
        """,
    ),
    Probe(
        "task",
        "has blocked causes {0} that nothing will ever lift",
        """
        SELECT t.id, t.blocked FROM tasks t
        WHERE t.settled_at IS NULL AND t.blocked <> 0 AND (
          (t.blocked = 4 AND t.due_at IS NULL) OR (t.blocked = 8 AND t.attempt_id IS NULL)
          OR (t.blocked = 1 AND t.gate = 0) OR t.blocked >= 16)
        """,
    ),
    Probe(
        "limit",
        "counts {0} permits in use, and {1} open attempts hold one",
        """
        SELECT l.id, l.running, COUNT(a.id) FROM limits l
        LEFT JOIN attempts a ON a.state <> 'CLOSED' AND INSTR(a.permits, l.id) > 0
        GROUP BY l.id, l.running HAVING l.running <> COUNT(a.id)
        """,
    ),
    Probe(
        "limit",
        "allows {0}; {1} attempts that were claimed since it was set hold a permit",
        """
        SELECT l.id, l.running_max, COUNT(a.id) FROM limits l
        JOIN attempts a ON a.state <> 'CLOSED' AND a.offered_at > l.changed_at AND INSTR(a.permits, l.id) > 0
        WHERE l.running_max IS NOT NULL
        GROUP BY l.id, l.running_max HAVING COUNT(a.id) > l.running_max
        """,
    ),
    Probe(
        "limit",
        "counts a backlog of {0}; {1} tasks count there",
        """
        SELECT l.id, l.backlog, COUNT(t.id) FROM limits l
        LEFT JOIN tasks t ON t.namespace_id = l.namespace_id AND t.counted <> 0 AND (
          (l.queue IS NULL AND t.counted >= 2) OR (l.queue = t.queue AND t.counted IN (1, 3)))
        GROUP BY l.id, l.backlog HAVING l.backlog <> COUNT(t.id)
        """,
    ),
    Probe(
        "key",
        "is held {0} times by its row, {1} times by its tasks",
        """
        SELECT k.id, k.held, COUNT(t.id) FROM concurrency_keys k LEFT JOIN (
          SELECT h.id, h.namespace_id, h.queue_id, h.concurrency_key FROM tasks h
          LEFT JOIN attempts a ON a.id = h.attempt_id
          WHERE h.concurrency_key IS NOT NULL
            AND ((h.state = 'READY' AND h.blocked = 0) OR a.kind = 'RUN')
        ) t ON t.namespace_id = k.namespace_id AND t.queue_id = k.queue_id AND t.concurrency_key = k.name
        GROUP BY k.id, k.held HAVING k.held <> COUNT(t.id)
        """,
    ),
    Probe(
        "key",
        "has {0} waiters by its row, {1} by its tasks",
        """
        SELECT k.id, k.waiting, COUNT(t.id) FROM concurrency_keys k LEFT JOIN tasks t
          ON t.namespace_id = k.namespace_id AND t.queue_id = k.queue_id AND t.concurrency_key = k.name
          AND t.state = 'READY' AND t.blocked = 2
        GROUP BY k.id, k.waiting HAVING k.waiting <> COUNT(t.id)
        """,
    ),
    Probe(
        "key",
        "has {0} waiters that nobody will wake",
        "SELECT id, waiting FROM concurrency_keys WHERE (waiting > 0) <> (admit_at IS NOT NULL)",
    ),
    Probe(
        "task",
        "has a key without a row",
        """
        SELECT t.id FROM tasks t LEFT JOIN concurrency_keys k
          ON t.namespace_id = k.namespace_id AND t.queue_id = k.queue_id AND t.concurrency_key = k.name
        WHERE t.concurrency_key IS NOT NULL AND t.state = 'READY' AND t.blocked IN (0, 2) AND k.id IS NULL
        """,
    ),
    Probe(
        "task",
        "waits for its key, or is admitted, without its place in line",
        """
        SELECT t.id FROM tasks t LEFT JOIN key_places p ON p.id = t.id
        WHERE t.concurrency_key IS NOT NULL AND t.state = 'READY' AND t.blocked IN (0, 2)
          AND (p.id IS NULL OR (p.admitted_at IS NULL) <> (t.blocked = 2))
        """,
    ),
    Probe(
        "task",
        "has a place in line, but is not READY for its key alone",
        """
        SELECT p.id FROM key_places p LEFT JOIN tasks t ON p.id = t.id
        WHERE t.id IS NULL OR t.state <> 'READY' OR t.blocked NOT IN (0, 2)
        """,
    ),
)
