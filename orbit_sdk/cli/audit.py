"""`orbit audit`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment

__all__ = ["audit"]


@command("orbit audit key:A-17", "orbit audit key:A-17 --json")
def audit(
    workflow: WorkflowId,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, newest first.")
    ] = 50,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show what people did to a workflow, why and on what evidence. Needs workflows:audit:read."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(islice(client.workflows.operations(workflow_id(client, workflow)), limit))
    if json:
        out.data(items(found))
        return
    rows = [
        (moment(item.at), item.actor, item.action, item.step_key, item.reason, item.basis, item.evidence)
        for item in found
    ]
    columns = ("WHEN", "WHO", "DID", "STEP", "WHY", "BASIS", "EVIDENCE")
    out.table(columns, rows, "nobody did anything")
