"""`orbit bulk plan`, `show`, `items`, `apply`, `stop` and `list`."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli import bulk_orders as orders
from orbit_sdk.cli.bulk_orders import Kind
from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import OnBehalfOf, OperationId, Reason
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.reviews import Basis, ErrorCode, Evidence, Message, Result
from orbit_sdk.cli.shapes import items, moment, wire

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.bulk import BulkAnswer, BulkDetail, BulkItem

__all__ = ["bulk"]

_SHOWN = 10
_LOOK_S = 0.3

BulkId = Annotated[
    str, typer.Argument(metavar="BULK", help="The id that `orbit bulk plan` told.", show_default=False)
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is done.")]


class ResultWord(StrEnum):
    """What became of an item."""

    APPLIED = "applied"
    SKIPPED_CHANGED = "skipped_changed"
    REFUSED = "refused"
    NOT_REACHED = "not_reached"


@command(
    "orbit bulk plan review --verdict failed --code BANK_DOWN --class UNKNOWN --step pay "
    '--reason "outage of 3 May" --evidence "none is in the bank\'s journal"',
    'orbit bulk plan probe --ask bank.look_up@1 --step pay --reason "did the bank get them?"',
    'orbit bulk plan pause --definition order.payment --reason "the bank is down"',
    'orbit bulk plan restart --effects same --state failed --definition order.payment --reason "all is well"',
    'orbit bulk plan task-retry --queue mail --error SMTP_DOWN --basis accepted_risk --reason "mail is back"',
)
def bulk_plan(
    kind: Annotated[Kind, typer.Argument(help="What is done to each.", case_sensitive=False)],
    reason: Reason,
    verdict: orders.VerdictOption = None,
    basis: orders.BasisOption = Basis.PROVEN,
    evidence: Evidence = None,
    result: Result = None,
    adopt: orders.AdoptOption = False,
    code: ErrorCode = None,
    message: Message = None,
    attempts: orders.Attempts = 0,
    rounds: orders.Rounds = 0,
    time: orders.Time = None,
    ask: orders.Ask = None,
    within: orders.Within = None,
    effects: orders.EffectsOption = None,
    to_version: orders.ToVersion = None,
    definition: orders.Definition = None,
    version: orders.Version = None,
    state: orders.State = None,
    paused: orders.Paused = None,
    step: orders.Step = None,
    review_class: orders.ReviewClass = None,
    because: orders.Because = None,
    queue: orders.Queue = None,
    handler: orders.Handler = None,
    error: orders.Error = None,
    keys: orders.Keys = None,
    keys_from: orders.KeysFrom = None,
    most: Annotated[int, typer.Option("--most", min=1, max=10_000, help="So many items at most.")] = 1000,
    operation_id: OperationId = None,
    behalf: OnBehalfOf = None,
    no_wait: NoWait = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Plan one action for many: what the filter finds is frozen. Nothing is done until you apply the plan."""
    said = {"evidence": evidence, "code": code, "message": message}
    order = orders.action_body(kind, verdict, basis, said, result, adopt=adopt)
    order |= orders.grant_body(kind, attempts, rounds, time) | orders.probe_body(kind, ask, within)
    order |= orders.restart_body(kind, effects, to_version)
    narrow = orders.filter_body(
        definition_id=definition,
        version=version,
        state=state,
        paused=paused,
        step_key=step,
        review_class=review_class,
        reason=because,
        queue=queue,
        handler=handler,
        error_code=error,
        business_keys=orders.keys_of(keys, keys_from),
    )
    with connected(url, token) as client:
        made = client.bulk.plan(
            order, narrow, reason=reason, most=most, idempotency_key=operation_id, on_behalf_of=behalf
        )
        _planned(client, made, Output(json=json), waits=not no_wait)


