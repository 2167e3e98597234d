"""Workflow instances: start one or many, list, read, read their steps."""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.definition.nodes import Node, PollNode, WaitNode
from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES
from orbit_sdk.errors import Internal, InvalidArgument, NotFound, OrbitError
from orbit_sdk.protocol.workflows import (
    BatchResult,
    RestartResult,
    RestartWorkflow,
    StartBatch,
    StartItem,
    StartWorkflow,
    StepDetail,
    Steps,
    Workflow,
    WorkflowDetail,
)
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json
from orbit_server.api.batches import run_batch
from orbit_server.api.call import Call
from orbit_server.api.masking import hidden, masks_of, shown
from orbit_server.api.query import (
    counter,
    whole,
)
from orbit_server.api.routes import Route
from orbit_server.api.waiting import wait_for
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.definitions.rows import draft_key
from orbit_server.weave.instances import queries
from orbit_server.weave.instances.queries import InstanceDetail, StepFacts
from orbit_server.weave.instances.restart import RestartWorkflow as Restart
from orbit_server.weave.instances.start import StartWorkflow as Start
from orbit_server.weave.rehearsal.commands import Rehearse
from orbit_server.weave.service import send, send_all
from orbit_server.weave.state.apply import InstanceMoved
from orbit_server.weave.state.rows import InstanceRow
from orbit_server.weave.state.views import is_draft, step_view, summary_of

START = "workflow.start"
WAIT_MS_MAX = 20_000


def _start_command(call: Call, body: StartWorkflow, key: str | None = None) -> Start:
    labels: Json = dict(body.labels)
    meaning: dict[str, Json] = {
        "business_key": body.business_key,
        "definition_id": body.definition_id,
        "input": body.input,
        "labels": labels,
        "parameters_version": body.parameters_version,
        "version": body.version,
    }
    draft = None
    if body.draft is not None:
        if body.version is not None:
            raise InvalidArgument.at(
                "draft", "and version do not go together: a draft is named by its digest"
            )
        meaning["draft"] = body.draft
        draft = draft_key(call.namespace_id, body.definition_id, body.draft)
    seed = call.seed()
    return Start(
        key=call.command_key(START, meaning, key),
        instance_id=seed.nth(0),
        namespace_id=call.namespace_id,
        definition_id=body.definition_id,
        version=body.version,
        input=body.input,
        started_by=call.principal.actor,
        seed=call.seed(),
        weave=call.server.weave,
        business_key=body.business_key,
        labels=canonical_json(labels) if body.labels else None,
        parameters_version=body.parameters_version,
        priority_max=call.principal.priority_max,
        draft=draft,
    )


async def _start(call: Call) -> Any:
    return await send(call.server.database, call.server.weave, _start_command(call, call.body))


async def _restart(call: Call) -> Any:
    body: RestartWorkflow = call.body
    origin_id = call.path["workflow_id"]

    def read(conn: Connection) -> tuple[InstanceRow, InstanceRow | None] | None:
        row = queries.head(conn, call.namespace_id, origin_id)
        return None if row is None else (row, queries.head(conn, call.namespace_id, row.effect_root))

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such workflow")
    row, root = found
    behalf = call.on_behalf_of
    other_input = "input" in body.model_fields_set
    meaning: Json = {
        "effects": body.effects,
        "input": body.input if other_input else None,
        "on_behalf_of": behalf,
        "other_input": other_input,
        "reason": body.reason,
        "version": body.version,
        "workflow_id": origin_id,
    }
    near = [] if root is None else [root.id, *([] if root.heir is None else [root.heir])]
    command = Restart(
        key=call.command_key("workflow.restart", meaning),
        instance_id=call.seed().nth(0),
        namespace_id=call.namespace_id,
        origin_id=origin_id,
        effects=body.effects,
        version=body.version or row.definition_version,
        definition_id=row.definition_id,
        started_by=call.principal.actor,
        reason=body.reason,
        seed=call.seed(),
        weave=call.server.weave,
        input=body.input,
        other_input=other_input,
        near=tuple(near) if body.effects == "SAME" else (),
        priority_max=call.principal.priority_max,
        draft=row.definition_key if body.version is None and is_draft(row) else None,
        on_behalf_of=behalf,
    )
    chosen = Rehearse(command) if body.dry_run else command
    return await send(call.server.database, call.server.weave, chosen)


async def _start_batch(call: Call) -> Any:
    async def submit(items: list[StartItem]) -> list[Any]:
        commands = [_start_command(call, item, item.idempotency_key) for item in items]
        answers = await send_all(call.server.database, call.server.weave, commands)
        return [answer if isinstance(answer, OrbitError) else answer.answer["id"] for answer in answers]

    return await run_batch(call.body, attrgetter("idempotency_key"), submit)


async def _get_workflow(call: Call) -> Any:
    wait_ms = call.query.get("wait_ms", 0)
    if wait_ms:
        await _wait(call, wait_ms, call.query.get("after_revision"))
    detail = await call.server.database.read(
        lambda conn: queries.get(conn, call.namespace_id, call.path["workflow_id"])
    )
    if detail is None:
        raise NotFound("no such workflow")
    compiled = None
    if not call.principal.allows("payloads:read"):
        compiled = await compiled_of(call, detail.row)
    return _detail(detail, compiled)


