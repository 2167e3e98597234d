"""`orbit review`: list, show, resolve, probe and grant."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.control import OnBehalfOf, Reason
from orbit_sdk.cli.forecasts import DryRun, say_forecast
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.probing import say_probe, settled
from orbit_sdk.cli.shapes import compact, items, moment, state_of, wire
from orbit_sdk.cli.trials import choices_of, error_of, last_error, verdict_words
from orbit_sdk.cli.values import duration_ms, json_value

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.reviews import ReviewDetail
    from orbit_sdk.protocol.workflows import ReviewItem

__all__ = ["Basis", "decision", "review"]


class Basis(StrEnum):
    """What a decision rests on."""

    PROVEN = "PROVEN"
    ACCEPTED_RISK = "ACCEPTED_RISK"


class StepVerdict(StrEnum):
    """What a person may decide about a step."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RERUN = "rerun"


BasisOption = Annotated[
    Basis,
    typer.Option(
        "--basis",
        help="PROVEN needs --evidence. ACCEPTED_RISK runs no step again that may have had an effect.",
        case_sensitive=False,
    ),
]
Evidence = Annotated[
    str | None, typer.Option("--evidence", "-e", help="What proves it: a receipt, a ticket, what you saw.")
]
Result = Annotated[
    str | None, typer.Option("--result", metavar="JSON", help="The result, for succeeded: JSON, @file or -.")
]
ErrorCode = Annotated[
    str | None, typer.Option("--code", metavar="CODE", help="The error code, for failed: NO_FUNDS.")
]
Adopt = Annotated[
    str | None,
    typer.Option(
        "--adopt",
        metavar="EVIDENCE",
        help="Stored evidence to take the result from, or (for failed and rerun) as the proof.",
    ),
]
Message = Annotated[str | None, typer.Option("--message", help="The error in a sentence, for failed.")]
Revision = Annotated[
    int | None, typer.Option("--revision", min=0, help="Refuse when it has moved on. Default: as it is now.")
]
OperationId = Annotated[
    str | None, typer.Option("--operation-id", help="The identity of this decision, for safe repeats.")
]


