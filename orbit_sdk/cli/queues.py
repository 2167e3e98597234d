"""`orbit queue …`: figures, pause, limits, keys and weights of queues."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import OperationId, Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.protocol.queues import Limits, Queue, QueueDetail

__all__ = ["queue"]

NONE = "none"
NAMESPACE = "--namespace"

Name = Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name.", show_default=False)]


@command("orbit queue list")
def queue_list(url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show every queue that has tasks, limits, or was paused once."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.queues.list())
    if json:
        out.data(items(found))
        return
    rows = [
        (
            one.name,
            "paused" if one.paused else "open",
            _ready(one),
            one.states.get("RUNNING", 0) + one.states.get("OFFERED", 0),
            _waiting(one),
            one.states.get("NEEDS_REVIEW", 0),
            moment(one.oldest_ready_at),
        )
        for one in found
    ]
    columns = ("QUEUE", "STATE", "READY", "RUNNING", "WAITING", "REVIEW", "OLDEST READY")
    out.table(columns, rows, "there are no queues")


def _ready(one: Queue) -> int:
    return one.states.get("READY", 0) - one.waiting_for_key


def _waiting(one: Queue) -> int:
    states = ("SCHEDULED", "RETRY_WAIT", "VERIFYING", "CANCELLING")
    return one.waiting_for_key + sum(one.states.get(state, 0) for state in states)


@command("orbit queue show payments")
def queue_show(name: Name, url: Url = None, token: Token = None, json: Json = False) -> None:
    """Show one queue: its tasks, its limits, who paused it."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.queues.get(name)
    if json:
        out.data(wire(found))
    else:
        _say(found, out)


def _say(found: QueueDetail, out: Output) -> None:
    paused = None
    if found.pause is not None:
        reason = f": {found.pause.reason}" if found.pause.reason else ""
        paused = f"since {moment(found.pause.at)} by {found.pause.actor}{reason}"
    out.fields(
        {
            "queue": found.name,
            "paused": paused or ("yes" if found.paused else None),
            "tasks": ", ".join(f"{count} {state}" for state, count in sorted(found.states.items())) or "none",
            "waiting for a key": found.waiting_for_key or None,
            "oldest ready": moment(found.oldest_ready_at) or None,
            "workers": found.workers,
            **_limits(found.limits),
        }
    )
    for one in found.key_classes:
        out.line(f"class {one.name}: {one.running_max} of each key at a time")


def _limits(limits: Limits | None) -> dict[str, object]:
    if limits is None:
        return {}
    rate = None
    if limits.rate is not None:
        rate = f"{limits.rate.count} per {limits.rate.per_ms} ms, {limits.rate.burst} at once"
        rate += f"; {limits.rate.tokens:g} there now"
    return {
        "running": None if limits.running_max is None else f"{limits.running} of {limits.running_max}",
        "backlog": None if limits.backlog_max is None else f"{limits.backlog} of {limits.backlog_max}",
        "rate": rate,
    }


