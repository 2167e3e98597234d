"""Signals of a workflow: send, list, read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from orbit_sdk.engine.matching import MAX_KEY_CHARS, match_key
from orbit_sdk.errors import InvalidArgument, NotFound
from orbit_sdk.protocol.common import Page, micros_of
from orbit_sdk.protocol.history import SignalDetail
from orbit_sdk.protocol.workflows import SendSignal, Signal
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.api.call import Call
from orbit_server.api.masking import masks_of, shown
from orbit_server.api.query import PAGING, one_of
from orbit_server.api.routes import Route
from orbit_server.api.sizes import require_signal
from orbit_server.api.workflows import compiled_of, present
from orbit_server.weave.instances import queries as instances
from orbit_server.weave.service import send
from orbit_server.weave.signals import queries
from orbit_server.weave.signals.commands import SendSignal as Send
from orbit_server.weave.signals.views import signal_view
from orbit_server.weave.state.rows import InstanceRow
from orbit_server.weave.state.signals import SignalBodyRow, SignalRow, signal_id


async def _send_signal(call: Call) -> Any:
    body: SendSignal = call.body
    instance_id = call.path["workflow_id"]
    await _check_right(call, instance_id)
    matched = match_key(body.match)
    if len(matched) > MAX_KEY_CHARS:
        raise InvalidArgument.at("match", f"is longer than {MAX_KEY_CHARS} characters in canonical form")
    require_signal(call.server.settings.limits, body.body, body.evidence)
    expires_at = None if body.expires_at is None else micros_of(body.expires_at)
    meaning: Json = {
        "activation_id": body.activation_id,
        "body": body.body,
        "evidence": body.evidence,
        "expires_at": None if expires_at is None else to_rfc3339(expires_at),
        "match": body.match,
        "parameters_version": body.parameters_version,
        "signal": body.signal,
        "step_key": body.step_key,
    }
    return await send(
        call.server.database,
        call.server.weave,
        Send(
            signal_id=signal_id(instance_id, call.key or ""),
            namespace_id=call.namespace_id,
            instance_id=instance_id,
            signal=body.signal,
            match_key=matched,
            body=body.body,
            digest=digest(meaning),
            actor=call.principal.actor,
            seed=call.seed(),
            weave=call.server.weave,
            step_key=body.step_key,
            activation_id=body.activation_id,
            expires_at=expires_at,
            parameters_version=body.parameters_version,
            evidence=body.evidence,
        ),
    )


async def _check_right(call: Call, instance_id: str) -> None:
    """A workflow that this credential may not signal is out of its scope: as good as absent."""
    names = call.principal.signal_definitions
    if "*" in names.names:
        return
    row = await call.server.database.read(lambda conn: instances.head(conn, call.namespace_id, instance_id))
    if row is None or row.definition_id not in names:
        raise NotFound("no such workflow")


async def _list_signals(call: Call) -> Any:
    instance_id = call.path["workflow_id"]
    paging = call.paging("signals", (int, str), instance_id)
    after: Any = paging.after

    def read(conn: Connection) -> list[SignalRow] | None:
        if instances.head(conn, call.namespace_id, instance_id) is None:
            return None
        return queries.page(conn, instance_id, call.query.get("state"), after, paging.take)

    rows = await call.server.database.read(read)
    if rows is None:
        raise NotFound("no such workflow")
    return paging.page(rows, signal_view, lambda row: (row.accepted_at, row.id))


async def _get_signal(call: Call) -> Any:
    instance_id = call.path["workflow_id"]

    def read(conn: Connection) -> tuple[InstanceRow, SignalRow, SignalBodyRow] | None:
        head = instances.head(conn, call.namespace_id, instance_id)
        row = None if head is None else queries.get(conn, instance_id, call.path["signal_id"])
        sent = None if row is None else queries.body(conn, row.id)
        return None if head is None or row is None or sent is None else (head, row, sent)

    found = await call.server.database.read(read)
    if found is None:
        raise NotFound("no such signal")
    head, row, sent = found
    if call.principal.allows("payloads:read"):
        body = shown(sent.body)
    else:
        body = masks_of(await compiled_of(call, head)).signal(row.signal, sent.body)
    view = signal_view(row) | {
        "body": body,
        "actor": sent.actor,
        "parameters_version": sent.parameters_version,
    }
    return view | present(
        {
            "on_behalf_of": sent.on_behalf_of,
            "evidence": sent.evidence,
            "activation_id": row.activation_id,
            "consumed_step": row.consumed_step,
        }
    )


ROUTES = (
    Route(
        "POST",
        "/v1/workflows/{workflow_id}/signals",
        "workflows:signal",
        Signal,
        _send_signal,
        "Send a signal; the Idempotency-Key is its identity",
        body=SendSignal,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/signals",
        "workflows:read",
        Page[Signal],
        _list_signals,
        "List the signals of a workflow, newest first",
        query=(
            *PAGING,
            one_of("state", ("PENDING", "CONSUMED", "REJECTED", "EXPIRED"), "Only signals in this state."),
        ),
    ),
    Route(
        "GET",
        "/v1/workflows/{workflow_id}/signals/{signal_id}",
        "workflows:read",
        SignalDetail,
        _get_signal,
        "Read one signal with what was sent, by whom, and on what evidence",
    ),
)
