"""`orbit plan`: what publishing would mean, without publishing anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from orbit_sdk.cli.check import SomeTargets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.cli.sources import Source

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.versions import PublishPlan

__all__ = ["plan", "plan_as_json", "plans_of", "say_plan", "stands_in_the_way"]

_STYLES = {"BREAKING": "red", "CAREFUL": "yellow", "SAFE": "green"}


@command(
    "orbit plan                              # everything that tool.orbit names",
    "orbit plan app.py --json",
    "orbit plan services/ --url https://orbit.example",
)
def plan(
    targets: SomeTargets = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show what publishing would mean: new, the same or a conflict, what changes, and what workers lack.

    Each workflow is compared with its current version. A handler is lacking when no worker that is connected,
    or left less than 15 minutes ago, offers it with these types on this queue. Exit code 1 when something
    stands in the way: a conflict, an error, or workers that have to come first.
    """
    out = Output(json=json)
    loaded = load_or_leave(find_config().targets(targets), out)
    with connected(url, token) as client:
        plans = plans_of(client, loaded.sources)
    blocked = [each for each in plans if stands_in_the_way(each)]
    if json:
        out.data({"ok": not blocked, "items": [plan_as_json(each) for each in plans]})
    else:
        for each in plans:
            say_plan(out, each)
        if not blocked:
            out.note("nothing stands in the way of `orbit publish`", "dim")
    raise typer.Exit(ExitCode.REFUSED if blocked else ExitCode.GOOD)


def plans_of(client: Orbit, sources: Sequence[Source]) -> list[PublishPlan]:
    """The server's plan for each workflow."""
    return [
        client.definitions.plan(source.definition.to_json())
        for source in sources
        if source.definition is not None
    ]


def stands_in_the_way(found: PublishPlan) -> bool:
    """Whether publishing would be refused, or would leave steps that nobody runs."""
    return found.outcome == "CONFLICT" or not found.ok or bool(found.lacking)


def say_plan(out: Output, found: PublishPlan) -> None:
    """One workflow for people: its outcome, its changes, what has to come first."""
    name = f"{found.definition_id}@{found.version}"
    match found.outcome:
        case "NEW":
            out.line(f"new       {name}{_against(found)}", "green")
        case "SAME":
            out.line(f"same      {name}{'  (retired: it takes no starts)' if found.retired else ''}", "dim")
        case _:
            free = (found.latest_version or found.version) + 1
            out.line(f"conflict  {name} is published with other content: set version={free}", "red")
    for change in found.changes:
        style = _STYLES[change.verdict]
        out.line(f"  {change.verdict:<9} {change.affects:<17} {change.what}", style)
    for finding in found.findings:
        if finding.severity.lower() == "error":
            out.line(f"  error     {finding.code}: {finding.message} ({finding.path})", "red")
    for lack in found.lacking:
        out.line(f"  workers first  {lack.message} (queue {lack.queue})", "yellow")


def _against(found: PublishPlan) -> str:
    if found.compared_with is None:
        return "  (a new workflow)"
    current = ", current" if found.compared_with == found.current_version else ""
    return f"  {found.verdict.lower()} against version {found.compared_with}{current}"


def plan_as_json(found: PublishPlan) -> dict[str, Any]:
    """A plan for programs; `needs_workers` says whether workers have to come first."""
    return {**wire(found), "needs_workers": bool(found.lacking)}
