"""Probes: of steps in review, and of standalone tasks."""

from __future__ import annotations

from typing import Any

from orbit_sdk.protocol.reviews import ProbeReview
from orbit_sdk.protocol.tasks import Task
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import split_handler_key
from orbit_server.api.call import Call
from orbit_server.api.routes import Route
from orbit_server.api.sizes import require_parameters
from orbit_server.api.task_views import read_task, task_view
from orbit_server.pulse.tasks.probes import Ask, ProbeTask
from orbit_server.weave.reviews.probes import ProbeStep
from orbit_server.weave.service import send


async def _probe_step(call: Call) -> Any:
    instance_id, step_key = call.path["workflow_id"], call.path["step_key"]
    command = ProbeStep(
        key=call.command_key("workflow.probe", _meaning(call)),
        instance_id=instance_id,
        namespace_id=call.namespace_id,
        step_key=step_key,
        ask=_ask(call),
        weave=call.server.weave,
    )
    answer = await send(call.server.database, call.server.weave, command)
    return task_view(await read_task(call, str(answer["task_id"])))


async def _probe_task(call: Call) -> Any:
    command = ProbeTask(
        key=call.command_key("task.probe", _meaning(call)),
        namespace_id=call.namespace_id,
        task_id=call.path["task_id"],
        ask=_ask(call),
    )
    answer = await call.server.database.committer.submit(command)
    return task_view(await read_task(call, str(answer["task_id"])))


def _meaning(call: Call) -> Json:
    said: Json = {**call.path, **call.body.model_dump(mode="json")}
    return said


def _ask(call: Call) -> Ask:
    """Raises PermissionDenied for a queue that the caller may not submit to, PayloadTooLarge."""
    body: ProbeReview = call.body
    if body.queue is not None:
        call.principal.require_submit(body.queue)
    parameters = None if body.parameters is None else canonical_json(body.parameters)
    if parameters is not None:
        require_parameters(call.server.settings.limits, parameters)
    return Ask(
        task_id=call.seed().nth(0),
        by=call.by(),
        attempt_timeout_ms=body.attempt_timeout_ms,
        start_within_ms=body.start_within_ms,
        handler=None if body.handler is None else split_handler_key(body.handler),
        queue=body.queue,
        parameters=parameters,
    )


ROUTES = (
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/reviews/{step_key}/probe",
        "workflows:recover",
        Task,
        _probe_step,
        "Find out about a step in review; what is found becomes evidence",
        body=ProbeReview,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/tasks/{task_id}/probe",
        "tasks:review",
        Task,
        _probe_task,
        "Find out about a standalone task in review; what is found becomes evidence",
        body=ProbeReview,
        idempotency="required",
    ),
)
