"""`orbit task submit/show/list/cancel/resolve`."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli import narrowing
from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected, task_id, workflow_id
from orbit_sdk.cli.control import OnBehalfOf, Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.reviews import (
    Adopt,
    Basis,
    BasisOption,
    ErrorCode,
    Evidence,
    Message,
    OperationId,
    Result,
    Revision,
    decision,
)
from orbit_sdk.cli.shapes import compact, items, moment, wire
from orbit_sdk.cli.trials import error_of, last_error
from orbit_sdk.cli.values import duration_ms, json_value, labels, versioned
from orbit_sdk.protocol.tasks import Attempt, Task, TaskDetail

if TYPE_CHECKING:
    from orbit_sdk.client.filters import TaskFilters

__all__ = ["task"]

TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="A task id, or key:<business key>.", show_default=False)
]


class TaskVerdict(StrEnum):
    """What a person may decide about a task of its own."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RETRY = "retry"


class Recovery(StrEnum):
    """What may be repeated."""

    READ_ONLY = "READ_ONLY"
    IDEMPOTENT = "IDEMPOTENT"
    VERIFIABLE = "VERIFIABLE"
    MARKED = "MARKED"
    CONSERVATIVE = "CONSERVATIVE"


Parameters = Annotated[
    str, typer.Option("--parameters", "-p", metavar="JSON", help="JSON, @file, or - for standard input.")
]
AttemptTimeout = Annotated[
    str | None, typer.Option("--attempt-timeout", metavar="60s", help="How long one attempt may take.")
]
Label = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="May be given several times.")
]
IdempotencyKey = Annotated[
    str | None, typer.Option("--idempotency-key", help="The same key is the same task.")
]


@command(
    """orbit task submit order.pay@1 --queue payments --parameters '{"number": "A-17", "amount": 5}'""",
    "orbit task submit report.count@1 --queue reports --delay 10m --recovery READ_ONLY --attempts 20",
)
def task_submit(
    handler: Annotated[
        str, typer.Argument(metavar="HANDLER@VERSION", help="order.pay@1", show_default=False)
    ],
    queue: Annotated[
        str, typer.Option("--queue", "-q", help="Where its workers listen.", show_default=False)
    ],
    parameters: Parameters = "{}",
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="10m", help="Not before this has passed.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Its business key.")] = None,
    recovery: Annotated[
        Recovery, typer.Option("--recovery", help="What may be repeated.", case_sensitive=False)
    ] = Recovery.CONSERVATIVE,
    priority: Annotated[
        int | None, typer.Option("--priority", min=0, max=9, help="Higher goes first.")
    ] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", min=1, max=20, help="At most so many.")
    ] = None,
    attempt_timeout: AttemptTimeout = None,
    label: Label = None,
    idempotency_key: IdempotencyKey = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Submit one task."""
    out = Output(json=json)
    name, version = versioned(handler, "handler")
    if version is None:
        raise typer.BadParameter(f"say the version of the handler: {name}@1", param_hint="HANDLER@VERSION")
    body = {
        "queue": queue,
        "handler": name,
        "handler_version": version,
        "parameters": json_value(parameters, "--parameters"),
        "recovery": recovery.value,
        "delay_ms": _milliseconds(delay, "--delay"),
        "attempt_timeout_ms": _milliseconds(attempt_timeout, "--attempt-timeout"),
        "business_key": key,
        "priority": priority,
        "retry": None if attempts is None else {"max_attempts": attempts},
        "labels": labels(label or [], "--label") or None,
    }
    body = {field: value for field, value in body.items() if value is not None or field == "parameters"}
    with connected(url, token) as client:
        found = client.tasks.submit(body, idempotency_key=idempotency_key)
    if json:
        out.data(wire(found))
        return
    out.line(f"submitted {found.id}  {found.state}", "green")
    out.note(f"next: orbit task show {found.id}", "dim")


def _milliseconds(text: str | None, option: str) -> int | None:
    return None if text is None else duration_ms(text, option)


@command("orbit task show key:A-17")
def task_show(identity: TaskId, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show a task with its attempts and evidence."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = task_id(client, identity)
        detail, attempts = client.tasks.get(found), list(client.tasks.attempts(found))
    if json:
        out.data({**wire(detail), "attempts": [wire(item) for item in attempts]})
    else:
        _say(detail, attempts, out)


def _say(detail: TaskDetail, attempts: list[Attempt], out: Output) -> None:
    error = None if detail.error is None else f"{detail.error.code}: {detail.error.message or ''}"
    step = None if detail.workflow_id is None else f"{detail.step_key} of {detail.workflow_id}"
    out.fields(
        {
            "task": detail.id,
            "handler": f"{detail.handler}@{detail.handler_version}",
            "queue": detail.queue,
            "state": detail.state,
            "review": detail.review_class,
            "key": detail.business_key,
            "step": step,
            "recovery": detail.recovery,
            "attempts": f"{detail.attempts_used} of {detail.attempts_max}",
            "created": moment(detail.created_at),
            "due": moment(detail.due_at) if detail.settled_at is None else None,
            "settled": moment(detail.settled_at),
            "parameters": compact(detail.parameters),
            "result": None if detail.result is None else compact(detail.result),
            "error": error,
            "last error": None if error is not None else last_error(attempts),
            "effect key": detail.effect_key,
            "may be": _decisions(detail),
        }
    )
    out.line()
    rows = [
        (
            item.attempt_no,
            item.kind,
            item.state,
            item.outcome,
            item.worker,
            moment(item.started_at or item.offered_at),
            error_of(item.error),
        )
        for item in attempts
    ]
    out.table(("ATTEMPT", "KIND", "STATE", "OUTCOME", "WORKER", "SINCE", "ERROR"), rows, "no attempt yet")
    for item in detail.evidence:
        contradiction = ", contradicts" if item.contradiction else ""
        out.line(f"evidence {item.kind}{contradiction}  {moment(item.at)}  {compact(item.body)}", "yellow")


def _decisions(detail: TaskDetail) -> str | None:
    """What a person may decide, and with which command."""
    if detail.state != "NEEDS_REVIEW":
        return None
    if detail.workflow_id is not None:
        return f"decided with its step: orbit review resolve {detail.workflow_id} {detail.step_key}"
    may = ", ".join(each.verdict.lower() for each in detail.decisions if each.allowed)
    return f"{may} (orbit task resolve {detail.id})"


@command(
    "orbit task list --queue payments --state RUNNING",
    "orbit task list --workflow key:A-17",
    "orbit task list --count --group-by queue --state READY",
)
def task_list(
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only in this state.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Only of this queue.")] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="Only for this handler.")] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Only with this business key.")] = None,
    workflow: Annotated[
        str | None, typer.Option("--workflow", "-w", help="Only of this workflow: an id or key:<key>.")
    ] = None,
    definition: Annotated[
        str | None, typer.Option("--definition", "-d", metavar="ID", help="Only of workflows of this one.")
    ] = None,
    step: Annotated[str | None, typer.Option("--step", metavar="KEY", help="Only of this step.")] = None,
    review: Annotated[
        str | None, typer.Option("--review", metavar="CLASS", help="Only in a review of this class.")
    ] = None,
    error: narrowing.ErrorCode = None,
    label: narrowing.Label = None,
    schedule: narrowing.Schedule = None,
    since: narrowing.Since = None,
    until: narrowing.Until = None,
    counting: narrowing.Counting = False,
    group_by: narrowing.GroupBy = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, newest first.")
    ] = 20,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List tasks, newest first, or count them."""
    out = Output(json=json)
    filters: TaskFilters = {
        "state": state.upper() if state else None,
        "queue": queue,
        "handler": handler,
        "business_key": key,
        "definition_id": definition,
        "step": step,
        "review_class": review.upper() if review else None,
        "error_code": error,
        "labels": labels(label or [], "--label"),
        "schedule_id": schedule,
        "created_from": narrowing.instant(since, "--since"),
        "created_to": narrowing.instant(until, "--until"),
    }
    with connected(url, token) as client:
        filters["workflow_id"] = None if workflow is None else workflow_id(client, workflow)
        if counting or group_by is not None:
            narrowing.say_count(client.tasks.count(group_by, **filters), group_by, out)
            return
        found = list(islice(client.tasks.list(**filters), limit))
    _say_list(found, out)


