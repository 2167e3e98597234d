"""Rules 6 and 7: never more than was allowed, and no effect twice without a decision."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

import orjson
from sqlalchemy import Connection, Row, bindparam, text

from orbit_server.verify.finding import Probe

BUDGETS: Final = (
    Probe(
        "task",
        "used {0} of {1} attempts",
        "SELECT id, attempts_used, attempts_max FROM tasks WHERE attempts_used > attempts_max",
    ),
    Probe(
        "task",
        "counts {0} attempts and was charged for {1}",
        """
        SELECT * FROM (SELECT t.id, t.attempts_used AS counted, (
          SELECT COUNT(*) FROM attempts a WHERE a.task_id = t.id AND a.kind = 'RUN' AND a.charged = 1
        ) AS charged FROM tasks t) AS sums WHERE counted <> charged
        """,
    ),
    Probe(
        "task",
        "verified {0} times at once",
        """
        SELECT task_id, COUNT(*) FROM attempts WHERE kind = 'VERIFY' AND state <> 'CLOSED'
        GROUP BY task_id HAVING COUNT(*) > 1
        """,
    ),
)

_SPENT: Final = text(
    """
    SELECT t.instance_id, i.definition_key, t.step_key, t.round, SUM(t.attempts_used) FROM tasks t
    JOIN instances i ON i.id = t.instance_id
    GROUP BY t.instance_id, i.definition_key, t.step_key, t.round
    """
)


_GRANTS: Final = text(
    """
    SELECT s.instance_id, s.step_key, a.details FROM audit a JOIN steps s ON s.id = a.subject_id
    WHERE a.action = 'workflow.review.grant'
    """
)
_GRANTED: Final = text(
    "SELECT id, instance_id, step_key, round, granted FROM steps WHERE granted IS NOT NULL"
)


def beyond_the_definition(conn: Connection) -> Iterator[tuple[str, str, str]]:
    """More attempts of one round, over all activations, or more rounds than the definition allows and the
    audit says were granted.
    """
    budgets: dict[tuple[str, str], tuple[int, int]] = {}
    for key, document in conn.execute(text("SELECT id, document FROM definition_documents")):
        for step_key, node in orjson.loads(document)["nodes"].items():
            if node["kind"] in ("TASK", "POLL"):
                budgets[key, step_key] = (node["retry"]["max_attempts"], node.get("max_rounds", 0))
    granted = _granted(conn)
    for instance_id, key, step_key, number, spent in conn.execute(_SPENT):
        attempts, rounds = budgets.get((key, step_key), (0, 0))
        attempts += granted["attempts", instance_id, step_key, number]
        rounds += granted["rounds", instance_id, step_key, None]
        if spent > attempts:
            yield "workflow", instance_id, f"spent {spent} of {attempts} attempts on {step_key} ({number})"
        if number > rounds:
            yield "workflow", instance_id, f"began round {number} of {rounds} of {step_key}"


def granted_without_audit(conn: Connection) -> Iterator[tuple[str, str, str]]:
    """A step that has more of something than the audit says it was granted."""
    granted = _granted(conn)
    for step_id, instance_id, step_key, number, given in conn.execute(_GRANTED):
        attempts, rounds, time_ms = orjson.loads(given)
        for name, has, audited in (
            ("attempts", attempts, granted["attempts", instance_id, step_key, number]),
            ("rounds", rounds, granted["rounds", instance_id, step_key, None]),
            ("time_ms", time_ms, granted["time_ms", instance_id, step_key, None]),
        ):
            if has > audited:
                yield "step", step_id, f"was granted {has} {name}, of which {audited} are in the audit"


def _granted(conn: Connection) -> Counter[tuple[str, str, str, int | None]]:
    """What was granted, by kind, instance and step; attempts also by round."""
    found: Counter[tuple[str, str, str, int | None]] = Counter()
    for instance_id, step_key, details in conn.execute(_GRANTS):
        said = orjson.loads(details)["granted"]
        found["attempts", instance_id, step_key, said["round"]] += said["attempts"]
        for name in ("rounds", "time_ms"):
            found[name, instance_id, step_key, None] += said[name]
    return found


_NOT_REPEATABLE: Final = frozenset({"VERIFIABLE", "MARKED", "CONSERVATIVE"})
_UNDECIDED: Final = """
        WHERE first.kind = 'RUN' AND again.kind = 'RUN' AND again.started_at IS NOT NULL
          AND first.recovery IN ('VERIFIABLE', 'MARKED', 'CONSERVATIVE') AND first.effect_possible = 1
          AND NOT EXISTS (
            SELECT 1 FROM attempts v WHERE v.task_id = first.task_id AND v.kind = 'VERIFY'
              AND v.outcome = 'CANNOT_HAPPEN_ANY_MORE' AND v.closed_at >= first.closed_at
              AND v.closed_at <= again.started_at)
          AND NOT EXISTS (
            SELECT 1 FROM audit d JOIN tasks t ON t.id = first.task_id
            WHERE d.at <= again.started_at AND d.at >= first.started_at
              AND d.action NOT IN ('task.probe', 'workflow.review.probe', 'workflow.review.grant')
              AND (d.subject_id = first.task_id OR d.subject_id = t.activation_id
                OR (d.action = 'workflow.restart' AND d.subject_id IN (
                  SELECT o.id FROM instances o JOIN instances i ON i.effect_root = o.effect_root
                  WHERE i.id = t.instance_id))))
          AND NOT EXISTS (
            SELECT 1 FROM purges g JOIN tasks t ON t.instance_id = g.id WHERE t.id = first.task_id)
