"""Published definitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call
from orbit_sdk.protocol.definitions import CheckResult, DefinitionDetail, DefinitionVersion
from orbit_sdk.protocol.versions import Draft, DraftDetail, PublishPlan, VersionsInUse


class AsyncDefinitions:
    """`client.definitions`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def publish(
        self, definition: dict[str, Any], *, side: dict[str, Any] | None = None, current: bool = False
    ) -> DefinitionVersion:
        """Publish one version. The same content again is answered as before; other content is a Conflict."""
        body: dict[str, Any] = {"definition": definition, "current": current}
        if side is not None:
            body["side"] = side
        return parse(
            DefinitionVersion, await self._transport.call(Call("POST", "/v1/definitions", body=body))
        )

    async def check(self, definition: dict[str, Any]) -> CheckResult:
        """Check a document with the server's rules and limits; nothing is stored."""
        call = Call("POST", "/v1/definitions/check", body={"definition": definition})
        return parse(CheckResult, await self._transport.call(call))

    async def plan(self, definition: dict[str, Any]) -> PublishPlan:
        """What publishing a document would mean, and what workers lack for it; nothing is stored."""
        call = Call("POST", "/v1/definitions/plan", body={"definition": definition})
        return parse(PublishPlan, await self._transport.call(call))

    async def in_use(self, definition_id: str | None = None) -> VersionsInUse:
        """Which versions still have unfinished workflows, and which handler versions are still needed."""
        params = {} if definition_id is None else {"definition_id": definition_id}
        return parse(VersionsInUse, await self._transport.call(Call("GET", "/v1/versions", params=params)))

    async def keep_draft(self, definition: dict[str, Any], *, side: dict[str, Any] | None = None) -> Draft:
        """Keep a document as a draft. FailedPrecondition outside a development namespace."""
        body: dict[str, Any] = {"definition": definition}
        if side is not None:
            body["side"] = side
        return parse(Draft, await self._transport.call(Call("POST", "/v1/drafts", body=body)))

    def drafts(self, definition_id: str | None = None) -> AsyncIterator[Draft]:
        """Every draft, by definition, newest first."""
        return each(self._transport, "/v1/drafts", Draft, {"definition_id": definition_id})

    async def draft(self, definition_id: str, digest: str) -> DraftDetail:
        """One draft with its document."""
        path = f"/v1/drafts/{definition_id}/{digest}"
        return parse(DraftDetail, await self._transport.call(Call("GET", path)))

    async def retire(self, definition_id: str, version: int, *, reason: str) -> DefinitionVersion:
        """Let a version take no new starts; running workflows go on. The current one is refused."""
        path = f"/v1/definitions/{definition_id}/versions/{version}/retire"
        call = Call("POST", path, body={"reason": reason})
        return parse(DefinitionVersion, await self._transport.call(call))

    async def get(self, definition_id: str, version: int) -> DefinitionDetail:
        """One version with its document."""
        path = f"/v1/definitions/{definition_id}/versions/{version}"
        return parse(DefinitionDetail, await self._transport.call(Call("GET", path)))

    def list(self, definition_id: str | None = None) -> AsyncIterator[DefinitionVersion]:
        """Every published version, by id, newest version first."""
        return each(self._transport, "/v1/definitions", DefinitionVersion, {"definition_id": definition_id})

    async def set_current(
        self, definition_id: str, version: int, *, reason: str | None = None
    ) -> DefinitionVersion:
        """Make this version the one that a start without a version takes."""
        body: dict[str, Any] = {"version": version}
        if reason is not None:
            body["reason"] = reason
        call = Call("POST", f"/v1/definitions/{definition_id}/current", body=body)
        return parse(DefinitionVersion, await self._transport.call(call))
