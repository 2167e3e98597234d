"""Signals of a workflow: send, list, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.engine.matching import MAX_KEY_CHARS, match_key
from orbit_sdk.errors import InvalidArgument, NotFound
from orbit_sdk.protocol.common import Page, micros_of
from orbit_sdk.protocol.history import SignalDetail
from orbit_sdk.protocol.workflows import SendSignal, Signal, SignalByKey, SignalContent
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
from orbit_server.weave.signals.by_key import SHOWN, SignalOpen
from orbit_server.weave.signals.commands import SendSignal as Send
from orbit_server.weave.signals.views import signal_view
from orbit_server.weave.state.rows import InstanceRow
from orbit_server.weave.state.signals import SignalBodyRow, SignalRow, signal_id


async def _send_signal(call: Call) -> Any:
    body: SendSignal = call.body
    instance_id = call.path["workflow_id"]
    await _check_right(call, instance_id, body.signal)
    said = _Said.of(call, body, body.match)
    meaning: Json = {**said.meaning, "activation_id": body.activation_id, "match": body.match}
    command = said.to(call, instance_id, digest(meaning), body.activation_id)
    return await send(call.server.database, call.server.weave, command)


async def _send_by_key(call: Call) -> Any:
    """To the one open workflow; what is open is looked up first, and looked at again where it is decided."""
    body: SignalByKey = call.body
    definition_id = call.path["definition_id"]
    about = f"open workflow of {definition_id} with this business key"
    call.principal.require_signal(definition_id, body.signal, about)
    said = _Said.of(call, body, body.business_key if body.match is None else body.match)
    ids = await call.server.database.read(
        lambda conn: instances.open_by_key(
            conn, call.namespace_id, definition_id, body.business_key, SHOWN + 1
        )
    )
    meaning: Json = {
        **said.meaning,
        "business_key": body.business_key,
        "definition_id": definition_id,
        "match": body.match,
    }
    command = SignalOpen(
        key=call.command_key("workflow.signal", meaning),
        sends=tuple(said.to(call, found, digest(meaning)) for found in ids),
        about=about,
    )
    return await send(call.server.database, call.server.weave, command)


@dataclass(frozen=True, slots=True)
class _Said:
    """A signal that was checked, for whichever workflow it is."""

    body: SignalContent
    match_key: str
    expires_at: int | None
    on_behalf_of: str | None

    @classmethod
    def of(cls, call: Call, body: SignalContent, match: str | int) -> _Said:
        """Raises PermissionDenied, InvalidArgument or PayloadTooLarge."""
        matched = match_key(match)
        if len(matched) > MAX_KEY_CHARS:
            raise InvalidArgument.at("match", f"is longer than {MAX_KEY_CHARS} characters in canonical form")
        require_signal(call.server.settings.limits, body.body, body.evidence)
        expires_at = None if body.expires_at is None else micros_of(body.expires_at)
        return cls(body, matched, expires_at, call.on_behalf_of)

    @property
    def meaning(self) -> dict[str, Json]:
        """What makes two signals the same, but for where they go."""
        body = self.body
        return {
            "body": body.body,
            "evidence": body.evidence,
            "expires_at": None if self.expires_at is None else to_rfc3339(self.expires_at),
            "on_behalf_of": self.on_behalf_of,
            "parameters_version": body.parameters_version,
            "signal": body.signal,
            "step_key": body.step_key,
        }

    def to(self, call: Call, instance_id: str, meaning: str, activation_id: str | None = None) -> Send:
        """The command for this workflow; `meaning` is the digest of the request."""
        body = self.body
        return Send(
            signal_id=signal_id(instance_id, call.key or ""),
            namespace_id=call.namespace_id,
            instance_id=instance_id,
            signal=body.signal,
            match_key=self.match_key,
            body=body.body,
            digest=meaning,
            actor=call.principal.actor,
            seed=call.seed(),
            weave=call.server.weave,
            step_key=body.step_key,
            activation_id=activation_id,
            expires_at=self.expires_at,
            parameters_version=body.parameters_version,
            evidence=body.evidence,
            on_behalf_of=self.on_behalf_of,
        )


async def _check_right(call: Call, instance_id: str, signal: str) -> None:
    if call.principal.signals.everything:
        return
    row = await call.server.database.read(lambda conn: instances.head(conn, call.namespace_id, instance_id))
    if row is None:
        raise NotFound("no such workflow")
    call.principal.require_signal(row.definition_id, signal)


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
        "POST",
        "/v1/definitions/{definition_id}/signals",
        "workflows:signal",
        Signal,
        _send_by_key,
        "Send a signal to the one open workflow with a business key",
        body=SignalByKey,
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
