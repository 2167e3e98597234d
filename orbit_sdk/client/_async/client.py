"""The client: typed starts and submissions, and one attribute per resource."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

from orbit_sdk.client._async.bulk import AsyncBulk
from orbit_sdk.client._async.credentials import AsyncCredentials
from orbit_sdk.client._async.definitions import AsyncDefinitions
from orbit_sdk.client._async.handle import Handle
from orbit_sdk.client._async.queues import AsyncQueues
from orbit_sdk.client._async.reviews import AsyncReviews
from orbit_sdk.client._async.schedules import AsyncSchedules
from orbit_sdk.client._async.subscriptions import AsyncSubscriptions
from orbit_sdk.client._async.tasks import AsyncTasks
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client._async.waits import AsyncWaits
from orbit_sdk.client._async.workers import AsyncWorkers
from orbit_sdk.client._async.workflows import AsyncWorkflows
from orbit_sdk.client.settings import ClientSettings
from orbit_sdk.client.submission import Submission, submission_body
from orbit_sdk.client.typed import TypedWorkflow
from orbit_sdk.client.wire import Call, check_address
from orbit_sdk.errors import InvalidArgument, NotFound
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.protocol.tasks import Task
from orbit_sdk.protocol.workflows import EventDetail, EventPage
from orbit_sdk.values.ids import is_id

I = TypeVar("I")  # noqa: E741  # the input type
O = TypeVar("O")  # noqa: E741  # the output type


class OrbitClient:
    """The client of one server and one token.

    Args:
        url, token: default to the environment's ORBIT_URL and ORBIT_TOKEN.
        settings: time-outs and patience.
        verify: as the HTTP library takes it: True, or an ssl.SSLContext that trusts your own authority.

    Use it as a context manager, or call `close`. It may be shared by any number of callers.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        settings: ClientSettings | None = None,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        url = url or os.environ.get("ORBIT_URL")
        token = token or os.environ.get("ORBIT_TOKEN")
        if not url or not token:
            raise InvalidArgument(
                "the client needs an address and a token: give them, or set ORBIT_URL and ORBIT_TOKEN"
            )
        check_address(url, token)
        self.settings = settings or ClientSettings()
        self._transport = AsyncTransport(url, token, self.settings, verify)
        self.definitions = AsyncDefinitions(self._transport)
        self.workflows = AsyncWorkflows(self._transport)
        self.tasks = AsyncTasks(self._transport)
        self.reviews = AsyncReviews(self._transport)
        self.bulk = AsyncBulk(self._transport)
        self.waits = AsyncWaits(self._transport)
        self.schedules = AsyncSchedules(self._transport)
        self.subscriptions = AsyncSubscriptions(self._transport)
        self.credentials = AsyncCredentials(self._transport)
        self.queues = AsyncQueues(self._transport)
        self.workers = AsyncWorkers(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def healthy(self) -> bool:
        """Whether the server is there and ready for work."""
        await self._transport.call(Call("GET", "/readyz"))
        return True

    async def start(  # noqa: PLR0913  # one keyword per thing a start may say
        self,
        workflow: TypedWorkflow[I, O],
        input: I,  # noqa: A002  # the word of the interface
        *,
        idempotency_key: str | None = None,
        business_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        version: int | None = None,
        current: bool = False,
    ) -> Handle[O]:
        """Start an instance of a workflow written with the builder.

        Its own version is taken unless `version` names another or `current` asks for the published pointer.
        Give an `idempotency_key` of your own wherever your process may restart: the same key is the same
        instance.
        """
        chosen = None if current else (version or workflow.version)
        found = await self.workflows.start(
            workflow.id,
            workflow.dump_input(input),
            version=chosen,
            idempotency_key=idempotency_key,
            business_key=business_key,
            labels=labels,
        )
        return self._handle(workflow, found.id)

    async def attach(self, workflow: TypedWorkflow[I, O], id_or_business_key: str) -> Handle[O]:
        """A handle on an instance that exists: by its id, or by a business key of exactly one open one.

        Raises NotFound when the business key names none or several.
        """
        if is_id(id_or_business_key):
            found = await self.workflows.get(id_or_business_key)
            return self._handle(workflow, found.id)
        open_ones = [
            item.id
            async for item in self.workflows.list(definition_id=workflow.id, business_key=id_or_business_key)
            if item.ended_at is None
        ]
        if len(open_ones) != 1:
            raise NotFound(f"{len(open_ones)} open workflows have the business key {id_or_business_key!r}")
        return self._handle(workflow, open_ones[0])

    async def submit(
        self,
        handler: Handler[Any, Any],
        parameters: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        delay: timedelta | None = None,
        options: Submission | None = None,
    ) -> Task:
        """Submit one task for a handler; the parameters are checked against its types before they leave."""
        body = submission_body(handler, parameters or {}, delay, options or Submission())
        return await self.tasks.submit(body, idempotency_key=idempotency_key)

    async def list_workflow_events(
        self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> EventPage:
        """One page of a workflow's timeline, newest first."""
        return await self.workflows.list_workflow_events(workflow_id, limit=limit, cursor=cursor)

    async def get_workflow_event(self, workflow_id: str, event_id: str) -> EventDetail:
        """One event of a workflow with its payload."""
        return await self.workflows.get_workflow_event(workflow_id, event_id)

    def _handle(self, workflow: TypedWorkflow[I, O], workflow_id: str) -> Handle[O]:
        return Handle(workflow_id, self.workflows, self.settings, workflow.parse_output)