async def _wait(call: Call, wait_ms: int, after: int | None) -> None:
    """Until the instance has passed the revision, ended or needs a person, or the time is over.

    With a revision, a review that the caller has seen is no news.
    """
    instance_id, health, clock = call.path["workflow_id"], call.server.health, call.server.clock
    until_us = clock.monotonic_us() + wait_ms * 1000
    movements = call.server.movements
    gone = asyncio.ensure_future(call.gone())
    try:
        while True:
            event = movements.watch(instance_id, lambda moved: _is_news(moved, after))
            try:
                row = await call.server.database.read(
                    lambda conn: queries.head(conn, call.namespace_id, instance_id)
                )
                left_us = until_us - clock.monotonic_us()
                if row is None or _is_news(row, after) or left_us <= 0 or health.draining or gone.done():
                    return
                await wait_for(event, gone, left_us / 1_000_000)
            finally:
                movements.leave(instance_id, event)
    finally:
        gone.cancel()


def _is_news(row: InstanceRow | InstanceMoved, after: int | None) -> bool:
    if row.state in TERMINAL_INSTANCE_STATES:
        return True
    return row.state.value == "NEEDS_REVIEW" if after is None else row.revision > after


def _detail(detail: InstanceDetail, masked_by: Compiled | None) -> dict[str, Any]:
    view: dict[str, Any] = summary_of(detail.row)
    view["started_by"] = detail.started_by
    view["parameters_version"] = detail.row.parameters_version
    if detail.labels is not None:
        view["labels"] = shown(detail.labels)
    if detail.error is not None:
        view["error"] = shown(detail.error)
    if masked_by is None:
        view["input"] = shown(detail.input)
        output = shown(detail.output)
    else:
        masks = masks_of(masked_by)
        view["input"] = masks.input(detail.input)
        output = masks.output(detail.output)
    if detail.output is not None:
        view["output"] = output
    return view


async def compiled_of(call: Call, row: InstanceRow) -> Compiled:
    """The definition version that an instance is bound to."""
    return await call.server.weave.catalog.get(row.definition_key)


async def _list_steps(call: Call) -> Any:
    def read(conn: Connection) -> tuple[InstanceRow, list[StepFacts]] | None:
        row = queries.head(conn, call.namespace_id, call.path["workflow_id"])
        return None if row is None else (row, queries.latest_steps(conn, row.id))

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such workflow")
    row, steps = found
    compiled = await compiled_of(call, row)
    active = {facts.row.step_key for facts in steps}
    items = [step_item(facts, compiled) for facts in steps]
    ended = row.state in TERMINAL_INSTANCE_STATES
    for key, node in compiled.definition.nodes.items():
        if key not in active:  # never activated: derived, not stored
            items.append(_untouched(key, node, ended=ended))
    return {"workflow_id": row.id, "revision": str(row.revision), "items": items}


def _untouched(key: str, node: Node, *, ended: bool) -> dict[str, Any]:
    view: dict[str, Any] = {"key": key, "kind": node.kind, "state": "SKIPPED" if ended else "PENDING"}
    view |= {"activation_no": 0, "revision": "0"}
    return view | present({"title": node.title, "signal": _signal_of(node)})


def _signal_of(node: Node) -> str | None:
    """The signal that a step of this kind takes."""
    match node:
        case WaitNode():
            return node.signal
        case PollNode():
            return None if node.final_signal is None else node.final_signal.signal
        case _:
            return None


def present(values: dict[str, Any]) -> dict[str, Any]:
    """What is there: an absent value is left out."""
    return {name: value for name, value in values.items() if value is not None}


def step_item(facts: StepFacts, compiled: Compiled) -> dict[str, Any]:
    """One step as it stands (`protocol.workflows.Step`)."""
    node = compiled.definition.nodes.get(facts.row.step_key)
    if node is None:
        raise Internal(f"the step {facts.row.step_key} is not in its definition")
    return step_view(facts.row, node.kind, node.title, facts.task_state)


async def _get_step(call: Call) -> Any:
    key = call.path["step_key"]

    def read(conn: Connection) -> tuple[InstanceRow, StepFacts | None] | None:
        row = queries.head(conn, call.namespace_id, call.path["workflow_id"])
        return None if row is None else (row, queries.step(conn, row.id, key))

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such workflow")
    row, facts = found
    compiled = await compiled_of(call, row)
    node = compiled.definition.nodes.get(key)
    if node is None:
        raise NotFound("no such step")
    if facts is None:
        return _untouched(key, node, ended=row.state in TERMINAL_INSTANCE_STATES)
    view = step_item(facts, compiled)
    reads = call.principal.allows("payloads:read")
    if facts.result is not None:
        view["result"] = shown(facts.result) if reads else masks_of(compiled).result(key, facts.result)
    if facts.failure is not None:
        view["failure"] = shown(facts.failure) if reads else hidden(facts.failure)
    return view


ROUTES = (
    Route(
        "POST",
        "/v1/workflows",
        "workflows:start",
        Workflow,
        _start,
        "Start a workflow",
        body=StartWorkflow,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/workflows/batch",
        "workflows:start",
        BatchResult,
        _start_batch,
        "Start many workflows, each with a result of its own",
        body=StartBatch,
        item=StartItem,
    ),
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/restart",
        "workflows:start",
        RestartResult,
        _restart,
        "Start a new workflow from an earlier one, saying whose effects it means",
        body=RestartWorkflow,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}",
        "workflows:read",
        WorkflowDetail,
        _get_workflow,
        "Read a workflow, waiting for news if asked to",
        query=(
            whole(
                "wait_ms",
                0,
                WAIT_MS_MAX,
                "Answer when the workflow ended, needs a person, or passed `after_revision`; "
                "at the latest after so many milliseconds.",
            ),
            counter("after_revision", "The revision that the caller has seen."),
        ),
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/steps",
        "workflows:read",
        Steps,
        _list_steps,
        "Read every step as it stands",
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/steps/{step_key}",
        "workflows:read",
        StepDetail,
        _get_step,
        "Read one step with its result or failure",
    ),
)
