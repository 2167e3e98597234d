"""Credentials of the caller's namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.wire import Call, new_key
from orbit_sdk.protocol.platform import CreatedCredential, Credential


class AsyncCredentials:
    """`client.credentials`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        name: str,
        permissions: Sequence[str],
        *,
        submit_queues: Sequence[str] = (),
        consume_queues: Sequence[str] = (),
        signal_definitions: Sequence[str] = (),
        priority_max: int | None = None,
    ) -> CreatedCredential:
        """The answer carries the token, which is never shown again.

        This call is never repeated by itself: a repeat could make a second token.
        """
        body: dict[str, Any] = {
            "name": name,
            "permissions": list(permissions),
            "submit_queues": list(submit_queues),
            "consume_queues": list(consume_queues),
            "signal_definitions": list(signal_definitions),
        }
        if priority_max is not None:
            body["priority_max"] = priority_max
        call = Call("POST", "/v1/credentials", body=body, key=new_key(), safe=False)
        return parse(CreatedCredential, await self._transport.call(call))

    def list(self) -> AsyncIterator[Credential]:
        """Credentials, newest first, without tokens."""
        return each(self._transport, "/v1/credentials", Credential, {})

    async def revoke(self, credential_id: str, *, reason: str) -> Credential:
        """Refuse the token from now on and end its live sessions."""
        path = f"/v1/credentials/{credential_id}/revoke"
        return parse(
            Credential, await self._transport.call(Call("POST", path, body={"reason": reason}, key=new_key()))
        )