@command('orbit queue pause payments --reason "the bank is down"')
def queue_pause(
    name: Name,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Hand out nothing of it any more. What runs goes on; tasks may be submitted."""
    _control("pause", (name, reason, operation_id), (url, token), Output(json=json))


@command('orbit queue resume payments --reason "the bank is back"')
def queue_resume(
    name: Name,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Hand out its tasks again."""
    _control("resume", (name, reason, operation_id), (url, token), Output(json=json))


def _control(
    action: str, said: tuple[str, str, str | None], where: tuple[str | None, str | None], out: Output
) -> None:
    name, reason, operation_id = said
    with connected(*where) as client:
        act = client.queues.pause if action == "pause" else client.queues.resume
        answer = act(name, reason=reason, operation_id=operation_id)
    if out.json:
        out.data(wire(answer))
    else:
        out.line(f"{answer.name}  {'paused' if answer.paused else 'open'}")


@command(
    'orbit queue limit payments --running 20 --rate 5/1s --reason "the bank allows 5 a second"',
    'orbit queue limit --namespace --backlog 100000 --reason "our share"',
    'orbit queue limit payments --rate none --reason "lifted"',
)
def queue_limit(
    reason: Reason,
    name: Annotated[str | None, typer.Argument(metavar="QUEUE", show_default=False)] = None,
    namespace: Annotated[bool, typer.Option("--namespace", help="Of the whole namespace.")] = False,
    running: Annotated[
        str | None, typer.Option("--running", metavar="N", help="How many attempts at once, or none.")
    ] = None,
    backlog: Annotated[
        str | None, typer.Option("--backlog", metavar="N", help="How many unsettled tasks, or none.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="N/1s", help="How many starts in that time, or none.")
    ] = None,
    burst: Annotated[int | None, typer.Option("--burst", min=1, help="How many of them at once.")] = None,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Set limits; those that are not named stay as they are."""
    if (name is None) != namespace:
        raise typer.BadParameter(f"name one queue, or say {NAMESPACE}")
    out = Output(json=json)
    with connected(url, token) as client:
        known = client.queues.namespace_limits() if name is None else client.queues.get(name).limits
        body = _merged(known, {"running": running, "backlog": backlog, "rate": rate}, burst)
        body["expected_revision"] = "0" if known is None else str(known.revision)
        client.queues.set_limits(name, {**body, "reason": reason}, operation_id=operation_id)
        after = client.queues.namespace_limits() if name is None else client.queues.get(name).limits
    if json:
        out.data(None if after is None else wire(after))
    else:
        out.fields({"queue": name or "all of the namespace", **_limits(after)})


def _merged(known: Limits | None, said: dict[str, str | None], burst: int | None) -> dict[str, Any]:
    """What is set now, changed by what was said."""
    body: dict[str, Any] = {}
    if known is not None:
        body = {"running_max": known.running_max, "backlog_max": known.backlog_max}
        if known.rate is not None:
            body["rate"] = {
                "count": known.rate.count,
                "per_ms": known.rate.per_ms,
                "burst": known.rate.burst,
            }
    for field, text in (("running_max", said["running"]), ("backlog_max", said["backlog"])):
        if text is not None:
            body[field] = None if text == NONE else _number(text)
    if said["rate"] is not None:
        body["rate"] = None if said["rate"] == NONE else _rate(said["rate"])
    if burst is not None:
        set_now = body.get("rate")
        if set_now is None:
            raise InvalidArgument.at("--burst", "needs a rate")
        set_now["burst"] = burst
    return {key: value for key, value in body.items() if value is not None}


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text!r} is not a whole number, nor {NONE}")
    return int(text)


def _rate(text: str) -> dict[str, Any]:
    count, slash, per = text.partition("/")
    if not slash:
        raise typer.BadParameter(f"{text!r} is not a rate such as 5/1s")
    return {"count": _number(count), "per_ms": duration_ms(per, "--rate")}


@command('orbit queue keys payments account 2 --reason "two cards each"')
def queue_keys(
    name: Name,
    class_name: Annotated[str, typer.Argument(metavar="CLASS", help="What stands before the colon.")],
    running: Annotated[int, typer.Argument(metavar="N", min=1, max=1000, help="How many of each key.")],
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Say how many tasks of each concurrency key of a class may be under way at once."""
    out = Output(json=json)
    with connected(url, token) as client:
        answer = client.queues.set_key_class(
            name, class_name, running, reason=reason, operation_id=operation_id
        )
    if json:
        out.data(wire(answer))
    else:
        out.line(f"{name}  {class_name}: {running} of each key at a time")


@command('orbit queue weight payments shop-7 3 --reason "pays for more"')
def queue_weight(
    name: Name,
    fairness_key: Annotated[str, typer.Argument(metavar="KEY", help="A fairness key.")],
    weight: Annotated[int, typer.Argument(metavar="N", min=1, max=1000, help="Its share; 1 is usual.")],
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Say how large the share of a fairness key is."""
    out = Output(json=json)
    with connected(url, token) as client:
        client.queues.set_weight(name, fairness_key, weight, reason=reason, operation_id=operation_id)
    if json:
        out.data({"queue": name, "fairness_key": fairness_key, "weight": weight})
    else:
        out.line(f"{name}  {fairness_key}: weight {weight}")


queue = group(
    "Queues: figures, pause, limits.",
    queue_list,
    queue_show,
    queue_pause,
    queue_resume,
    queue_limit,
    queue_keys,
    queue_weight,
)
