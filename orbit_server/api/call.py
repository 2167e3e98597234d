"""One request as a handler sees it: who asks, for what, all of it checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orbit_sdk.values.canonical import digest
from orbit_sdk.values.ids import IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_server.api.paging import Paging, paging
from orbit_server.api.server import Server
from orbit_server.clock import new_seed
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.tasks.commands import By
from orbit_server.storage.commands import CommandKey


@dataclass(frozen=True, slots=True)
class Call:
    """`path`, `query` and `body` are parsed values; `key` is the Idempotency-Key where one is taken."""

    server: Server
    principal: Principal
    path: Mapping[str, Any]
    query: Mapping[str, Any]
    body: Any
    key: str | None
    gone: Callable[[], Awaitable[None]]
    """Waits until the caller has hung up."""

    @property
    def namespace_id(self) -> str:
        return self.principal.namespace_id

    @property
    def on_behalf_of(self) -> str | None:
        """Whom the caller says to act for. Raises PermissionDenied without the right to act for others."""
        named: str | None = self.body.on_behalf_of
        if named is not None:
            self.principal.require("act:on-behalf")
        return named

    def seed(self) -> IdSeed:
        """Fresh chance for one command."""
        return new_seed(self.server.clock)

    def by(self) -> By:
        """Who gives the order in the body, why, and for whom."""
        return By(self.principal.actor, self.body.reason, self.seed(), self.on_behalf_of)

    def command_key(self, operation: str, meaning: Json, key: str | None = None) -> CommandKey:
        """The identity of a creating request: its key, and the digest of what it means."""
        return CommandKey(self.namespace_id, operation, key or self.key or "", digest(meaning))

    def paging(self, kind: str, shape: tuple[type, ...], parent: str = "") -> Paging:
        """The page that the query asks for."""
        return paging(
            self.server.cursor_key(self.namespace_id), self.query, kind=kind, shape=shape, parent=parent
        )
