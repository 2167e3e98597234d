"""`orbit why`."""

from __future__ import annotations

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import moment, wire

__all__ = ["why"]


@command("orbit why key:A-17", "orbit why key:A-17 --json")
def why(workflow: WorkflowId, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Say what a workflow waits for, what happens by itself, and what you can do."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.workflows.why(workflow_id(client, workflow))
    if json:
        out.data(wire(found))
        return
    out.line(f"{found.workflow_id}  {found.state}{'' if found.moves else '  (does not move by itself)'}")
    for reason in found.reasons:
        out.line(f"- {reason.message}")
        if reason.then is not None:
            out.line(f"    at {moment(reason.until)} {reason.then}", "dim")
        if reason.command is not None:
            out.line(f"    {reason.command}", "cyan")
