"""`orbit events`: the audit timeline of a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.errors import PermissionDenied
from orbit_sdk.protocol.workflows import EventDetail, EventSummary

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit

__all__ = ["events"]

_PAGE = 100
_HINT = (
    " (a development server gives it with `orbit dev --workflow-audit-access`; another one with a credential "
    "that has it)"
)


@command(
    "orbit events key:A-17", "orbit events key:A-17 0198a6f2c1f07d0c8a4e5b6c7d8e9f00    # with its payload"
)
def events(
    workflow: WorkflowId,
    event: Annotated[
        str | None, typer.Argument(metavar="[EVENT]", help="One event, with its payload.", show_default=False)
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, newest first.")
    ] = 50,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show what happened to a workflow, newest first. Needs the permission workflows:audit:read."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        try:
            if event is not None:
                _say_event(client.get_workflow_event(found, event), out)
                return
            shown = _newest(client, found, limit)
        except PermissionDenied as error:
            raise PermissionDenied(f"{error.message}{_HINT}", error.details) from None
    if json:
        out.data(items(shown))
        return
    rows = [(moment(item.occurred_at), item.type, item.state, item.step_key, item.id) for item in shown]
    out.table(("WHEN", "TYPE", "STATE", "STEP", "EVENT"), rows, "there are no events")


def _newest(client: Orbit, found: str, limit: int) -> list[EventSummary]:
    shown: list[EventSummary] = []
    cursor: str | None = None
    while len(shown) < limit:
        page = client.list_workflow_events(found, limit=min(_PAGE, limit - len(shown)), cursor=cursor)
        shown += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return shown


def _say_event(event: EventDetail, out: Output) -> None:
    out.data(wire(event))
