"""How instances and steps are shown: plain JSON values, straight from rows."""

from __future__ import annotations

import orjson

from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.weave.definitions.rows import definition_key
from orbit_server.weave.state.rows import InstanceRow, StepRow


def summary_of(row: InstanceRow) -> dict[str, Json]:
    """The summary of an instance (`protocol.workflows.Workflow`)."""
    shown: dict[str, Json] = {
        "id": row.id,
        "definition_id": row.definition_id,
        "definition_version": row.definition_version,
        "state": row.state.value,
        "paused": row.paused,
        "cancel_requested": row.cancel_requested,
        "control_version": str(row.control_version),
        "revision": str(row.revision),
        "started_at": to_rfc3339(row.started_at),
    }
    if is_draft(row):
        shown["draft"] = True
    if row.business_key is not None:
        shown["business_key"] = row.business_key
    if row.ended_at is not None:
        shown["ended_at"] = to_rfc3339(row.ended_at)
    return shown


def is_draft(row: InstanceRow) -> bool:
    """Whether an instance runs a draft: the version in its row is then only what the draft says."""
    return row.definition_key != definition_key(row.namespace_id, row.definition_id, row.definition_version)


def step_view(row: StepRow, kind: str, title: str | None, task_state: str | None) -> dict[str, Json]:
    """One step as it stands (`protocol.workflows.Step`)."""
    shown: dict[str, Json] = {
        "key": row.step_key,
        "kind": kind,
        "state": row.state.value,
        "activation_id": row.id,
        "activation_no": row.activation_no,
        "revision": str(row.revision),
        "opened_at": to_rfc3339(row.opened_at),
    }
    optional: dict[str, Json] = {
        "title": title,
        "reason": row.reason,
        "review_class": None if row.review_class is None else row.review_class.value,
        "exit": row.exit_taken,
        "task_id": row.task_id,
        "task_state": task_state,
        "round": row.round or None,
        "signal": row.signal,
        "match": None if row.match_key is None else orjson.loads(row.match_key),
        "due_at": _shown(row.due_at),
        "deadline_at": _shown(row.deadline_at),
        "closed_at": _shown(row.closed_at),
    }
    shown.update({name: value for name, value in optional.items() if value is not None})
    return shown


def _shown(at: int | None) -> str | None:
    return None if at is None else to_rfc3339(at)
