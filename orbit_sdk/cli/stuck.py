"""`orbit stuck`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.shapes import moment, wire
from orbit_sdk.errors import PermissionDenied

if TYPE_CHECKING:
    from orbit_sdk.protocol.explain import Stuck, StuckTasks

M = TypeVar("M")

__all__ = ["stuck"]


@command("orbit stuck", "orbit stuck --definition order.payment --json", "orbit stuck --queue mail")
def stuck(
    definition: Annotated[str | None, typer.Option("--definition", help="Only of this definition.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Only tasks of this queue.")] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Count what needs a person, by definition, step and reason; and tasks that do not move, by queue,
    handler, state and reason. Exit code 1 when there is anything.

    What the token may not read is left out.
    """
    out = Output(json=json)
    with connected(url, token) as client:
        found = _readable(lambda: client.reviews.stuck(definition_id=definition)) if queue is None else None
        tasks = _readable(lambda: client.tasks.stuck(queue=queue)) if definition is None else None
    if json:
        workflows = {"items": [], "more": False} if found is None else wire(found)
        out.data({**workflows, "tasks": [] if tasks is None else wire(tasks)["items"]})
    else:
        _say(found, tasks, out)
    if (found is not None and found.items) or (tasks is not None and tasks.items):
        raise typer.Exit(ExitCode.REFUSED)


def _readable(ask: Callable[[], M]) -> M | None:
    """What the server answers, or None when the token may not read it."""
    try:
        return ask()
    except PermissionDenied:
        return None


def _say(found: Stuck | None, tasks: StuckTasks | None, out: Output) -> None:
    if tasks is not None and tasks.items:
        waiting = [
            (
                item.count,
                item.queue,
                f"{item.handler}@{item.handler_version}",
                item.state,
                item.review_class,
                item.reason,
                moment(item.since),
            )
            for item in tasks.items
        ]
        out.table(("COUNT", "QUEUE", "HANDLER", "STATE", "CLASS", "REASON", "SINCE"), waiting, "")
        out.line()
    if found is not None:
        rows = [
            (
                item.count,
                f"{item.definition_id}@{item.definition_version}",
                item.step_key,
                item.review_class,
                item.reason,
                moment(item.since),
            )
            for item in found.items
        ]
        columns = ("COUNT", "DEFINITION", "STEP", "CLASS", "REASON", "SINCE")
        out.table(columns, rows, "nothing needs a person")
        if found.more:
            out.note("there are more groups; the smallest are not shown", "dim")
