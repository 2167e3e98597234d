"""`orbit wait list` and `orbit wait answer`."""

from __future__ import annotations

import json as json_text
from typing import Annotated

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.control import OnBehalfOf
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.cli.values import json_value

__all__ = ["wait"]


@command("orbit wait list", "orbit wait list --signal order.approval --json")
def wait_list(
    workflow: Annotated[
        str | None, typer.Option("--workflow", "-w", help="Only of this workflow: an id or key:<key>.")
    ] = None,
    definition: Annotated[str | None, typer.Option("--definition", help="Only of this definition.")] = None,
    signal: Annotated[str | None, typer.Option("--signal", help="Only waits for this signal.")] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List what waits for a person or another system, and what happens if nobody answers."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(
            client.waits.list(
                workflow_id=None if workflow is None else workflow_id(client, workflow),
                definition_id=definition,
                signal=signal,
            )
        )
    if json:
        out.data(items(found))
        return
    rows = [
        (
            item.workflow_id,
            item.step_key,
            item.signal,
            json_text.dumps(item.match, ensure_ascii=False),
            item.business_key,
            moment(item.deadline_at),
            item.on_timeout.lower(),
        )
        for item in found
    ]
    columns = ("WORKFLOW", "STEP", "SIGNAL", "MATCH", "KEY", "UNTIL", "THEN")
    out.table(columns, rows, "nothing waits for a signal")


@command(
    """orbit wait answer key:A-17 approve '{"granted": true}'""",
    "orbit wait answer key:A-17 approve @answer.json --evidence 'mail of 3 May'",
)
def wait_answer(
    workflow: WorkflowId,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step that waits.", show_default=False)],
    body: Annotated[
        str, typer.Argument(metavar="BODY", help="JSON, @file, or - for standard input.", show_default=False)
    ],
    evidence: Annotated[str | None, typer.Option("--evidence", help="What this rests on.")] = None,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Answer a wait. Sending the same answer twice is one signal; another answer is refused."""
    out = Output(json=json)
    content = json_value(body, "BODY")
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        activation = client.workflows.step(found, step).activation_id
        if activation is None:
            raise typer.BadParameter(f"the step {step} has not been reached", param_hint="STEP")
        answer = client.waits.answer(activation, content, evidence=evidence, on_behalf_of=behalf)
    if json:
        out.data(wire(answer))
    else:
        out.line(f"signal {answer.id}  {answer.state}")


wait = group("What waits for a signal.", wait_list, wait_answer)
