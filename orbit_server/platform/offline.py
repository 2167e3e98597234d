"""Credentials without a server: how the first one comes to be."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.ids import Id
from orbit_server.clock import Clock, new_seed
from orbit_server.platform.credentials import CreateCredential, Rights
from orbit_server.platform.namespaces import DEFAULT_NAMESPACE, PRODUCTION, EnsureNamespace, namespace_id
from orbit_server.platform.tokens import new_token, token_hash
from orbit_server.storage.database import Database


@dataclass(frozen=True, slots=True)
class NewToken:
    """A credential's id and its token, which is shown this once."""

    credential_id: Id
    token: str


async def create_credential(
    database: Database,
    clock: Clock,
    rights: Rights,
    *,
    name: str,
    namespace: str = DEFAULT_NAMESPACE,
    expires_at: int | None = None,
) -> NewToken:
    """Create a credential in an open database. Raises InvalidArgument for rights that do not exist."""
    rights.check()
    if not name:
        raise InvalidArgument.at("name", "is empty")
    await database.committer.submit(EnsureNamespace(namespace, PRODUCTION))
    token, seed = new_token(), new_seed(clock)
    answer = await database.committer.submit(
        CreateCredential(
            id=seed.nth(0),
            namespace_id=namespace_id(namespace),
            name=name,
            token_hash=token_hash(token),
            rights=rights,
            expires_at=expires_at,
            actor="offline",
            created_by=None,
            seed=new_seed(clock),
            key=None,
        )
    )
    return NewToken(answer["id"], token)
