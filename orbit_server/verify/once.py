"""Rules 4 and 5: once is once, and final is final."""

from __future__ import annotations

from typing import Final

from orbit_server.verify.finding import Probe

ONCE: Final = (
    Probe(
        "workflow",
        "has {1} live activations of step {0}",
        """
        SELECT instance_id, step_key, COUNT(*) FROM steps WHERE live = 1
        GROUP BY instance_id, step_key HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "workflow",
        "opened activation {1} of step {0} {2} times",
        """
        SELECT instance_id, step_key, activation_no, COUNT(*) FROM steps
        GROUP BY instance_id, step_key, activation_no HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "step",
        "was opened again without a recorded decision",
        """
        SELECT s.id FROM steps s WHERE s.activation_no > 1 AND NOT EXISTS (
          SELECT 1 FROM steps p JOIN audit a ON a.subject_id = p.id AND a.action = 'workflow.review.rerun'
          WHERE p.instance_id = s.instance_id AND p.step_key = s.step_key
            AND p.activation_no = s.activation_no - 1)
        """,
    ),
    Probe(
        "wait",
        "consumed {0} signals",
        """
        SELECT consumed_wait_id, COUNT(*) FROM signals
        WHERE consumed_wait_id IS NOT NULL AND state = 'CONSUMED'
        GROUP BY consumed_wait_id HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "signal",
        "was consumed {0} times",
        """
        SELECT aggregate_id, COUNT(*) FROM events
        WHERE aggregate_kind = 'workflow_signal' AND type = 'workflow.signal.changed' AND state = 'CONSUMED'
        GROUP BY aggregate_id HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "signal",
        "is the result of {0} steps",
        """
        SELECT SUBSTR(result_ref, 3), COUNT(DISTINCT step_key) FROM steps
        WHERE SUBSTR(result_ref, 1, 1) = 'S' GROUP BY result_ref HAVING COUNT(DISTINCT step_key) > 1
        """,
    ),
    Probe(
        "task",
        "was applied twice at revision {0}",
        """
        SELECT task_id, source_revision FROM inbox WHERE state = 'APPLIED'
        GROUP BY task_id, source_revision HAVING COUNT(*) > 1
        """,
    ),
    Probe(
        "inbox",
        "tells of revision {0} of a task that is at {1}",
        """
        SELECT n.id, n.source_revision, t.revision FROM inbox n JOIN tasks t ON t.id = n.task_id
        WHERE n.source_revision > t.revision
        """,
    ),
    Probe(
        "activation",
        "has {1} tasks for round {0}",
        """
        SELECT activation_id, round, COUNT(*) FROM tasks WHERE activation_id IS NOT NULL
        GROUP BY activation_id, round HAVING COUNT(*) > 1
        """,
    ),
)

FINAL: Final = (
    Probe(
        "task",
        "has an event of revision {0} after it ended at {1}",
        """
        SELECT aggregate_id, last, ended FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS last, MIN(CASE WHEN state_scope = 'TASK'
            AND state IN ('SUCCEEDED', 'FAILED', 'EXPIRED', 'CANCELLED') THEN aggregate_revision END) AS ended
          FROM events WHERE aggregate_kind = 'task' GROUP BY aggregate_id) AS told
        WHERE last > ended
        """,
    ),
    Probe(
        "workflow",
        "has an event of revision {0} after it ended at {1}",
        """
        SELECT aggregate_id, last, ended FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS last, MIN(CASE WHEN state_scope = 'WORKFLOW'
            AND state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN aggregate_revision END) AS ended
          FROM events WHERE aggregate_kind = 'workflow' GROUP BY aggregate_id) AS told
        WHERE last > ended
        """,
    ),
    Probe(
        "workflow",
        "is {0} but its end is {1}",
        """
        SELECT id, state, ended_at FROM instances
        WHERE (ended_at IS NULL) = (state IN ('SUCCEEDED', 'FAILED', 'CANCELLED'))
        """,
    ),
    Probe(
        "task",
        "is {0} but its end is {1}",
        """
        SELECT id, state, settled_at FROM tasks
        WHERE (settled_at IS NULL) = (state IN ('SUCCEEDED', 'FAILED', 'EXPIRED', 'CANCELLED'))
        """,
    ),
    Probe(
        "task",
        "has ended and still holds an attempt, a lease or something due",
        """
        SELECT id FROM tasks WHERE settled_at IS NOT NULL AND (attempt_id IS NOT NULL
          OR lease_until IS NOT NULL OR due_at IS NOT NULL OR deadline_at IS NOT NULL)
        """,
    ),
    Probe(
        "workflow",
        "has ended and step {0} is still {1}",
        """
        SELECT i.id, s.step_key, s.state FROM instances i JOIN steps s ON s.instance_id = i.id AND s.live = 1
        WHERE i.ended_at IS NOT NULL
        """,
    ),
    Probe(
        "workflow",
        "has ended and task {0} is still {1}",
        """
        SELECT i.id, t.id, t.state FROM instances i JOIN tasks t ON t.instance_id = i.id
        WHERE i.ended_at IS NOT NULL AND t.settled_at IS NULL AND t.detached = 0
        """,
    ),
    Probe(
        "attempt",
        "started after its workflow had ended",
        """
        SELECT a.id FROM attempts a JOIN tasks t ON t.id = a.task_id JOIN instances i ON i.id = t.instance_id
        WHERE a.kind = 'RUN' AND a.started_at > i.ended_at
        """,
    ),
    Probe(
        "step",
        "is closed and still {0}",
        """
        SELECT id, state FROM steps WHERE live = 0
          AND state IN ('PENDING', 'WAITING_TASK', 'WAITING_SIGNAL', 'WAITING_TIME', 'NEEDS_REVIEW')
        """,
    ),
)
