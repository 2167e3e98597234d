"""Rules 3 and 9: what belongs together is stored together, and every change leaves its trace."""

from __future__ import annotations

from typing import Final

from orbit_server.verify.finding import Probe

WHOLE: Final = (
    Probe(
        "idempotency",
        "acknowledged {0} {1}, which does not exist",
        """
        SELECT k.id, k.operation, k.subject_id FROM idempotency k
        WHERE k.subject_id IS NOT NULL AND k.expires_at IS NULL
          AND NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM signals s WHERE s.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM definitions d WHERE d.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM schedules h WHERE h.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM schedule_fires f WHERE f.id = k.subject_id)
          AND NOT EXISTS (SELECT 1 FROM bulks b WHERE b.id = k.subject_id)
        """,
    ),
    Probe(
        "workflow",
        "has no stored input",
        """
        SELECT i.id FROM instances i LEFT JOIN instance_inputs n ON n.instance_id = i.id
        WHERE n.instance_id IS NULL
        """,
    ),
    Probe(
        "workflow",
        "has ended without its outcome, or has an outcome without having ended",
        """
        SELECT i.id FROM instances i LEFT JOIN instance_outputs o ON o.instance_id = i.id
        WHERE (i.ended_at IS NULL) <> (o.instance_id IS NULL)
        """,
    ),
    Probe(
        "task",
        "has no stored parameters",
        "SELECT t.id FROM tasks t LEFT JOIN task_specs s ON s.task_id = t.id WHERE s.task_id IS NULL",
    ),
    Probe(
        "task",
        "is settled without its result, or has a result without being settled",
        """
        SELECT t.id FROM tasks t LEFT JOIN task_results r ON r.task_id = t.id
        WHERE (t.settled_at IS NULL) <> (r.task_id IS NULL)
        """,
    ),
    Probe(
        "signal",
        "has no stored body",
        "SELECT s.id FROM signals s LEFT JOIN signal_bodies b ON b.id = s.id WHERE b.id IS NULL",
    ),
    Probe(
        "workflow",
        "runs a definition that is not stored",
        """
        SELECT i.id FROM instances i LEFT JOIN definition_documents d ON d.id = i.definition_key
        WHERE d.id IS NULL
        """,
    ),
    Probe(
        "definition",
        "has no stored document",
        "SELECT d.id FROM definitions d LEFT JOIN definition_documents x ON x.id = d.id WHERE x.id IS NULL",
    ),
    Probe(
        "step",
        "waits for task {0}, which does not exist",
        """
        SELECT s.id, s.task_id FROM steps s LEFT JOIN tasks t ON t.id = s.task_id
        WHERE s.task_id IS NOT NULL AND t.id IS NULL
        """,
    ),
    Probe(
        "step",
        "has a result {0} that is not stored",
        """
        SELECT s.id, s.result_ref FROM steps s WHERE s.result_ref IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM tasks t JOIN task_results r ON r.task_id = t.id
            WHERE t.instance_id = s.instance_id AND t.id = SUBSTR(s.result_ref, 3))
          AND NOT EXISTS (SELECT 1 FROM payloads p
            WHERE p.instance_id = s.instance_id AND p.id = SUBSTR(s.result_ref, 3))
          AND NOT EXISTS (SELECT 1 FROM signals g JOIN signal_bodies b ON b.id = g.id
            WHERE g.instance_id = s.instance_id AND g.id = SUBSTR(s.result_ref, 3))
        """,
    ),
    Probe(
        "workflow",
        "counts {0} pending signals",
        """
        SELECT i.id, i.pending_signals FROM instances i
        WHERE i.pending_signals <> (
          SELECT COUNT(*) FROM signals s WHERE s.instance_id = i.id AND s.state = 'PENDING')
        """,
    ),
    Probe(
        "task",
        "reached its workflow's sight without an inbox row",
        """
        SELECT t.id FROM tasks t
        WHERE t.instance_id IS NOT NULL AND t.detached = 0 AND t.state = 'NEEDS_REVIEW'
          AND NOT EXISTS (
            SELECT 1 FROM inbox n WHERE n.instance_id = t.instance_id AND n.task_id = t.id)
        """,
    ),
)

