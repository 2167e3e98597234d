"""Credentials: create (the token is shown once), list, revoke."""

from __future__ import annotations

from typing import Any

import orjson

from orbit_sdk.errors import Detail, FailedPrecondition
from orbit_sdk.protocol.common import Page, micros_of
from orbit_sdk.protocol.platform import CreateCredential, CreatedCredential, Credential, Revoke
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING
from orbit_server.api.routes import Route
from orbit_server.platform.credentials import CreateCredential as Create
from orbit_server.platform.credentials import CredentialRow, RevokeCredential, Rights, list_credentials
from orbit_server.platform.tokens import new_token, token_hash


async def _create(call: Call) -> Any:
    body: CreateCredential = call.body
    rights = Rights(
        tuple(body.permissions),
        tuple(body.submit_queues),
        tuple(body.consume_queues),
        tuple(body.signal_definitions),
        body.priority_max,
    )
    rights.check()
    rights.check_within(call.principal)
    expires_at = None if body.expires_at is None else micros_of(body.expires_at)
    token = new_token()
    command = Create(
        id=call.seed().nth(0),
        namespace_id=call.namespace_id,
        name=body.name,
        token_hash=token_hash(token),
        rights=rights,
        expires_at=expires_at,
        actor=call.principal.actor,
        created_by=call.principal.credential_id,
        seed=call.seed(),
        key=call.command_key(
            "credential.create",
            {
                "expires_at": None if expires_at is None else to_rfc3339(expires_at),
                "name": body.name,
                "rights": rights.to_json(),
            },
        ),
    )
    answered = await call.server.database.committer.post(command)
    if answered.answer["id"] != command.id:
        raise FailedPrecondition(
            "this request was answered before, and a token is shown once; "
            "revoke that credential and create another",
            [Detail("Idempotency-Key", f"made the credential {answered.answer['id']}")],
        )
    view = {
        "id": command.id,
        "name": body.name,
        **rights.to_json(),
        "created_at": to_rfc3339(answered.at),
        "token": token,
    }
    return view if expires_at is None else {**view, "expires_at": to_rfc3339(expires_at)}


async def _list_page(call: Call) -> Any:
    paging = call.paging("credentials", (str,))
    before: Any = paging.after[0] if paging.after else None
    rows = await call.server.database.read(
        lambda conn: list_credentials(conn, call.namespace_id, before, paging.take)
    )
    return paging.page(rows, _view, lambda row: (row.id,))


async def _revoke(call: Call) -> Any:
    body: Revoke = call.body
    row = await call.server.database.committer.submit(
        RevokeCredential(
            id=call.path["credential_id"],
            namespace_id=call.namespace_id,
            actor=call.principal.actor,
            reason=body.reason,
            seed=call.seed(),
            on_behalf_of=call.on_behalf_of,
        )
    )
    return _view(row)


def _view(row: CredentialRow) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": row.id,
        "name": row.name,
        "permissions": orjson.Fragment(row.permissions),
        "submit_queues": orjson.Fragment(row.queues_submit),
        "consume_queues": orjson.Fragment(row.queues_consume),
        "signal_definitions": orjson.Fragment(row.definitions_signal),
        "created_at": to_rfc3339(row.created_at),
    }
    if row.priority_max is not None:
        view["priority_max"] = row.priority_max
    for name in ("expires_at", "revoked_at"):
        at = getattr(row, name)
        if at is not None:
            view[name] = to_rfc3339(at)
    return view


ROUTES = (
    Route(
        "POST",
        "/v1/credentials",
        "credentials:manage",
        CreatedCredential,
        _create,
        "Create a credential; its token is shown this once",
        body=CreateCredential,
        idempotency="required",
    ),
    Route(
        "GET",
        "/v1/credentials",
        "credentials:manage",
        Page[Credential],
        _list_page,
        "List credentials, newest first, without tokens",
        query=PAGING,
    ),
    Route(
        "POST",
        "/v1/credentials/{credential_id}/revoke",
        "credentials:manage",
        Credential,
        _revoke,
        "Revoke a credential and end its live sessions",
        body=Revoke,
        idempotency="natural",
    ),
)
