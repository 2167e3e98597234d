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
)
