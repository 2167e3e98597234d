"""`orbit pause`, `orbit resume`, `orbit cancel` and `orbit restart`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.forecasts import DryRun, say_forecast
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import state_of, wire
from orbit_sdk.cli.values import json_value

__all__ = ["OnBehalfOf", "Reason", "cancel", "pause", "restart", "resume"]

Reason = Annotated[
    str,
    typer.Option(
        "--reason", "-r", metavar="TEXT", help="Why; it is kept with your name.", show_default=False
    ),
]
Expected = Annotated[
    int | None,
    typer.Option(
        "--expected-version",
        min=0,
        help="Refuse when the control version has moved on. Default: what it is now.",
    ),
]
OnBehalfOf = Annotated[
    str | None,
    typer.Option("--on-behalf-of", metavar="NAME", help="For whom you act. Needs act:on-behalf."),
]
OperationId = Annotated[
    str | None, typer.Option("--operation-id", help="The identity of this request, for safe repeats.")
]


@command('orbit pause key:A-17 --reason "the bank is down"')
def pause(
    workflow: WorkflowId,
    reason: Reason,
    expected: Expected = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start nothing new. Clocks run on; results and signals are kept."""
    _control(
        "pause", workflow, reason, (expected, operation_id, dry_run, behalf), (url, token), Output(json=json)
    )


@command('orbit resume key:A-17 --reason "the bank is back"')
def resume(
    workflow: WorkflowId,
    reason: Reason,
    expected: Expected = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Lift the pause, and nothing else."""
    _control(
        "resume", workflow, reason, (expected, operation_id, dry_run, behalf), (url, token), Output(json=json)
    )


@command(
    'orbit cancel key:A-17 --reason "the customer withdrew"',
    'orbit cancel key:A-17 --reason "the customer withdrew" --dry-run',
)
def cancel(
    workflow: WorkflowId,
    reason: Reason,
    expected: Expected = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Stop what has not started, ask what runs, and wait for the truth. What was done stays done."""
    _control(
        "cancel", workflow, reason, (expected, operation_id, dry_run, behalf), (url, token), Output(json=json)
    )


class Effects(StrEnum):
    """Whose effects a restart means."""

    SAME = "same"
    NEW = "new"


@command(
    'orbit restart key:A-17 --effects same --reason "the bank has cleared the account"',
    "orbit restart key:A-17 --effects new --input @corrected.json --reason 'wrong amount'",
)
def restart(
    workflow: WorkflowId,
    reason: Reason,
    effects: Annotated[
        Effects, typer.Option("--effects", help="same: the very effects of the origin. new: other ones.")
    ],
    given: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Another input: JSON, @file or -.")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Another version.")] = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start a new workflow from an earlier one. `same` is refused while its effects may still happen."""
    out = Output(json=json)
    more = {} if given is None else {"input": json_value(given, "--input")}
    with connected(url, token) as client:
        answer = client.workflows.restart(
            workflow_id(client, workflow),
            effects="SAME" if effects is Effects.SAME else "NEW",
            reason=reason,
            version=version,
            operation_id=operation_id,
            dry_run=dry_run,
            on_behalf_of=behalf,
            **more,
        )
    if json:
        out.data(wire(answer))
    elif answer.forecast is not None:
        say_forecast(answer.forecast, out)
    else:
        out.line(f"{answer.id}  {state_of(answer)}")


def _control(
    action: Literal["pause", "resume", "cancel"],
    workflow: str,
    reason: str,
    identity: tuple[int | None, str | None, bool, str | None],
    where: tuple[str | None, str | None],
    out: Output,
) -> None:
    expected, operation_id, dry_run, behalf = identity
    with connected(*where) as client:
        found = workflow_id(client, workflow)
        if expected is None and action != "cancel":
            expected = client.workflows.get(found).control_version
        order = getattr(client.workflows, action)
        answer = order(
            found,
            reason=reason,
            expected_control_version=expected,
            operation_id=operation_id,
            dry_run=dry_run,
            on_behalf_of=behalf,
        )
    if out.json:
        out.data(wire(answer))
        return
    if answer.forecast is not None:
        say_forecast(answer.forecast, out)
        return
    out.line(f"{answer.workflow.id}  {state_of(answer.workflow)}")
    if answer.effects_kept:
        out.line(f"done and kept: {', '.join(answer.effects_kept)}", "yellow")
