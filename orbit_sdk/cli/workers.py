"""`orbit worker TARGET…` runs a worker; `orbit worker list/block/unblock` is about connected ones."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from orbit_sdk.cli.command import add, command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import OperationId, Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.cli.worker import worker as run
from orbit_sdk.protocol.platform import WorkerSession

__all__ = ["worker"]

RUN = "run"
Build = Annotated[str, typer.Argument(metavar="BUILD", help="As `orbit worker list` shows it.")]


class RunOrAsk(TyperGroup):
    """What is not the name of a command here is what a worker is to run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [RUN, *args]
        return super().parse_args(ctx, args)


@command("orbit worker list", "orbit worker list --all")
def worker_list(
    every: Annotated[bool, typer.Option("--all", help="Also those that have left.")] = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show connected workers, their builds and what they serve."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.workers.list(connected=None if every else True))
    if json:
        out.data(items(found))
        return
    rows = [
        (
            one.worker,
            f"{one.build or '-'}{' (blocked)' if one.blocked else ''}",
            ", ".join(one.queues),
            len(one.handlers),
            moment(one.connected_at),
            _state(one),
        )
        for one in found
    ]
    out.table(("WORKER", "BUILD", "QUEUES", "HANDLERS", "SINCE", "STATE"), rows, "no worker is connected")


def _state(session: WorkerSession) -> str:
    if session.closed_at is not None:
        return f"left {moment(session.closed_at)}"
    return f"connected, {session.stuck} stuck" if session.stuck else "connected"


@command('orbit worker block 2026-11-30.3 --reason "loses receipts"')
def worker_block(
    build: Build,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Give the workers of a build no work any more. What they run goes on."""
    _say(build, (reason, operation_id), (url, token), Output(json=json), blocked=True)


@command('orbit worker unblock 2026-11-30.3 --reason "fixed on the host"')
def worker_unblock(
    build: Build,
    reason: Reason,
    operation_id: OperationId = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Give the workers of a build work again."""
    _say(build, (reason, operation_id), (url, token), Output(json=json), blocked=False)


def _say(
    build: str,
    said: tuple[str, str | None],
    where: tuple[str | None, str | None],
    out: Output,
    *,
    blocked: bool,
) -> None:
    reason, operation_id = said
    with connected(*where) as client:
        act = client.workers.block if blocked else client.workers.unblock
        answer = act(build, reason=reason, operation_id=operation_id)
    if out.json:
        out.data(wire(answer))
    else:
        out.line(f"build {answer.build} {'gets no work any more' if answer.blocked else 'gets work again'}")


worker = typer.Typer(
    cls=RunOrAsk,
    help="Run a worker (`orbit worker app.py`), or look after those that are connected.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for _name, _function in (
    (RUN, run),
    ("list", worker_list),
    ("block", worker_block),
    ("unblock", worker_unblock),
):
    add(worker, _name, _function)
