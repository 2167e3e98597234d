"""The real instance: what a database holds of it, told in the words of the mirror."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Connection, text

from orbit_sdk.engine import ReviewClass, TaskPhase, TaskReport, parse_ref
from orbit_server.storage.database import Database
from tests.storage.machine.mirror import SCALE

_INSTANTS = {
    "steps": ("instance_id", ("opened_at", "deadline_at", "due_at", "closed_at")),
    "signals": ("instance_id", ("accepted_at", "expires_at")),
    "tasks": (
        "instance_id",
        ("due_at", "deadline_at", "latest_start_at", "total_deadline_at", "settled_at", "last"),
    ),
}


def rows(conn: Connection, sql: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in conn.execute(text(sql), values).mappings()]


async def pass_time(database: Database, instance: str, us: int) -> None:
    """So much time goes by for this instance: what was written down lies so much further back. Leases stay
    as they are: their workers go on renewing them.
    """

    def shift(conn: Connection) -> None:
        for table, (owner, columns) in _INSTANTS.items():
            sets = ", ".join(f"{name} = {name} - :us" for name in columns)
            conn.execute(text(f"UPDATE {table} SET {sets} WHERE {owner} = :i"), {"us": us, "i": instance})
        told = ("offered_at", "started_at", "marked_at", "closed_at")
        sets = ", ".join(f"{name} = {name} - :us" for name in told)
        owned = "task_id IN (SELECT id FROM tasks WHERE instance_id = :i)"
        conn.execute(text(f"UPDATE attempts SET {sets} WHERE {owned}"), {"us": us, "i": instance})
        conn.execute(text(f"UPDATE evidence SET at = at - :us WHERE {owned}"), {"us": us, "i": instance})
        about = "subject_id = :i OR subject_id IN (SELECT id FROM steps WHERE instance_id = :i)"
        conn.execute(text(f"UPDATE audit SET at = at - :us WHERE {about}"), {"us": us, "i": instance})
        conn.execute(
            text("UPDATE instances SET advance_due_at = advance_due_at - :us WHERE id = :i"),
            {"us": us, "i": instance},
        )

    await database.write(shift)


def tasks_of(conn: Connection, instance: str) -> list[dict[str, Any]]:
    return rows(
        conn,
        "SELECT t.*, r.result AS told_result, r.error AS told_error FROM tasks t"
        " LEFT JOIN task_results r ON r.task_id = t.id WHERE t.instance_id = :i ORDER BY t.id",
        i=instance,
    )


def inbox_of(conn: Connection, instance: str) -> list[dict[str, Any]]:
    return rows(
        conn, "SELECT id, task_id, source_revision, state FROM inbox WHERE instance_id = :i", i=instance
    )


def report_of(row: dict[str, Any], task_id: str, at: int) -> TaskReport:
    """The stored fact about a task, under the oracle's id; `at` is the oracle's time of storing."""
    settled = row["state"] in {phase.value for phase in TaskPhase}
    phase = TaskPhase(row["state"]) if settled else TaskPhase.OPEN
    error = orjson.loads(row["told_error"]) if row["told_error"] else {}
    return TaskReport(
        task_id=task_id,
        activation_id=row["activation_id"],
        source_revision=row["revision"],
        phase=phase,
        stored_at=at,
        result=orjson.loads(row["told_result"]) if row["told_result"] else None,
        error_code=row["error_code"],
        error_message=error.get("message"),
        review_class=None if row["review_class"] is None else ReviewClass(row["review_class"]),
        attempts_used=row["attempts_used"],
        effect_possible=bool(row["effect_possible"] or row["late_success"]),
        started=row["generation"] > 0,
    )


def seen(conn: Connection, instance: str, now: int) -> dict[str, Any]:
    """Everything of `Mirror.seen`, from rows."""
    head = rows(conn, "SELECT * FROM instances WHERE id = :i", i=instance)[0]
    ends = rows(conn, "SELECT output, error FROM instance_outputs WHERE instance_id = :i", i=instance)
    found = tasks_of(conn, instance)
    places = {row["id"]: (row["activation_id"], row["round"]) for row in found}
    payloads = {
        row["id"]: orjson.loads(row["body"])
        for row in rows(conn, "SELECT id, body FROM payloads WHERE instance_id = :i", i=instance)
    }

    def away(at: int | None) -> int | None:
        return None if at is None else round((at - now) / 1_000_000 / SCALE)

    def ref(value: str | None) -> Any:
        if value is None:
            return None
        kind, identity = parse_ref(value)
        if kind == "T":
            return kind, places[identity]
        return (kind, identity) if kind == "S" else (kind, payloads[identity])

    error = orjson.loads(ends[0]["error"]) if ends and ends[0]["error"] else None
    return {
        "instance": {
            "state": head["state"],
            "paused": bool(head["paused"]),
            "cancel_requested": bool(head["cancel_requested"]),
            "stopping": head["stopping"],
            "control_version": head["control_version"],
            "revision": head["revision"],
            "pending_signals": head["pending_signals"],
            "checkpoint": orjson.loads(head["checkpoint"]) if head["checkpoint"] else [],
            "advances": head["advance_due_at"] is not None,
            "ended": head["ended_at"] is not None,
        },
        "output": orjson.loads(ends[0]["output"]) if ends and ends[0]["output"] else None,
        "error": None if error is None else [error["code"], error["message"]],
        "steps": {
            row["id"]: {
                "key": row["step_key"],
                "activation": row["activation_no"],
                "state": row["state"],
                "live": bool(row["live"]),
                "revision": row["revision"],
                "reason": row["reason"],
                "review_class": row["review_class"],
                "exit": row["exit_taken"],
                "task": None if row["task_id"] is None else places[row["task_id"]],
                "task_revision": row["task_revision"],
                "round": row["round"],
                "attempts_spent": row["attempts_spent"],
                "effect_possible": bool(row["effect_possible"]),
                "signal": row["signal"],
                "match": row["match_key"],
                "deadline": away(row["deadline_at"]),
                "due": away(row["due_at"]),
                "arms": None if row["arms"] is None else orjson.loads(row["arms"]),
                "result": ref(row["result_ref"]),
                "failure": ref(row["failure_ref"]),
            }
            for row in rows(conn, "SELECT * FROM steps WHERE instance_id = :i", i=instance)
        },
        "signals": {
            row["id"]: {
                "state": row["state"],
                "revision": row["revision"],
                "step": row["step_key"],
                "leftover_of": row["leftover_of"],
                "disposition": row["disposition"],
                "consumed_step": row["consumed_step"],
                "consumed_wait": row["consumed_wait_id"],
                "expires": away(row["expires_at"]),
            }
            for row in rows(conn, "SELECT * FROM signals WHERE instance_id = :i", i=instance)
        },
        "tasks": sorted(
            (
                row["activation_id"],
                row["round"],
                row["step_key"],
                row["handler"],
                row["attempts_max"],
                away(row["total_deadline_at"]),
                away(row["latest_start_at"]),
                bool(row["detached"]),
            )
            for row in found
        ),
        "events": sorted(
            (
                row["type"],
                row["aggregate_kind"],
                row["aggregate_id"],
                row["aggregate_revision"],
                row["state"],
            )
            for row in rows(
                conn,
                "SELECT * FROM events WHERE workflow_id = :i AND task_id IS NULL AND type LIKE 'workflow.%'",
                i=instance,
            )
        ),
    }
