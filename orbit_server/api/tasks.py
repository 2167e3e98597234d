"""Tasks: submit one or many, list, read, read their attempts, cancel, decide on a review."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from operator import attrgetter
from typing import Any

from orbit_sdk.engine.refs import effect_key
from orbit_sdk.errors import Detail, InvalidArgument, OrbitError
from orbit_sdk.protocol.common import micros_of
from orbit_sdk.protocol.tasks import CancelTask, ResolveTask, SubmitItem, SubmitTask
from orbit_sdk.values.canonical import canonical_json, digest, digest_of_text
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.batches import run_batch
from orbit_server.api.call import Call
from orbit_server.api.sizes import require_evidence, require_one_result, require_parameters, require_result
from orbit_server.api.task_views import read_task, task_view
from orbit_server.pulse.tasks.commands import Basis, ResolveReview, RetryTask
from orbit_server.pulse.tasks.commands import CancelTask as Cancel
from orbit_server.pulse.tasks.commands import SubmitTask as Submit
from orbit_server.pulse.tasks.decide.policy import RetryPolicy
from orbit_server.pulse.tasks.decide.stop import Verdict
from orbit_server.pulse.tasks.decide.submit import NewTask
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.storage.commands import Answered

SUBMIT = "task.submit"


# --- submit ------------------------------------------------------------------------------------------------


def _submit_command(call: Call, body: SubmitTask, key: str | None = None) -> Submit:
    """Raises PermissionDenied, InvalidArgument or PayloadTooLarge."""
    call.principal.require_submit(body.queue)
    call.principal.require_priority(body.priority)
    _check_times(call, body)
    parameters = canonical_json(body.parameters)
    require_parameters(call.server.settings.limits, parameters)
    run_at = None if body.run_at is None else micros_of(body.run_at)
    labels: Json = dict(body.labels)
    task_id = call.seed().nth(0)
    retry = body.retry
    new = NewTask(
        id=task_id,
        namespace_id=call.namespace_id,
        queue=body.queue,
        handler=body.handler,
        handler_version=body.handler_version,
        parameters=parameters,
        parameters_digest=digest_of_text(parameters),
        effect_key=effect_key(task_id, "", 0),
        recovery=Recovery(body.recovery),
        can_verify=body.can_verify,
        policy=RetryPolicy(
            retry.backoff_ms, retry.factor_percent, retry.max_backoff_ms, retry.jitter_percent
        ),
        attempts_max=retry.max_attempts,
        attempt_timeout_ms=body.attempt_timeout_ms,
        due_at=run_at,
        priority=body.priority,
        business_key=body.business_key,
        concurrency_key=body.concurrency_key,
        fairness_key=body.fairness_key,
        labels=canonical_json(labels) if body.labels else None,
        parameters_version=body.parameters_version,
        submitted_by=call.principal.actor,
        trace=body.traceparent,
        linked_to=body.linked_to,
    )
    return Submit(
        key=call.command_key(SUBMIT, _meaning(body, new, run_at, labels), key),
        new=new,
        delay_ms=body.delay_ms,
        start_within_ms=body.start_within_ms,
        total_timeout_ms=body.total_timeout_ms,
        limits=call.server.limits.of_backlog((call.namespace_id, body.queue)),
    )


def _meaning(body: SubmitTask, new: NewTask, run_at: int | None, labels: Json) -> Json:
    """What makes two submissions the same: everything that was said, defaults filled in."""
    return {
        "attempt_timeout_ms": body.attempt_timeout_ms,
        "attempts_max": new.attempts_max,
        "business_key": body.business_key,
        "can_verify": body.can_verify,
        "concurrency_key": body.concurrency_key,
        "delay_ms": body.delay_ms,
        "fairness_key": body.fairness_key,
        "handler": body.handler,
        "handler_version": body.handler_version,
        "labels": labels,
        "linked_to": body.linked_to,
        "parameters": new.parameters_digest,
        "parameters_version": body.parameters_version,
        "policy": new.policy.to_json(),
        "priority": body.priority,
        "queue": body.queue,
        "recovery": body.recovery,
        "run_at": None if run_at is None else to_rfc3339(run_at),
        "start_within_ms": body.start_within_ms,
        "total_timeout_ms": body.total_timeout_ms,
    }


def _check_times(call: Call, body: SubmitTask) -> None:
    limits = call.server.settings.limits
    problems: list[Detail] = []
    if body.delay_ms is not None and body.run_at is not None:
        problems.append(Detail("run_at", "and delay_ms exclude each other"))
    problems += [
        Detail(name, f"is longer than {limits.total_ms}")
        for name in ("total_timeout_ms", "attempt_timeout_ms")
        if getattr(body, name) > limits.total_ms
    ]
    if body.retry.max_attempts > limits.attempts:
        problems.append(Detail("retry.max_attempts", f"is more than {limits.attempts}"))
    if problems:
        raise InvalidArgument(f"{problems[0].field} {problems[0].reason}", problems)


def _accepted(command: Submit, answered: Answered[dict[str, Json]]) -> dict[str, Any]:
    """The summary of an accepted task, from what was asked and what was decided."""
    new, answer = command.new, answered.answer
    view: dict[str, Any] = {
        "id": answer["task_id"],
        "queue": new.queue,
        "handler": new.handler,
        "handler_version": new.handler_version,
        "state": answer["state"],
        "cancel_requested": False,
        "priority": new.priority,
        "attempts_used": 0,
        "attempts_max": new.attempts_max,
        "revision": answer["revision"],
        "created_at": to_rfc3339(answered.at),
    }
    if new.business_key is not None:
        view["business_key"] = new.business_key
    if answer["state"] == "SCHEDULED":
        due_at = new.due_at if command.delay_ms is None else answered.at + command.delay_ms * 1000
        view["due_at"] = to_rfc3339(due_at or answered.at)
    return view


async def submit(call: Call) -> Any:
    """Accept one task."""
    command = _submit_command(call, call.body)
    return _accepted(command, await call.server.database.committer.post(command))


async def submit_batch(call: Call) -> Any:
    """Accept many tasks in as few transactions as possible."""

    async def submit_all(items: list[SubmitItem]) -> list[str | OrbitError]:
        waiting = [_post(call, item) for item in items]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        return [_outcome(answer) for answer in answers]

    return await run_batch(call.body, attrgetter("idempotency_key"), submit_all)


def _post(call: Call, item: SubmitItem) -> asyncio.Future[Any]:
    try:
        command = _submit_command(call, item, item.idempotency_key)
    except OrbitError as error:
        refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        return refused
    return call.server.database.committer.post(command)


def _outcome(answer: Answered[dict[str, Json]] | BaseException) -> str | OrbitError:
    if isinstance(answer, Answered):
        return str(answer.answer["task_id"])
    if isinstance(answer, OrbitError):
        return answer
    raise answer


# --- a person's orders -------------------------------------------------------------------------------------


async def cancel(call: Call) -> Any:
    """Cancel a standalone task; answers how it stands then."""
    body: CancelTask = call.body
    task_id = call.path["task_id"]
    command = Cancel(
        key=call.command_key("task.cancel", {"task_id": task_id, **body.model_dump(mode="json")}),
        namespace_id=call.namespace_id,
        task_id=task_id,
        by=call.by(),
    )
    await call.server.database.committer.submit(command)
    return task_view(await read_task(call, task_id))


async def resolve(call: Call) -> Any:
    """RETRY answers the new task, every other verdict the task itself."""
    body: ResolveTask = call.body
    task_id = call.path["task_id"]
    require_evidence(call.server.settings.limits, body.evidence)
    require_one_result(body)
    if body.verdict == "RETRY":
        call.principal.require("tasks:retry")
    by = replace(
        call.by(),
        basis=Basis(body.basis),
        evidence=None if body.evidence is None else canonical_json(body.evidence),
    )
    key = call.command_key("task.review", {"task_id": task_id, **body.model_dump(mode="json")})
    command: RetryTask | ResolveReview
    if body.verdict == "RETRY":
        command = RetryTask(
            key=key,
            namespace_id=call.namespace_id,
            task_id=task_id,
            expected_revision=body.expected_revision,
            by=by,
            attempts_max=DEFAULTS.attempts,
            total_timeout_ms=DEFAULTS.total_timeout_ms,
            adopt=body.adopt,
            priority_max=call.principal.priority_max,
        )
    else:
        says = body.verdict == "SUCCEEDED" and body.adopt is None
        result = canonical_json(body.result) if says else None
        require_result(call.server.settings.limits, result)
        command = ResolveReview(
            key=key,
            namespace_id=call.namespace_id,
            task_id=task_id,
            expected_revision=body.expected_revision,
            verdict=Verdict(body.verdict),
            by=by,
            result=result,
            result_digest=None if result is None else digest(body.result),
            code=body.code,
            message=body.message or "",
            adopt=body.adopt,
        )
    answer = await call.server.database.committer.submit(command)
    return task_view(await read_task(call, str(answer["task_id"])))
