"""`orbit bulk review`, `orbit bulk control` and `orbit bulk apply`."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import Reason
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.reviews import (
    Basis,
    BasisOption,
    ErrorCode,
    Evidence,
    Message,
    Result,
    StepVerdict,
    decision,
)
from orbit_sdk.cli.shapes import items, wire

if TYPE_CHECKING:
    from orbit_sdk.protocol.bulk import BulkOutcome, BulkPlan

__all__ = ["bulk"]

PlanFile = Annotated[
    Path, typer.Option("--out", "-o", help="Where the plan is written.", dir_okay=False, show_default=False)
]
Definition = Annotated[str | None, typer.Option("--definition", help="Only of this definition.")]
Most = Annotated[int, typer.Option("--most", min=1, max=10_000, help="So many items at most.")]


class Control(StrEnum):
    """What a bulk control does."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


@command(
    'orbit bulk review rerun --class UNKNOWN --step pay --reason "outage of 3 May" '
    '--evidence "none is in the bank\'s journal" --out plan.json'
)
def bulk_review(
    verdict: Annotated[StepVerdict, typer.Argument(help="What the truth is.", case_sensitive=False)],
    reason: Reason,
    plan_file: PlanFile,
    basis: BasisOption = Basis.PROVEN,
    evidence: Evidence = None,
    result: Result = None,
    code: ErrorCode = None,
    message: Message = None,
    review_class: Annotated[str | None, typer.Option("--class", help="Only reviews of this class.")] = None,
    definition: Definition = None,
    step: Annotated[str | None, typer.Option("--step", help="Only this step.")] = None,
    most: Most = 1000,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Plan one decision for many steps in review. Nothing is done until the plan is applied."""
    said = decision(verdict, reason, basis, {"evidence": evidence, "code": code, "message": message}, result)
    with connected(url, token) as client:
        plan = client.bulk.plan_reviews(
            said,
            review_class=review_class.upper() if review_class else None,
            definition_id=definition,
            step_key=step,
            most=most,
        )
    _written(plan, plan_file, Output(json=json))


@command('orbit bulk control pause --definition order.payment --reason "the bank is down" --out plan.json')
def bulk_control(
    action: Annotated[Control, typer.Argument(help="pause, resume or cancel.", case_sensitive=False)],
    reason: Reason,
    plan_file: PlanFile,
    definition: Definition = None,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Only of this version.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only in this state.")] = None,
    most: Most = 1000,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Plan a pause, resume or cancel of many workflows. Nothing is done until the plan is applied."""
    with connected(url, token) as client:
        plan = client.bulk.plan_control(
            action.value,
            reason=reason,
            definition_id=definition,
            version=version,
            state=state.upper() if state else None,
            most=most,
        )
    _written(plan, plan_file, Output(json=json))


@command("orbit bulk apply plan.json", "orbit bulk apply plan.json --per-second 2 --stop-after 1")
def bulk_apply(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN", help="The plan's file.", exists=True, dir_okay=False)
    ],
    per_second: Annotated[float, typer.Option("--per-second", min=0.01, help="So many items a second.")] = 10,
    stop_after: Annotated[int, typer.Option("--stop-after", min=1, help="End after so many failures.")] = 3,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Do what was planned. Repeating it is safe: each item is done once, what moved on is skipped."""
    from orbit_sdk.protocol.bulk import BulkPlan

    out = Output(json=json)
    plan = BulkPlan.model_validate_json(plan_file.read_bytes())
    found: list[BulkOutcome] = []
    with connected(url, token) as client:
        for outcome in client.bulk.apply(plan, per_second=per_second, stop_after=stop_after):
            found.append(outcome)
            if not json:
                where = f"{outcome.workflow_id} {outcome.step_key or ''}".strip()
                out.line(f"{where}  {outcome.outcome}  {outcome.state or outcome.why or ''}")
    if json:
        out.data(items(found))
    counts = Counter(outcome.outcome for outcome in found)
    out.note(
        ", ".join(f"{count} {name.lower()}" for name, count in sorted(counts.items())) or "nothing to do"
    )
    if counts["FAILED"] or len(found) < len(plan.items):
        raise typer.Exit(ExitCode.REFUSED)


def _written(plan: BulkPlan, plan_file: Path, out: Output) -> None:
    plan_file.write_text(plan.model_dump_json(indent=2) + "\n", encoding="utf-8")
    if out.json:
        out.data(wire(plan))
        return
    rows = [
        (item.workflow_id, item.step_key, item.business_key, item.allowed, item.then or item.why)
        for item in plan.items
    ]
    out.table(("WORKFLOW", "STEP", "KEY", "ALLOWED", "THEN"), rows, "nothing fits")
    allowed = sum(item.allowed for item in plan.items)
    out.line(f"{allowed} of {len(plan.items)} may be done: orbit bulk apply {plan_file}")


bulk = group("Decide on many at once: plan, look, apply.", bulk_review, bulk_control, bulk_apply)
