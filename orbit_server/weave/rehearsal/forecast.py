"""A decision told as what would follow from it. Ids of what it would make are left out: they would differ."""

from __future__ import annotations

from orbit_sdk.engine.decision import (
    CancelTask,
    CreateTask,
    Decision,
    DetachTask,
    Effect,
    GateTasks,
    SettleTask,
    StepChange,
)
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json


def forecast_of(decision: Decision) -> dict[str, Json]:
    """`protocol.workflows.Forecast` as JSON."""
    head = decision.instance
    shown: dict[str, Json] = {
        "state": head.state.value,
        "paused": head.paused,
        "cancel_requested": head.cancel_requested,
        "ends": head.ended_at is not None,
        "steps": [_step(change) for change in decision.steps],
        "tasks": [order for effect in decision.effects for order in _orders(effect)],
        "signals": [
            {"id": change.after.id, "signal": change.after.signal, "state": change.after.state.value}
            for change in decision.signals
        ],
        "effects_kept": list(decision.effects_kept),
    }
    if decision.error is not None:
        shown["error"] = {"code": decision.error[0], "message": decision.error[1]}
    return shown


def _step(change: StepChange) -> dict[str, Json]:
    after = change.after
    optional: dict[str, Json] = {
        "before": None if change.before is None else change.before.state.value,
        "reason": after.reason,
        "review_class": None if after.review_class is None else after.review_class.value,
        "round": after.round or None,
        "due_at": None if after.due_at is None else to_rfc3339(after.due_at),
        "deadline_at": None if after.deadline_at is None else to_rfc3339(after.deadline_at),
    }
    shown: dict[str, Json] = {
        "key": after.step_key,
        "activation_no": after.activation_no,
        "state": after.state.value,
    }
    return shown | {name: value for name, value in optional.items() if value is not None}


def _orders(effect: Effect) -> list[dict[str, Json]]:
    match effect:
        case CreateTask():
            return [
                {
                    "order": "CREATE",
                    "step_key": effect.step_key,
                    "handler": f"{effect.handler}@{effect.handler_version}",
                    "queue": effect.queue,
                    "effect_key": effect.effect_key,
                    "attempts_max": effect.attempts_max,
                    "total_deadline_at": to_rfc3339(effect.total_deadline_at),
                }
            ]
        case CancelTask():
            return [{"order": "CANCEL", "task_id": effect.task_id}]
        case DetachTask():
            return [{"order": "LET_GO", "task_id": effect.task_id}]
        case SettleTask():
            return [{"order": f"SETTLE_{effect.phase}", "task_id": effect.task_id}]
        case GateTasks():
            word = "HOLD" if effect.closed else "RELEASE"
            return [{"order": word, "task_id": task_id} for task_id in effect.task_ids]
