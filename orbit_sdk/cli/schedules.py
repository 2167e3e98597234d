"""`orbit schedule …`: plans and what came of them."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import OperationId, Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.schedule_preview import schedule_preview
from orbit_sdk.cli.shapes import compact, items, moment, wire
from orbit_sdk.cli.values import json_value
from orbit_sdk.values.instants import from_rfc3339, is_rfc3339

__all__ = ["schedule"]

ScheduleId = Annotated[
    str, typer.Argument(metavar="SCHEDULE", help="The id of a schedule.", show_default=False)
]
Spec = Annotated[
    str,
    typer.Option(
        "--spec",
        metavar="JSON",
        help="Timing, rules and target: JSON, @file, or - for standard input.",
        show_default=False,
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many, newest first.")]


@command("orbit schedule create nightly --spec @nightly.json")
def schedule_create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="For people.", show_default=False)],
    spec: Spec,
    paused: Annotated[bool, typer.Option("--paused", help="Start nothing until it is resumed.")] = False,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The same key is the same schedule.")
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Make a schedule."""
    said = json_value(spec, "--spec")
    with connected(url, token) as client:
        answer = client.schedules.create(name, said, paused=paused, idempotency_key=idempotency_key)
    _say(answer, Output(json=json))


@command('orbit schedule edit 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --spec @nightly.json --reason "an hour later"')
def schedule_edit(
    identity: ScheduleId,
    spec: Spec,
    reason: Reason,
    expected: Annotated[
        int | None,
        typer.Option(
            "--expected-version", min=1, help="Refuse when it is at another. Default: what it is now."
        ),
    ] = None,
    effective_at: Annotated[
        str | None, typer.Option("--effective-at", metavar="INSTANT", help="From then on; now by default.")
    ] = None,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Give a schedule a new version. What was planned before it takes effect stays as it was."""
    said = json_value(spec, "--spec")
    with connected(url, token) as client:
        version = client.schedules.get(identity).version if expected is None else expected
        answer = client.schedules.edit(
            identity,
            said,
            expected_version=version,
            reason=reason,
            effective_at=None if effective_at is None else _instant(effective_at, "--effective-at"),
            operation_id=operation_id,
        )
    _say(answer, Output(json=json))


@command("orbit schedule list", "orbit schedule list --state PAUSED")
def schedule_list(
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only in this state.")] = None,
    limit: Limit = 20,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List schedules, newest first."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(islice(client.schedules.list(state=state.upper() if state else None), limit))
    if json:
        out.data(items(found))
        return
    rows = [
        (each.id, each.name, each.state, each.version, each.unfinished, each.waiting, moment(each.next_at))
        for each in found
    ]
    out.table(
        ("SCHEDULE", "NAME", "STATE", "VERSION", "RUNNING", "WAITING", "NEXT"), rows, "there are no schedules"
    )


@command("orbit schedule show 0198a6f2c1f07d0c8a4e5b6c7d8e9f00")
def schedule_show(identity: ScheduleId, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show a schedule, the versions that count, and when it fires next."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.schedules.get(identity)
        upcoming = client.schedules.preview(identity, count=5)
    if json:
        out.data({**wire(found), "preview": wire(upcoming)})
        return
    out.fields(
        {
            "schedule": found.id,
            "name": found.name,
            "state": found.state,
            "version": found.version,
            "running": found.unfinished,
            "waiting": found.waiting,
            "accounted to": moment(found.accounted_to),
        }
    )
    for version in found.versions:
        out.line(
            f"version {version.version}, from {moment(version.effective_at)}, by {version.made_by}", "bold"
        )
        for name, value in wire(version.spec).items():
            if value is not None:
                out.line(f"  {name}  {compact(value)}")
    for fire in upcoming.fires:
        out.line(f"next  {fire.local}{f'  {fire.note}' if fire.note else ''}")
    for warning in upcoming.warnings:
        out.line(f"warning: {warning}", "yellow")


@command("orbit schedule fires 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --state SKIPPED")
def schedule_fires(
    identity: ScheduleId,
    state: Annotated[str | None, typer.Option("--state", "-s", help="Only in this state.")] = None,
    limit: Limit = 20,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List what a schedule started or did not start, latest planned first."""
    out = Output(json=json)
    with connected(url, token) as client:
        chosen = state.upper() if state else None
        found = list(islice(client.schedules.fires(identity, state=chosen), limit))
    if json:
        out.data(items(found))
        return
    rows = [
        (
            moment(each.planned_at),
            each.cause,
            each.outcome or each.state,
            each.reason,
            each.merged if each.merged > 1 else None,
            each.version,
            each.target_id,
        )
        for each in found
    ]
    out.table(("PLANNED", "CAUSE", "STATE", "REASON", "MERGED", "VERSION", "TARGET"), rows, "nothing yet")


@command("orbit schedule records 0198a6f2c1f07d0c8a4e5b6c7d8e9f00")
def schedule_records(
    identity: ScheduleId,
    limit: Limit = 20,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List planned instants that did not run one by one, and why."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(islice(client.schedules.records(identity), limit))
    if json:
        out.data(items(found))
        return
    rows = [
        (moment(each.at), each.reason, each.count, moment(each.first_at), moment(each.last_at), each.version)
        for each in found
    ]
    out.table(("WHEN", "REASON", "COUNT", "FIRST", "LAST", "VERSION"), rows, "everything ran")


@command('orbit schedule pause 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --reason "the bank is down"')
def schedule_pause(
    identity: ScheduleId,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start nothing new. What is planned in the meantime is recorded, not made up for."""
    with connected(url, token) as client:
        answer = client.schedules.pause(identity, reason=reason, operation_id=operation_id)
    _say(answer, Output(json=json))


@command('orbit schedule resume 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --reason "the bank is back"')
def schedule_resume(
    identity: ScheduleId,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Go on with the next planned instant."""
    with connected(url, token) as client:
        answer = client.schedules.resume(identity, reason=reason, operation_id=operation_id)
    _say(answer, Output(json=json))


@command('orbit schedule trigger 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 --reason "the report was wrong"')
def schedule_trigger(
    identity: ScheduleId,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start one more occurrence now, with an identity of its own."""
    out = Output(json=json)
    with connected(url, token) as client:
        answer = client.schedules.trigger(identity, reason=reason, operation_id=operation_id)
    if json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.fire_id}  {answer.state}{f'  {answer.target_id}' if answer.target_id else ''}")


@command(
    "orbit schedule backfill 0198a6f2c1f07d0c8a4e5b6c7d8e9f00 2026-05-01T00:00:00Z 2026-05-02T00:00:00Z "
    '--dry-run --reason "the disk was full"'
)
def schedule_backfill(
    identity: ScheduleId,
    start: Annotated[str, typer.Argument(metavar="FROM", help="From this instant on.", show_default=False)],
    end: Annotated[str, typer.Argument(metavar="TO", help="Before this instant.", show_default=False)],
    reason: Reason,
    per_minute: Annotated[
        int, typer.Option("--rate", min=1, max=600, help="How many start in a minute, oldest first.")
    ] = 60,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run.")] = False,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Run what was planned and has not run; no planned instant runs twice."""
    out = Output(json=json)
    span = _instant(start, "FROM"), _instant(end, "TO")
    with connected(url, token) as client:
        answer = client.schedules.backfill(
            identity,
            *span,
            reason=reason,
            per_minute=per_minute,
            dry_run=dry_run,
            operation_id=operation_id,
        )
    if json:
        out.data(wire(answer))
        return
    verb = "would run" if dry_run else "run"
    out.line(f"{answer.runs} of {answer.planned} planned instants {verb}; {answer.known} have run or wait")


def _instant(text: str, option: str) -> Any:
    if not is_rfc3339(text):
        raise typer.BadParameter(
            f"{text!r} is not an RFC 3339 instant such as 2026-09-18T08:00:00Z", param_hint=option
        )
    from orbit_sdk.protocol.common import moment_of

    return moment_of(from_rfc3339(text))


def _say(answer: Any, out: Output) -> None:
    if out.json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.id}  {answer.state}  version {answer.version}")


schedule = group(
    "Plans that start tasks and workflows by the clock.",
    schedule_preview,
    schedule_create,
    schedule_edit,
    schedule_list,
    schedule_show,
    schedule_fires,
    schedule_records,
    schedule_pause,
    schedule_resume,
    schedule_trigger,
    schedule_backfill,
)