"""
"""Neither a verification nor a person has said that the first attempt had no effect."""

EFFECTS: Final = (
    Probe(
        "attempt",
        "repeats what attempt {0} may have done",
        """
        SELECT again.id, first.id FROM attempts first
        JOIN attempts again ON again.task_id = first.task_id AND again.generation > first.generation
        """,
        _UNDECIDED,
    ),
    Probe(
        "task",
        "is {0} although an attempt may have had its effect, and nobody decided so",
        """
        SELECT t.id, t.state FROM tasks t
        WHERE t.state IN ('FAILED', 'CANCELLED', 'EXPIRED') AND t.effect_possible = 1 AND t.detached = 0
          AND NOT EXISTS (
            SELECT 1 FROM audit d WHERE (d.subject_id = t.id OR d.subject_id = t.activation_id)
              AND d.action NOT IN ('task.probe', 'workflow.review.probe', 'workflow.review.grant'))
        """,
    ),
    Probe(
        "task",
        "failed although the success of attempt {0} was stored before",
        """
        SELECT t.id, e.attempt_id FROM tasks t JOIN evidence e ON e.task_id = t.id
        JOIN attempts a ON a.id = e.attempt_id
        WHERE t.state IN ('FAILED', 'CANCELLED', 'EXPIRED') AND t.detached = 0
          AND e.kind = 'LATE_SUCCEEDED' AND e.at < t.settled_at AND a.recovery <> 'READ_ONLY'
          AND NOT EXISTS (
            SELECT 1 FROM audit d WHERE (d.subject_id = t.id OR d.subject_id = t.activation_id)
              AND d.action NOT IN ('task.probe', 'workflow.review.probe', 'workflow.review.grant'))
        """,
    ),
    Probe(
        "step",
        "took its failure exit while task {0} is {1}",
        """
        SELECT s.id, t.id, t.state FROM steps s JOIN tasks t ON t.id = s.task_id
        WHERE s.failure_ref IS NOT NULL AND s.live = 0 AND SUBSTR(s.failure_ref, 1, 1) = 'T'
          AND t.state NOT IN ('FAILED', 'EXPIRED', 'CANCELLED')
        """,
    ),
)

_SHARED: Final = text(
    """
    SELECT s.effect_key, s.task_id FROM task_specs s WHERE s.effect_key IN (
      SELECT effect_key FROM task_specs GROUP BY effect_key HAVING COUNT(*) > 1)
    """
)
_RUNS: Final = text(
    """
    SELECT id, task_id, started_at, effect_possible, recovery FROM attempts
    WHERE task_id IN :tasks AND kind = 'RUN' AND started_at IS NOT NULL
    """
).bindparams(bindparam("tasks", expanding=True))
_PAIR: Final = """
    SELECT again.id FROM attempts first JOIN attempts again ON again.id = :again AND first.id = :first
"""
_BITE: Final = 500


def repeated_elsewhere(conn: Connection) -> Iterator[tuple[str, str, str]]:
    """An attempt that repeats what one of another task of the same effect key may have done.

    Pairs are found here and judged one by one: no index leads from an effect key to its tasks, and a database
    that joins all of them with all others does not come back.
    """
    keys: dict[str, str] = {task_id: key for key, task_id in conn.execute(_SHARED)}
    runs: dict[str, list[Row[Any]]] = defaultdict(list)
    tasks = list(keys)
    for place in range(0, len(tasks), _BITE):
        for run in conn.execute(_RUNS, {"tasks": tasks[place : place + _BITE]}):
            runs[keys[run.task_id]].append(run)
    judge = text(_PAIR + _UNDECIDED)
    for found in runs.values():
        for first in found:
            if not first.effect_possible or first.recovery not in _NOT_REPEATABLE:
                continue
            for again in found:
                if again.task_id == first.task_id or again.started_at < first.started_at:
                    continue
                if conn.execute(judge, {"first": first.id, "again": again.id}).first() is not None:
                    yield (
                        "attempt",
                        again.id,
                        f"repeats what attempt {first.id} of another task may have done",
                    )
