"""The route table: every route of the HTTP interface, once."""

from __future__ import annotations

from typing import Final

from orbit_server.api import (
    control,
    credentials,
    definitions,
    events,
    operations,
    reviews,
    signals,
    task_routes,
    workers,
    workflows,
)
from orbit_server.api.routes import Route

ROUTES: Final[tuple[Route, ...]] = (
    *definitions.ROUTES,
    *workflows.ROUTES,
    *signals.ROUTES,
    *control.ROUTES,
    *events.ROUTES,
    *reviews.ROUTES,
    *task_routes.ROUTES,
    *credentials.ROUTES,
    *workers.ROUTES,
    *operations.ROUTES,
)
