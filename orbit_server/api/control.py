"""Pausing, resuming and cancelling workflows."""

from __future__ import annotations

from typing import Any

from orbit_sdk.protocol.workflows import Control, ControlResult
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.routes import Handler, Route
from orbit_server.weave.control.commands import Action, ControlWorkflow
from orbit_server.weave.rehearsal.commands import Rehearse
from orbit_server.weave.service import send


def _handler(action: Action) -> Handler:
    async def control(call: Call) -> Any:
        body: Control = call.body
        instance_id = call.path["workflow_id"]
        behalf = call.on_behalf_of
        meaning: Json = {
            "expected_control_version": body.expected_control_version,
            "on_behalf_of": behalf,
            "reason": body.reason,
            "workflow_id": instance_id,
        }
        command = ControlWorkflow(
            key=call.command_key(f"workflow.{action.value}", meaning),
            action=action,
            instance_id=instance_id,
            namespace_id=call.namespace_id,
            expected_control_version=body.expected_control_version,
            actor=call.principal.actor,
            reason=body.reason,
            seed=call.seed(),
            weave=call.server.weave,
            on_behalf_of=behalf,
        )
        chosen = Rehearse(command) if body.dry_run else command
        return await send(call.server.database, call.server.weave, chosen)

    return control


_SUMMARIES = {
    Action.PAUSE: "Pause a workflow: nothing new starts, clocks run on",
    Action.RESUME: "Resume a paused workflow",
    Action.CANCEL: "Cancel a workflow: what runs is asked to stop, what was done stays done",
}

ROUTES = tuple(
    Route(
        "POST",
        f"/v1/workflows/{{workflow_id}}/{action.value}",
        "workflows:control",
        ControlResult,
        _handler(action),
        summary,
        body=Control,
        idempotency="required",
    )
    for action, summary in _SUMMARIES.items()
)