@command("orbit review list", "orbit review list --class UNKNOWN --json")
def review_list(
    kind: Annotated[str | None, typer.Option("--kind", help="STEP or TASK.")] = None,
    review_class: Annotated[
        str | None,
        typer.Option("--class", help="UNKNOWN, DEFINITE, EXPIRED, TIMEOUT, UNMAPPED or ENGINE_ERROR."),
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List what waits for a person: steps of workflows, and tasks of their own."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(
            client.reviews.list(
                kind=kind.upper() if kind else None,
                review_class=review_class.upper() if review_class else None,
            )
        )
    if json:
        out.data(items(found))
        return
    if not found:
        out.note("nothing waits for a person", "dim")
    for item in found:
        _say_item(item, out)


def _say_item(item: ReviewItem, out: Output) -> None:
    """Where it is; what went wrong; what the outside knows it by; what may be decided."""
    names = [item.workflow_id or item.task_id, item.step_key or "task", item.review_class]
    key = None if item.business_key is None else f"key {item.business_key}"
    out.line("  ".join(str(name) for name in [*names, key, f"since {moment(item.since)}"] if name), "bold")
    out.line(f"  {error_of(item.error) or item.reason or ''}".rstrip(), "red")
    if item.guide is not None:
        out.line(f"  guide       {item.guide}")
    if item.effect_key is not None:
        out.line(f"  effect key  {item.effect_key}")
    out.line(f"  may be      {choices_of(item)}")


@command(
    'orbit review resolve key:A-17 pay succeeded --result \'{"receipt": "R-1"}\' '
    '--reason "it is in the journal" --evidence "journal 4711"',
    'orbit review resolve key:A-17 pay failed --code NO_FUNDS --reason "no money" --evidence "letter 12"',
    'orbit review resolve key:A-17 pay rerun --reason "the bank never got it" '
    '--basis proven --evidence "mail of the bank, 3 May"',
)
def review_resolve(
    workflow: WorkflowId,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step in review.", show_default=False)],
    verdict: Annotated[StepVerdict, typer.Argument(help="What the truth is.", case_sensitive=False)],
    reason: Reason,
    basis: BasisOption = Basis.PROVEN,
    evidence: Evidence = None,
    result: Result = None,
    code: ErrorCode = None,
    message: Message = None,
    adopt: Adopt = None,
    revision: Revision = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Decide on a step in review: it succeeded, it failed, or it runs again.

    A task of its own is decided on with `orbit task resolve`.
    """
    out = Output(json=json)
    optional = {
        "evidence": evidence,
        "code": code,
        "message": message,
        "adopt": adopt,
        "on_behalf_of": behalf,
    }
    said = decision(verdict, reason, basis, optional, result)
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        if revision is None:
            revision = _revision(client, found, step)
        said["expected_revision"] = str(revision)
        if dry_run:
            said["dry_run"] = True
        answer = client.reviews.resolve_step(found, step, said, operation_id=operation_id)
    if json:
        out.data(wire(answer))
    elif answer.forecast is not None:
        say_forecast(answer.forecast, out)
    else:
        out.line(f"{answer.id}  {state_of(answer)}")


@command(
    'orbit review probe key:A-17 pay --reason "did the bank get it?"',
    'orbit review probe key:A-17 pay --handler bank.look_up@1 --input @order.json --reason "look it up"',
)
def review_probe(
    workflow: WorkflowId,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step in review.", show_default=False)],
    reason: Reason,
    handler: Annotated[
        str | None,
        typer.Option("--handler", metavar="NAME@VERSION", help="A READ_ONLY handler. Default: verify."),
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Default: that of the task.")] = None,
    given: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="Its parameters: JSON, @file or -.")
    ] = None,
    within: Annotated[
        str, typer.Option("--within", metavar="DURATION", help="How long to wait for a worker.")
    ] = "10m",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for what it finds.")] = True,
    operation_id: OperationId = None,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Ask what became of a step, once. The answer is evidence, and decides nothing."""
    out = Output(json=json)
    parameters = None if given is None else json_value(given, "--input")
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        answer = client.reviews.probe(
            found,
            step,
            reason=reason,
            handler=handler,
            queue=queue,
            parameters=parameters,
            start_within_ms=duration_ms(within, "--within"),
            operation_id=operation_id,
            on_behalf_of=behalf,
        )
        ended = settled(client, answer.id) if wait else None
    if json:
        out.data(wire(answer if ended is None else ended))
    elif ended is None:
        out.line(f"probe {answer.id}  {answer.state}")
    else:
        say_probe(ended, out)


@command(
    'orbit review grant key:A-17 pay --attempts 2 --reason "the bank is back"',
    'orbit review grant key:A-17 await_bank --rounds 10 --time 2h --reason "they need the weekend"',
)
def review_grant(
    workflow: WorkflowId,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step in review.", show_default=False)],
    reason: Reason,
    attempts: Annotated[int, typer.Option("--attempts", min=0, help="So many more (of this round).")] = 0,
    rounds: Annotated[int, typer.Option("--rounds", min=0, help="So many more rounds of a poll.")] = 0,
    time: Annotated[
        str | None, typer.Option("--time", metavar="DURATION", help="So much later a deadline: 30m, 2h, 1d.")
    ] = None,
    revision: Revision = None,
    operation_id: OperationId = None,
    dry_run: DryRun = False,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Add to the budgets of a step in review; then it may be run again. Needs workflows:grant."""
    out = Output(json=json)
    time_ms = 0 if time is None else duration_ms(time, "--time")
    if not (attempts or rounds or time_ms):
        raise typer.BadParameter("say what is granted: --attempts, --rounds or --time")
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        answer = client.reviews.grant(
            found,
            step,
            expected_revision=_revision(client, found, step) if revision is None else revision,
            reason=reason,
            attempts=attempts,
            rounds=rounds,
            time_ms=time_ms,
            operation_id=operation_id,
            dry_run=dry_run,
            on_behalf_of=behalf,
        )
    if json:
        out.data(wire(answer))
    elif answer.forecast is not None:
        say_forecast(answer.forecast, out)
    else:
        out.line(f"{answer.id}  {state_of(answer)}")


def _revision(client: Orbit, found: str, step: str) -> int:
    """The step's revision as it stands in the list of reviews: what the person was shown."""
    for item in client.reviews.list(kind="STEP"):
        if item.workflow_id == found and item.step_key == step:
            return item.revision
    return client.workflows.step(found, step).revision


def decision(
    verdict: StrEnum, reason: str, basis: Basis, optional: dict[str, str | None], result: str | None
) -> dict[str, Any]:
    """The body of a decision, without its expected revision."""
    name = verdict.value.upper()
    if result is not None and name != "SUCCEEDED":
        raise typer.BadParameter("only what succeeded has a result", param_hint="--result")
    if result is not None and optional.get("adopt") is not None:
        raise typer.BadParameter("and --result exclude each other", param_hint="--adopt")
    if basis is Basis.PROVEN and not optional.get("evidence") and not optional.get("adopt"):
        raise typer.BadParameter(
            "say what proves that no attempt had an effect (without, it is not run again)"
            if name == "RERUN"
            else "say what proves it; without proof, say --basis accepted_risk",
            param_hint="--evidence",
        )
    if optional.get("code") is not None and name != "FAILED":
        raise typer.BadParameter("only what failed has a code", param_hint="--code")
    said: dict[str, Any] = {"verdict": name, "reason": reason, "basis": basis.value}
    said.update({key: value for key, value in optional.items() if value is not None})
    if result is not None:
        said["result"] = json_value(result, "--result")
    return said


def _granted(found: ReviewDetail) -> str | None:
    if found.granted is None:
        return None
    given = found.granted
    return f"{given.attempts} attempts, {given.rounds} rounds, {given.time_ms} ms"


@command("orbit review show key:A-17 pay")
def review_show(
    workflow: WorkflowId,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step in review.", show_default=False)],
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show what was tried, what is known, what you may decide, and why not the rest."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.reviews.get(workflow_id(client, workflow), step)
    if json:
        out.data(wire(found))
        return
    out.fields(
        {
            "step": found.key,
            "class": found.review_class,
            "reason": found.reason,
            "effect": "may have happened" if found.effect_possible else None,
            "effect key": found.effect_key,
            "last error": last_error(found.attempts),
            "last value": None if found.result is None else compact(found.result),
            "failure": None if found.failure is None else compact(found.failure),
            "guide": found.guide,
            "attempts left": found.attempts_left,
            "rounds left": found.rounds_left,
            "deadline": moment(found.deadline_at),
            "granted": _granted(found),
        }
    )
    out.line()
    tried = [
        (
            item.attempt_no,
            item.kind,
            item.outcome or item.state,
            item.worker,
            moment(item.started_at),
            error_of(item.error),
        )
        for item in found.attempts
    ]
    out.table(("ATTEMPT", "KIND", "OUTCOME", "WORKER", "STARTED", "ERROR"), tried, "nothing was tried")
    for item in found.evidence:
        out.line(f"evidence {item.id} of {moment(item.at)}: {item.kind} {compact(item.body)}", "yellow")
    out.line()
    choices = [
        (
            verdict_words(item.verdict, needs_proof=item.allowed and item.needs_proof),
            "yes" if item.allowed else "no",
            item.reason,
        )
        for item in found.decisions
    ]
    out.table(("DECISION", "ALLOWED", "BECAUSE"), choices, "")


review = group(
    "What waits for a person.", review_list, review_show, review_resolve, review_probe, review_grant
)
