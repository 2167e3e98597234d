"""`orbit pause`, `orbit resume` and `orbit cancel`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.forecasts import DryRun, say_forecast
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import state_of, wire

__all__ = ["Reason", "cancel", "pause", "resume"]

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
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start nothing new. Clocks run on; results and signals are kept."""
    _control("pause", workflow, reason, (expected, operation_id, dry_run), (url, token), Output(json=json))


@command('orbit resume key:A-17 --reason "the bank is back"')
def resume(
    workflow: WorkflowId,
    reason: Reason,
    expected: Expected = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Lift the pause, and nothing else."""
    _control("resume", workflow, reason, (expected, operation_id, dry_run), (url, token), Output(json=json))


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
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Stop what has not started, ask what runs, and wait for the truth. What was done stays done."""
    _control("cancel", workflow, reason, (expected, operation_id, dry_run), (url, token), Output(json=json))


def _control(
    action: Literal["pause", "resume", "cancel"],
    workflow: str,
    reason: str,
    identity: tuple[int | None, str | None, bool],
    where: tuple[str | None, str | None],
    out: Output,
) -> None:
    expected, operation_id, dry_run = identity
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