TRACED: Final = (
    Probe(
        "bulk",
        "counts {0} items applied, skipped and failed, and has {1}",
        """
        SELECT * FROM (
          SELECT b.id, b.applied + b.skipped + b.failed AS counted, (
            SELECT COUNT(*) FROM bulk_items i WHERE i.bulk_id = b.id AND i.allowed = 1
              AND i.state <> 'PENDING') AS settled
          FROM bulks b WHERE b.state <> 'PURGING') AS sums
        WHERE counted <> settled
        """,
    ),
    Probe(
        "bulk",
        "was applied and nobody is on record for it",
        """
        SELECT b.id FROM bulks b WHERE b.started_at IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM audit a WHERE a.subject_id = b.id AND a.action = 'bulk.apply')
        """,
    ),
    Probe(
        "workflow",
        "was controlled {0} times but audited {1} times",
        """
        SELECT * FROM (
          SELECT i.id, i.control_version - 1 AS controlled, (
            SELECT COUNT(*) FROM audit a WHERE a.subject_id = i.id
              AND a.action IN ('workflow.pause', 'workflow.resume', 'workflow.cancel')) AS audited
          FROM instances i) AS counted
        WHERE controlled > audited
        """,
    ),
    Probe(
        "workflow",
        "is paused or cancelled and nobody is on record for it",
        """
        SELECT i.id FROM instances i WHERE (i.paused = 1 AND NOT EXISTS (
            SELECT 1 FROM audit a WHERE a.subject_id = i.id AND a.action = 'workflow.pause'))
          OR (i.cancel_requested = 1 AND NOT EXISTS (
            SELECT 1 FROM audit a WHERE a.subject_id = i.id AND a.action = 'workflow.cancel'))
        """,
    ),
    Probe(
        "task",
        "was cancelled and nobody is on record for it",
        """
        SELECT t.id FROM tasks t WHERE t.instance_id IS NULL AND t.cancel_requested = 1 AND NOT EXISTS (
          SELECT 1 FROM audit a WHERE a.subject_id = t.id AND a.action = 'task.cancel')
        """,
    ),
    Probe(
        "definition",
        "was published and nobody is on record for it",
        """
        SELECT d.id FROM definitions d WHERE NOT EXISTS (
          SELECT 1 FROM audit a WHERE a.subject_id = d.id AND a.action LIKE 'definition.%')
        """,
    ),
    Probe(
        "workflow",
        "has an event of revision {0} and is at {1}",
        """
        SELECT e.aggregate_id, e.told, x.revision FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS told FROM events
          WHERE aggregate_kind = 'workflow' GROUP BY aggregate_id) AS e
        JOIN instances x ON x.id = e.aggregate_id WHERE e.told > x.revision
        """,
    ),
    Probe(
        "step",
        "has an event of revision {0} and is at {1}",
        """
        SELECT e.aggregate_id, e.told, x.revision FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS told FROM events
          WHERE aggregate_kind = 'workflow_step' GROUP BY aggregate_id) AS e
        JOIN (SELECT step_id, MAX(revision) AS revision FROM steps GROUP BY step_id) AS x
          ON x.step_id = e.aggregate_id WHERE e.told > x.revision
        """,
    ),
    Probe(
        "task",
        "has an event of revision {0} and is at {1}",
        """
        SELECT e.aggregate_id, e.told, x.revision FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS told FROM events
          WHERE aggregate_kind = 'task' GROUP BY aggregate_id) AS e
        JOIN tasks x ON x.id = e.aggregate_id WHERE e.told > x.revision
        """,
    ),
    Probe(
        "signal",
        "has an event of revision {0} and is at {1}",
        """
        SELECT e.aggregate_id, e.told, x.revision FROM (
          SELECT aggregate_id, MAX(aggregate_revision) AS told FROM events
          WHERE aggregate_kind = 'workflow_signal' GROUP BY aggregate_id) AS e
        JOIN signals x ON x.id = e.aggregate_id WHERE e.told > x.revision
        """,
    ),
    Probe(
        "event",
        "tells of a {0} that does not exist",
        """
        SELECT e.id, e.aggregate_kind FROM events e
        WHERE ((e.aggregate_kind = 'workflow' AND NOT EXISTS (
            SELECT 1 FROM instances i WHERE i.id = e.aggregate_id))
          OR (e.aggregate_kind = 'task' AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = e.aggregate_id))
          OR (e.aggregate_kind = 'workflow_signal' AND NOT EXISTS (
            SELECT 1 FROM signals s WHERE s.id = e.aggregate_id))
          OR (e.aggregate_kind = 'workflow_step' AND NOT EXISTS (
            SELECT 1 FROM steps p WHERE p.instance_id = e.workflow_id AND p.step_id = e.aggregate_id)))
          AND NOT EXISTS (SELECT 1 FROM purges g WHERE g.id = e.workflow_id)
        """,
    ),
    Probe(
        "aggregate",
        "has {0} events of revision {1}",
        """
        SELECT aggregate_id, COUNT(*), aggregate_revision FROM events
        WHERE aggregate_kind <> 'workflow'
        GROUP BY aggregate_id, aggregate_kind, aggregate_revision HAVING COUNT(*) > 1
        """,
    ),
)
