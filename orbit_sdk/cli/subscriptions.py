"""`orbit subscription …`: events for programs, and a look at them for people."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import compact, items, moment, wire
from orbit_sdk.cli.values import json_value

__all__ = ["subscription"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a subscription.", show_default=False)]


@command(
    """orbit subscription create results --when-full DROP_OLDEST --filter '{"kinds": ["TASK"]}'""",
)
def subscription_create(
    name: Name,
    when_full: Annotated[
        str,
        typer.Option(
            "--when-full",
            metavar="DROP_OLDEST|DROP_NEWEST",
            help="What is given up when the backlog is full.",
            show_default=False,
        ),
    ],
    wanted: Annotated[
        str, typer.Option("--filter", metavar="JSON", help="What is wanted: JSON, @file, or -.")
    ] = "{}",
    backlog: Annotated[int, typer.Option("--backlog", min=1, help="At most so many events wait.")] = 100_000,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Make a subscription; the same again is the same one."""
    said = json_value(wanted, "--filter")
    with connected(url, token) as client:
        answer = client.subscriptions.create(
            name, when_full=when_full.upper(), filter=said, backlog_max=backlog
        )
    _say(answer, Output(json=json))


@command("orbit subscription list")
def subscription_list(url: Url = None, token: Token = None, json: Json = False) -> None:
    """List the subscriptions with their backlogs."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.subscriptions.list())
    if json:
        out.data(items(found))
        return
    rows = [
        (each.name, each.backlog, each.acknowledged, each.redelivered, each.dropped, moment(each.pulled_at))
        for each in found
    ]
    columns = ("NAME", "BACKLOG", "ACKNOWLEDGED", "AGAIN", "DROPPED", "LAST PULL")
    out.table(columns, rows, "there are no subscriptions")


@command("orbit subscription show results")
def subscription_show(name: Name, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show a subscription with its figures."""
    with connected(url, token) as client:
        answer = client.subscriptions.get(name)
    _say(answer, Output(json=json))


@command("orbit subscription tail results", "orbit subscription tail results --once --json | jq .event.state")
def subscription_tail(
    name: Name,
    once: Annotated[bool, typer.Option("--once", help="Leave when nothing waits.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Acknowledge nothing: what was shown comes again later.")
    ] = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show events as they come, and acknowledge what was shown."""
    out = Output(json=json)
    with connected(url, token, patience=60.0) as client:
        while True:
            pulled = client.subscriptions.pull(name, limit=20, wait=0.0 if once else 20.0)
            for delivery in pulled.items:
                _tell(delivery, out)
            if pulled.items and not keep:
                client.subscriptions.acknowledge(name, [each.id for each in pulled.items])
            if once and not pulled.items:
                return


@command('orbit subscription end results --reason "its reader is gone"')
def subscription_end(
    name: Name, reason: Reason, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """End a subscription and forget its backlog."""
    out = Output(json=json)
    with connected(url, token) as client:
        client.subscriptions.end(name, reason=reason)
    if json:
        out.data({"name": name, "ended": True})
    else:
        out.line(f"{name} has ended")


def _tell(delivery: Any, out: Output) -> None:
    if out.json:
        out.event(wire(delivery))
        return
    event = delivery.event
    about = event.step_key or event.task_id or event.workflow_id or event.aggregate_id
    again = f"  (delivery {delivery.deliveries})" if delivery.deliveries > 1 else ""
    out.line(f"{moment(event.occurred_at)}  {event.type:<24}  {event.state or '':<14}  {about}{again}")
    value = event.result if event.result is not None else event.error
    if value is not None:
        out.line(f"    {compact(value)}", "dim")


def _say(answer: Any, out: Output) -> None:
    if out.json:
        out.data(wire(answer))
        return
    out.fields(
        {
            "subscription": answer.name,
            "filter": compact(wire(answer.filter)),
            "backlog": f"{answer.backlog} of {answer.backlog_max}, then {answer.when_full}",
            "oldest": moment(answer.oldest_at),
            "being read": answer.in_flight,
            "acknowledged": answer.acknowledged,
            "delivered again": answer.redelivered,
            "dropped": answer.dropped,
            "expired": answer.expired,
            "last pull": moment(answer.pulled_at),
        }
    )


subscription = group(
    "Events that are delivered until they are acknowledged.",
    subscription_create,
    subscription_list,
    subscription_show,
    subscription_tail,
    subscription_end,
)
