"""`orbit list` and `orbit show`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.narrowing import (
    Counting,
    ErrorCode,
    GroupBy,
    Label,
    Schedule,
    Since,
    Until,
    instant,
    say_count,
)
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import compact, items, moment, opened, state_of, step_about, took, wire
from orbit_sdk.cli.trials import choices_among, last_error
from orbit_sdk.cli.values import labels

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.client.filters import WorkflowFilters
    from orbit_sdk.protocol.reviews import ReviewDetail
    from orbit_sdk.protocol.workflows import Steps, Workflow, WorkflowDetail

__all__ = ["list_", "say_workflow", "show"]

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, newest first.")]


@command(
    "orbit list --state NEEDS_REVIEW --definition orders.payment",
    "orbit list --key A-17",
    "orbit list --count --group-by state --since 24h",
)
def list_(
    definition: Annotated[
        str | None, typer.Option("--definition", "-d", metavar="ID", help="Only of this definition.")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", min=1, help="Only of this version.")] = None,
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only in this state.")] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Only with this business key.")] = None,
    paused: Annotated[
        bool | None, typer.Option("--paused/--not-paused", help="Only paused ones, or only others.")
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", metavar="KEY", help="Only those at this step now.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only those at a step for this reason.")
    ] = None,
    error: ErrorCode = None,
    label: Label = None,
    schedule: Schedule = None,
    since: Since = None,
    until: Until = None,
    counting: Counting = False,
    group_by: GroupBy = None,
    limit: Limit = 20,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List workflows, newest first, or count them."""
    out = Output(json=json)
    filters: WorkflowFilters = {
        "definition_id": definition,
        "version": version,
        "state": state.upper() if state else None,
        "business_key": key,
        "paused": paused,
        "step": step,
        "reason": reason,
        "error_code": error,
        "labels": labels(label or [], "--label"),
        "schedule_id": schedule,
        "started_from": instant(since, "--since"),
        "started_to": instant(until, "--until"),
    }
    with connected(url, token) as client:
        if counting or group_by is not None:
            say_count(client.workflows.count(group_by, **filters), group_by, out)
            return
        found = list(islice(client.workflows.list(**filters), limit))
    _say_list(found, out)


def _say_list(found: list[Workflow], out: Output) -> None:
    if out.json:
        out.data(items(found))
        return
    rows = [
        (
            item.id,
            f"{item.definition_id}@{item.definition_version}",
            state_of(item),
            item.business_key,
            moment(item.started_at),
            took(item.started_at, item.ended_at),
        )
        for item in found
    ]
    out.table(("WORKFLOW", "DEFINITION", "STATE", "KEY", "STARTED", "TOOK"), rows, "there are no workflows")


@command("orbit show key:A-17", "orbit show 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --step pay")
def show(
    workflow: WorkflowId,
    step: Annotated[
        str | None, typer.Option("--step", metavar="KEY", help="One step with its result or failure.")
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show a workflow with its steps: what is done, and what it waits for."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = workflow_id(client, workflow)
        if step is None:
            _show_workflow(client, found, out)
        else:
            _show_step(client, found, step, out)


def _show_workflow(client: Orbit, found: str, out: Output) -> None:
    detail, steps = client.workflows.get(found), client.workflows.steps(found)
    if out.json:
        out.data({**wire(detail), "steps": [wire(step) for step in steps.items]})
        return
    say_workflow(detail, out)
    out.line()
    say_steps(steps, out)


def say_workflow(detail: WorkflowDetail, out: Output) -> None:
    """The workflow itself, as names and values."""
    error = None if detail.error is None else f"{detail.error.code}: {detail.error.message}"
    out.fields(
        {
            "workflow": detail.id,
            "definition": f"{detail.definition_id}@{detail.definition_version}",
            "state": state_of(detail),
            "key": detail.business_key,
            "labels": " ".join(f"{name}={value}" for name, value in detail.labels.items()),
            "started": f"{moment(detail.started_at)} by {detail.started_by}",
            "ended": moment(detail.ended_at),
            "input": compact(detail.input),
            "output": None if detail.state != "SUCCEEDED" else compact(detail.output),
            "error": error,
        }
    )


def say_steps(steps: Steps, out: Output) -> None:
    """The steps in the order they were opened; those not reached come last."""
    rows = [
        (step.key, step.kind, step.state, step_about(step), took(step.opened_at, step.closed_at))
        for step in sorted(steps.items, key=opened)
    ]
    out.table(("STEP", "KIND", "STATE", "ABOUT", "TOOK"), rows, "no step yet")


def _waits_for_a_person(review: ReviewDetail) -> dict[str, str | None]:
    return {
        "last error": last_error(review.attempts),
        "effect": "may have happened" if review.effect_possible else None,
        "effect key": review.effect_key,
        "may be": choices_among(review.decisions),
        "more": f"orbit review show {review.workflow_id} {review.key}",
    }


def _show_step(client: Orbit, found: str, key: str, out: Output) -> None:
    step = client.workflows.step(found, key)
    review = client.reviews.get(found, key) if step.state == "NEEDS_REVIEW" else None
    activations = list(client.workflows.activations(found, key))
    rounds = list(client.workflows.rounds(found, key)) if step.round else []
    if out.json:
        history = {"activations": items(activations)["items"], "rounds": items(rounds)["items"]}
        out.data({**wire(step if review is None else review), **history})
        return
    out.fields(
        {
            "step": step.key,
            "kind": step.kind,
            "title": step.title,
            "state": step.state,
            "about": step_about(step),
            "task": step.task_id,
            "opened": moment(step.opened_at),
            "closed": moment(step.closed_at),
            "given": None if not activations else compact(activations[0].parameters),
            "result": None if step.result is None else compact(step.result),
            "failure": None if step.failure is None else compact(step.failure),
            **({} if review is None else _waits_for_a_person(review)),
        }
    )
    if len(activations) > 1:
        out.line()
        rows = [
            (item.activation_no, item.state, step_about(item), moment(item.opened_at)) for item in activations
        ]
        out.table(("ACTIVATION", "STATE", "ABOUT", "OPENED"), rows, "")
    if rounds:
        out.line()
        told = [
            (item.round, item.task_state, item.attempts_used, moment(item.settled_at), compact(item.result))
            for item in rounds
        ]
        out.table(("ROUND", "TASK", "ATTEMPTS", "SETTLED", "ANSWER"), told, "")
