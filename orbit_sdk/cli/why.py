"""`orbit why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected, task_id, workflow_id
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import moment, wire
from orbit_sdk.errors import NotFound

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.explain import WorkflowWhy
    from orbit_sdk.protocol.why import Why

__all__ = ["why"]


@command("orbit why key:A-17", "orbit why 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --json")
def why(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW|TASK", help="Its id, or key:<business key> of an open one.", show_default=False
        ),
    ],
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Say what a workflow or a task waits for, what happens by itself, and what you can do."""
    out = Output(json=json)
    with connected(url, token) as client:
        workflow = _workflow(client, what)
        task = None if workflow is not None else client.tasks.why(task_id(client, what))
    found = workflow or task
    if json and found is not None:
        out.data(wire(found))
    elif workflow is not None:
        _say_workflow(workflow, out)
    elif task is not None:
        _say_task(task, out)


def _workflow(client: Orbit, what: str) -> WorkflowWhy | None:
    """A workflow goes before a task of the same business key; None when there is no such workflow."""
    try:
        return client.workflows.why(workflow_id(client, what))
    except NotFound:
        return None


def _say_workflow(found: WorkflowWhy, out: Output) -> None:
    out.line(f"{found.workflow_id}  {found.state}{_standing(found.moves)}")
    for reason in found.reasons:
        out.line(f"- {reason.message}")
        if reason.then is not None:
            out.line(f"    at {moment(reason.until)} {reason.then}", "dim")
        if reason.command is not None:
            out.line(f"    {reason.command}", "cyan")


def _say_task(found: Why, out: Output) -> None:
    out.line(f"{found.task_id}  {found.state}{_standing(found.moves)}")
    for condition in found.conditions:
        until = "" if condition.until is None else f" (until {moment(condition.until)})"
        out.line(f"- {condition.message}{until}")
    if found.next is not None:
        at = "" if found.next.at is None else f" at {moment(found.next.at)}"
        out.line(f"    {found.next.message}{at}", "dim")


def _standing(moves: bool) -> str:
    return "" if moves else "  (does not move by itself)"