@command("orbit bulk show 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f")
def bulk_show(bulk_id: BulkId, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show what a bulk is about and how far it is."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.bulk.get(bulk_id)
    if json:
        out.data(wire(found))
    else:
        _say(found, out)


@command(
    "orbit bulk items 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f",
    "orbit bulk items 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f --result refused --json",
)
def bulk_items(
    bulk_id: BulkId,
    result: Annotated[
        ResultWord | None,
        typer.Option("--result", help="Only items that this became of.", case_sensitive=False),
    ] = None,
    allowed: Annotated[
        bool | None, typer.Option("--allowed/--refused", help="Only what the plan allows, or refuses.")
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List the items of a bulk: what the plan says about each, and what became of it."""
    out = Output(json=json)
    with connected(url, token) as client:
        word = None if result is None else result.value.upper()
        found = list(client.bulk.items(bulk_id, result=word, allowed=allowed))
    if json:
        out.data(items(found))
        return
    rows = [
        (
            item.number,
            item.workflow_id or item.task_id,
            item.step_key,
            item.business_key,
            f"then {item.then}" if item.allowed else "refused",
            item.result,
            item.why or item.made_id,
        )
        for item in found
    ]
    out.table(("NO", "ID", "STEP", "KEY", "PLAN", "RESULT", "BECAUSE"), rows, "no item fits")


@command(
    "orbit bulk apply 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f",
    "orbit bulk apply 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f --per-second 2 --max-failures 1",
)
def bulk_apply(
    bulk_id: BulkId,
    per_second: Annotated[
        float, typer.Option("--per-second", min=0.01, max=1000, help="So many items a second.")
    ] = 10.0,
    max_failures: Annotated[
        int, typer.Option("--max-failures", min=0, help="Stop after so many failures; 0: never.")
    ] = 3,
    max_failure_percent: Annotated[
        int | None,
        typer.Option("--max-failure-percent", min=1, max=100, help="Stop at this share of failures."),
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", "-r", metavar="TEXT", help="Why now.")] = None,
    operation_id: OperationId = None,
    behalf: OnBehalfOf = None,
    no_wait: NoWait = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Do what was planned. The server carries it on by itself; leaving this command does not stop it.

    Exit code 1 when an item failed, or when it was stopped.
    """
    out = Output(json=json)
    with connected(url, token) as client:
        begun = client.bulk.apply(
            bulk_id,
            per_second=per_second,
            max_failures=max_failures or None,
            max_failure_percent=max_failure_percent,
            reason=reason,
            operation_id=operation_id,
            on_behalf_of=behalf,
        )
        if no_wait:
            _say_answer(begun, out)
            return
        found = _followed(client, bulk_id)
    if json:
        out.data(wire(found))
    else:
        _say(found, out)
    if found.state != "DONE" or found.failed:
        raise typer.Exit(ExitCode.REFUSED)


@command('orbit bulk stop 018f2b7e0c1d7a3b8e4f5a6b7c8d9e0f --reason "the bank is down again"')
def bulk_stop(
    bulk_id: BulkId,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Stop a bulk, or give its plan up. What is done stays done."""
    out = Output(json=json)
    with connected(url, token) as client:
        client.bulk.stop(bulk_id, reason=reason, operation_id=operation_id)
        found = client.bulk.get(bulk_id)
    if json:
        out.data(wire(found))
    else:
        _say(found, out)


@command("orbit bulk list", "orbit bulk list --state APPLYING --json")
def bulk_list(
    state: Annotated[str | None, typer.Option("--state", help="Only in this state.")] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """List bulks, newest first."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.bulk.list(state=None if state is None else state.upper()))
    if json:
        out.data(items(found))
        return
    rows = [
        (
            item.id,
            item.action,
            item.state,
            item.items,
            item.applied,
            item.skipped,
            item.failed,
            item.planned_by,
            moment(item.created_at),
        )
        for item in found
    ]
    columns = ("ID", "ACTION", "STATE", "ITEMS", "APPLIED", "SKIPPED", "FAILED", "BY", "PLANNED")
    out.table(columns, rows, "there are no bulks")


def _planned(client: Orbit, made: BulkAnswer, out: Output, *, waits: bool) -> None:
    """Wait until it is frozen, and say what it would do."""
    if not waits:
        _say_answer(made, out)
        return
    found = client.bulk.wait(made.id)
    if out.json:
        out.data(wire(found))
        return
    _say(found, out)
    for item in islice(client.bulk.items(found.id, allowed=False), _SHOWN):
        out.line(f"refused  {_name(item)}  {item.why}", "yellow")
    if found.truncated:
        out.note("more fits the filter than the plan holds: plan again afterwards, or say --most", "yellow")
    if found.state == "PLANNED":
        _say_what_next(found, out)


def _say_what_next(found: BulkDetail, out: Output) -> None:
    if not found.items:
        out.note("nothing fits the filter: plan again with another one", "yellow")
        return
    out.note(f"look at it: orbit bulk items {found.id}", "dim")
    if found.allowed:
        out.note(f"do it:      orbit bulk apply {found.id}", "dim")
    else:
        out.note("nothing of it may be done: applying it would change nothing", "yellow")


def _say_answer(answer: BulkAnswer, out: Output) -> None:
    if out.json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.id}  {answer.state}")


def _followed(client: Orbit, bulk_id: str) -> BulkDetail:
    """Look on until it has ended, with its progress on a terminal."""
    shows = sys.stderr.isatty()
    while True:
        found = client.bulk.get(bulk_id)
        if shows:
            done = found.allowed - found.left
            words = f"{done} of {found.allowed}: {found.applied} applied, {found.skipped} skipped"
            print(f"\r\x1b[K{words}, {found.failed} failed", end="", file=sys.stderr, flush=True)
        if found.state != "APPLYING":
            if shows:
                print(file=sys.stderr)
            return found
        time.sleep(_LOOK_S)


def _name(item: BulkItem) -> str:
    parts = (item.workflow_id or item.task_id, item.step_key, item.business_key)
    return "  ".join(part for part in parts if part is not None)


def _say(found: BulkDetail, out: Output) -> None:
    began = found.started_at is not None
    stopped = "" if found.stopped_by is None else f" ({found.stopped_by})"
    out.fields(
        {
            "bulk": found.id,
            "state": f"{found.state}{stopped}",
            "action": found.action,
            "reason": found.reason,
            "planned by": found.planned_by,
            "items": found.items,
            "allowed": found.allowed,
            "refused": found.refused or None,
            "applied by": found.applied_by,
            "applied": found.applied if began else None,
            "skipped": f"{found.skipped} had changed" if found.skipped else None,
            "failed": found.failed or None,
            "not done": found.left if began and found.left else None,
            "expires": None if began else moment(found.expires_at),
        }
    )


bulk = group(
    "Decide on many at once: plan, look, apply.",
    bulk_plan,
    bulk_show,
    bulk_items,
    bulk_apply,
    bulk_stop,
    bulk_list,
)
