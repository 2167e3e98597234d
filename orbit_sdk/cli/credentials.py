"""`orbit credential list` and `revoke`: over the server, where the sessions of a revoked one end at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.values.ids import is_id

if TYPE_CHECKING:
    from orbit_sdk.protocol.platform import Credential

__all__ = ["credential_list", "credential_revoke"]


@command("orbit credential list", "orbit credential list --json")
def credential_list(url: Url = None, token: Token = None, json: Json = False) -> None:
    """List the credentials of this namespace, newest first, without tokens. Needs credentials:manage."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.credentials.list())
    if json:
        out.data(items(found))
        return
    now = datetime.now(UTC)
    rows = [
        (item.id, item.name, _state(item, now), ", ".join(item.permissions), moment(item.created_at))
        for item in found
    ]
    out.table(("CREDENTIAL", "NAME", "STATE", "MAY", "CREATED"), rows, "there are no credentials")


def _state(item: Credential, now: datetime) -> str:
    if item.revoked_at is not None:
        return f"revoked {moment(item.revoked_at)}"
    if item.expires_at is None:
        return "valid"
    return f"{'expired' if item.expires_at <= now else 'valid until'} {moment(item.expires_at)}"


@command('orbit credential revoke 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --reason "the laptop was lost"')
def credential_revoke(
    identity: Annotated[
        str, typer.Argument(metavar="CREDENTIAL", help="Its id, as the list shows it.", show_default=False)
    ],
    reason: Reason,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Refuse a token from now on, and end its live sessions. Needs credentials:manage."""
    out = Output(json=json)
    if not is_id(identity):
        raise typer.BadParameter(
            f"{identity!r} is not a credential id; `orbit credential list` shows them",
            param_hint="CREDENTIAL",
        )
    with connected(url, token) as client:
        found = client.credentials.revoke(identity, reason=reason)
    if json:
        out.data(wire(found))
    else:
        out.line(f"revoked {found.id} ({found.name})", "yellow")
