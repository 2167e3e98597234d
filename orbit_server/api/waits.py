"""Everything that waits for a signal: list it, answer it."""

from __future__ import annotations

from typing import Any

from orbit_sdk.definition.nodes import Goto, PollNode, WaitNode
from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.waits import AnswerWait, Wait
from orbit_sdk.protocol.workflows import Signal
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.masking import shown
from orbit_server.api.query import PAGING, id_filter, name_filter, text_filter
from orbit_server.api.routes import Route
from orbit_server.api.sizes import require_signal
from orbit_server.api.workflows import present
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.service import send
from orbit_server.weave.signals.commands import SendSignal
from orbit_server.weave.state.signals import signal_id
from orbit_server.weave.waits import queries
from orbit_server.weave.waits.queries import OpenWait, WaitFilter


async def _list_waits(call: Call) -> Any:
    paging = call.paging("waits", (str,))
    wanted = WaitFilter(
        workflow_id=call.query.get("workflow_id"),
        definition_id=call.query.get("definition_id"),
        business_key=call.query.get("business_key"),
        signal=call.query.get("signal"),
    )
    before: Any = paging.after[0] if paging.after else None
    rows = await call.server.database.read(
        lambda conn: queries.page(conn, call.namespace_id, wanted, before, paging.take)
    )
    compiled = {key: await call.server.weave.catalog.get(key) for key in {row.definition_key for row in rows}}
    return paging.page(rows, lambda wait: _item(call, wait, compiled), lambda wait: (wait.row.id,))


def _item(call: Call, wait: OpenWait, compiled: dict[str, Compiled]) -> dict[str, Any]:
    row, definition = wait.row, compiled[wait.definition_key].definition
    node = definition.nodes[row.step_key]
    assert isinstance(node, WaitNode | PollNode)
    document: Any = definition.to_json()
    timeout = node.on_timeout if isinstance(node, WaitNode) else node.on_exhausted
    view: dict[str, Any] = {
        "id": row.id,
        "workflow_id": row.instance_id,
        "definition_id": wait.definition_id,
        "business_key": wait.business_key,
        "step_key": row.step_key,
        "kind": node.kind,
        "title": node.title,
        "signal": row.signal,
        "match": shown(row.match_key),
        "body_type": document["signals"][row.signal]["body"],
        "since": to_rfc3339(row.opened_at),
        "deadline_at": None if row.deadline_at is None else to_rfc3339(row.deadline_at),
        "on_timeout": f"next: {timeout.next}" if isinstance(timeout, Goto) else timeout,
        "then": node.next,
        "guide": None if node.review is None else node.review.guide,
        "paused": wait.paused,
        "may_answer": call.principal.allows("workflows:signal")
        and call.principal.signals.covers(wait.definition_id, row.signal or ""),
    }
    return present(view)


async def _answer(call: Call) -> Any:
    body: AnswerWait = call.body
    activation_id = call.path["wait_id"]
    wait = await call.server.database.read(lambda conn: queries.get(conn, call.namespace_id, activation_id))
    if wait is None:
        raise NotFound("no such wait")
    row = wait.row
    assert row.signal is not None
    call.principal.require_signal(wait.definition_id, row.signal, "wait")
    behalf = call.on_behalf_of
    require_signal(call.server.settings.limits, body.body, body.evidence)
    assert row.match_key is not None
    meaning: Json = {
        "body": body.body,
        "evidence": body.evidence,
        "on_behalf_of": behalf,
        "parameters_version": body.parameters_version,
    }
    return await send(
        call.server.database,
        call.server.weave,
        SendSignal(
            signal_id=signal_id(row.instance_id, f"answer:{activation_id}"),
            namespace_id=call.namespace_id,
            instance_id=row.instance_id,
            signal=row.signal,
            match_key=row.match_key,
            body=body.body,
            digest=digest(meaning),
            actor=call.principal.actor,
            seed=call.seed(),
            weave=call.server.weave,
            activation_id=activation_id,
            parameters_version=body.parameters_version,
            evidence=body.evidence,
            on_behalf_of=behalf,
            open_only=True,
        ),
    )


ROUTES = (
    Route(
        "GET",
        "/v1/waits",
        "workflows:read",
        Page[Wait],
        _list_waits,
        "List what waits for a signal: what it takes, until when, and what happens then",
        query=(
            *PAGING,
            id_filter("workflow_id", "Only waits of this workflow."),
            name_filter("definition_id", "Only waits of workflows of this definition."),
            text_filter("business_key", "Only waits of workflows with this business key."),
            name_filter("signal", "Only waits for this signal."),
        ),
    ),
    Route(
        "POST",
        "/v1/waits/{wait_id}/answer",
        "workflows:signal",
        Signal,
        _answer,
        "Answer a wait; the same answer twice is one signal",
        body=AnswerWait,
        idempotency="natural",
    ),
)
