"""`orbit signal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import KEY, Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.control import OnBehalfOf
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.cli.values import json_value
from orbit_sdk.errors import FailedPrecondition, InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.workflows import Step, WorkflowDetail

__all__ = ["signal"]

_WHY: Final = {
    "PENDING": "it is kept until a wait of the same signal and match opens",
    "INSTANCE_FINISHED": "the workflow is finished: it takes no signals any more",
    "EXPIRED": "its time was over before it came",
    "WAIT_TIMED_OUT": "the wait that it was for is over",
}
"""By disposition, or by state where there is none."""


@command(
    """orbit signal key:A-17 order.approval '{"granted": true}'""",
    "orbit signal key:A-17 order.approval @approval.json --match A-17 --idempotency-key mail-4711",
    """orbit signal key:A-17 order.paid '{"amount": 12}' --definition order""",
)
def signal(
    workflow: WorkflowId,
    name: Annotated[str, typer.Argument(metavar="SIGNAL", help="Its name.", show_default=False)],
    body: Annotated[
        str, typer.Argument(metavar="BODY", help="JSON, @file, or - for standard input.", show_default=False)
    ],
    match: Annotated[
        str | None,
        typer.Option(
            "--match", "-m", help="The business key of the wait. Default: that of the only open wait."
        ),
    ] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="KEY", help="Serve only this step.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The signal's identity, for safe repeats.")
    ] = None,
    evidence: Annotated[str | None, typer.Option("--evidence", help="What this rests on.")] = None,
    definition: Annotated[
        str | None,
        typer.Option(
            "--definition",
            help="Of this definition: the server finds the one open workflow with key:<key>, and --match is "
            "the key unless you say otherwise.",
        ),
    ] = None,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Send a signal to a workflow. One that comes before its wait is kept for it."""
    out = Output(json=json)
    content = json_value(body, "BODY")
    with connected(url, token) as client:
        more = {
            "idempotency_key": idempotency_key,
            "step_key": step,
            "evidence": evidence,
            "on_behalf_of": behalf,
        }
        if definition is not None:
            key = _key(workflow)
            answer = client.workflows.signal_by_key(definition, key, name, content, match=match, **more)
        else:
            found = workflow_id(client, workflow)
            answer = client.workflows.signal(found, name, _match(client, found, name, match), content, **more)
    if json:
        out.data(wire(answer))
    else:
        where = f" by {answer.step_key}" if answer.step_key else ""
        out.line(f"signal {answer.id}  {answer.state}{where}")
        why = _WHY.get(answer.disposition or "") or _WHY.get(answer.state)
        if why is not None:
            out.note(why, "dim")
    if answer.state in ("REJECTED", "EXPIRED"):
        raise typer.Exit(ExitCode.REFUSED)


def _key(workflow: str) -> str:
    if not workflow.startswith(KEY):
        raise typer.BadParameter("is key:<business key> with --definition", param_hint="WORKFLOW")
    return workflow.removeprefix(KEY)


def _refuse_hopeless(workflow: WorkflowDetail, steps: list[Step], name: str) -> None:
    """Say what no match could change: there is no such signal, or nobody waits any more."""
    known = {step.signal for step in steps if step.signal is not None}
    if name not in known:
        from orbit_sdk.check.words import near

        names = ", ".join(sorted(known)) or "none"
        hint = near(name, known)
        raise InvalidArgument.at(
            "signal", f"{name} is not a signal of this workflow (it knows: {names}).{hint}"
        )
    if workflow.ended_at is not None:
        raise FailedPrecondition(f"the workflow is finished ({workflow.state}): it takes no signals any more")


def _match(client: Orbit, found: str, name: str, match: str | None) -> str | int:
    """The match as the wait writes it: a number and its text are two keys, and people type both alike."""
    steps = client.workflows.steps(found).items
    waits = [
        step.match
        for step in steps
        if step.signal == name and step.match is not None and step.state.startswith("WAITING")
    ]
    if match is not None:
        return next((wait for wait in waits if str(wait) == match), match)
    if len(set(waits)) == 1:
        return waits[0]
    if not waits:
        _refuse_hopeless(client.workflows.get(found), steps, name)
    known = ", ".join(sorted({str(wait) for wait in waits})) or "none is open yet"
    raise typer.BadParameter(
        f"say with --match which wait of {name} is meant ({known})", param_hint="--match"
    )
