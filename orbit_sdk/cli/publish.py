"""`orbit publish`: compile, check and publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.changes import changed_paths
from orbit_sdk.cli.check import SomeTargets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.plan import plan_as_json, plans_of, say_plan, stands_in_the_way
from orbit_sdk.cli.sources import Loaded, Source
from orbit_sdk.errors import Conflict

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit

__all__ = ["few", "publish", "publish_one"]

_SHOWN = 3


@command(
    "orbit publish app.py",
    "orbit publish --current build/orders.payment.v3.json",
    "orbit publish --all --require-workers    # everything that tool.orbit names, or nothing",
)
def publish(
    targets: SomeTargets = None,
    all_: Annotated[
        bool, typer.Option("--all", help="All `paths` under `tool.orbit` in pyproject.toml.")
    ] = False,
    require_workers: Annotated[
        bool,
        typer.Option(
            "--require-workers",
            help="Publish nothing unless workers offer every handler, and no version is taken.",
        ),
    ] = False,
    current: Annotated[
        bool, typer.Option("--current", help="Starts without a version take this one from now on.")
    ] = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Compile, check and publish workflows.

    A version that is published never changes: give changes a new one. `orbit plan` shows beforehand what
    would come of it.
    """
    if bool(targets) == all_:
        raise typer.BadParameter("give targets or --all, not both" if targets else "give a target, or --all")
    out = Output(json=json)
    loaded = load_or_leave(find_config().targets(targets), out)
    with connected(url, token) as client:
        if require_workers:
            _refuse_early(client, loaded, out)
        answers = [publish_one(client, source, current=current) for source in loaded.sources]
    refused = [answer for answer in answers if answer["outcome"] == "changed"]
    if json:
        out.data({"items": answers})
    else:
        for answer in answers:
            _say(out, answer)
    raise typer.Exit(ExitCode.REFUSED if refused else ExitCode.GOOD)


def _refuse_early(client: Orbit, loaded: Loaded, out: Output) -> None:
    """Nothing is published when one of the workflows could not be, or would wait for workers."""
    plans = plans_of(client, loaded.sources)
    blocked = [each for each in plans if stands_in_the_way(each)]
    if not blocked:
        return
    if out.json:
        out.data({"outcome": "refused", "items": [plan_as_json(each) for each in blocked]})
    else:
        for each in blocked:
            say_plan(out, each)
        out.note("nothing is published", "red")
    raise typer.Exit(ExitCode.REFUSED)


def publish_one(client: Orbit, source: Source, *, current: bool) -> dict[str, Any]:
    """Publish one; `outcome` is "published", or "changed" when its version holds other content already.

    `changes` then names where the two differ.
    """
    assert source.id is not None
    assert source.version is not None
    assert source.definition is not None
    document = source.definition.to_json()
    answer: dict[str, Any] = {"definition_id": source.id, "version": source.version, "digest": source.digest}
    try:
        found = client.definitions.publish(document, side=source.side, current=current)
    except Conflict as error:
        published = client.definitions.get(source.id, source.version).definition
        changes = changed_paths(published, document)
        return {
            **answer,
            "outcome": "changed",
            "message": error.message,
            "changes": changes,
            "current": False,
        }
    return {**answer, "outcome": "published", "current": found.current}


def few(names: list[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _say(out: Output, answer: dict[str, Any]) -> None:
    name = f"{answer['definition_id']} version {answer['version']}"
    if answer["outcome"] == "changed":
        out.note(f"refused    {name} is published with other content", "red")
        out.note(f"           changed: {few(answer['changes'])}")
        out.note(f"           set version={answer['version'] + 1} in the workflow, and publish again")
        return
    suffix = ", current" if answer["current"] else ""
    out.line(f"published  {name}{suffix}  {answer['digest'][:12]}", "green")
