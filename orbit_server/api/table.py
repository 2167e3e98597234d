"""The route table: every route of the HTTP interface, once."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import orjson

from orbit_server.api import (
    bulk,
    control,
    credentials,
    definitions,
    events,
    explain,
    history,
    operations,
    probes,
    queues,
    reviews,
    schedule_views,
    signals,
    subscriptions,
    task_routes,
    versions,
    waits,
    workers,
    workflow_lists,
    workflows,
)
from orbit_server.api.call import Call
from orbit_server.api.openapi import openapi_document
from orbit_server.api.operations import Raw
from orbit_server.api.routes import Route


async def _openapi(_call: Call) -> Any:
    return Raw(_openapi_bytes(), "application/json")


@cache
def _openapi_bytes() -> bytes:
    return orjson.dumps(openapi_document(ROUTES))


ROUTES: Final[tuple[Route, ...]] = (
    *definitions.ROUTES,
    *versions.ROUTES,
    *workflows.ROUTES,
    *workflow_lists.ROUTES,
    *signals.ROUTES,
    *waits.ROUTES,
    *control.ROUTES,
    *events.ROUTES,
    *explain.ROUTES,
    *history.ROUTES,
    *reviews.ROUTES,
    *probes.ROUTES,
    *bulk.ROUTES,
    *task_routes.ROUTES,
    *queues.ROUTES,
    *credentials.ROUTES,
    *workers.ROUTES,
    *schedule_views.ROUTES,
    *subscriptions.ROUTES,
    *operations.ROUTES,
    Route("GET", "/openapi.json", None, None, _openapi, "This interface as OpenAPI"),
)