def _say_list(found: list[Task], out: Output) -> None:
    if out.json:
        out.data(items(found))
        return
    rows = [
        (
            item.id,
            f"{item.handler}@{item.handler_version}",
            item.queue,
            item.state,
            f"{item.attempts_used}/{item.attempts_max}",
            item.business_key or item.step_key,
            moment(item.created_at),
        )
        for item in found
    ]
    out.table(("TASK", "HANDLER", "QUEUE", "STATE", "TRIES", "KEY", "CREATED"), rows, "there are no tasks")


@command('orbit task cancel key:A-17 --reason "the customer withdrew"')
def task_cancel(
    identity: TaskId,
    reason: Reason,
    operation_id: OperationId = None,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Cancel a task: at once when it has not started, as a request when it runs."""
    out = Output(json=json)
    with connected(url, token) as client:
        answer = client.tasks.cancel(
            task_id(client, identity), reason=reason, operation_id=operation_id, on_behalf_of=behalf
        )
    if json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.id}  {answer.state}{' (cancel asked)' if answer.cancel_requested else ''}")


@command(
    'orbit task resolve key:A-17 failed --code NO_FUNDS --reason "the bank refused" --evidence "letter 12"',
    'orbit task resolve key:A-17 retry --reason "never sent" --evidence "call 12:30"',
)
def task_resolve(
    identity: TaskId,
    verdict: Annotated[TaskVerdict, typer.Argument(help="What the truth is.", case_sensitive=False)],
    reason: Reason,
    basis: BasisOption = Basis.PROVEN,
    evidence: Evidence = None,
    result: Result = None,
    code: ErrorCode = None,
    message: Message = None,
    adopt: Adopt = None,
    revision: Revision = None,
    operation_id: OperationId = None,
    behalf: OnBehalfOf = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Decide on a task in review: it succeeded, failed, was cancelled, or is retried as a new task."""
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
        found = task_id(client, identity)
        if revision is None:
            revision = client.tasks.get(found).revision
        said["expected_revision"] = str(revision)
        answer = client.tasks.resolve(found, said, operation_id=operation_id)
    if json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.id}  {answer.state}")


task = group("Single pieces of work.", task_submit, task_show, task_list, task_cancel, task_resolve)
