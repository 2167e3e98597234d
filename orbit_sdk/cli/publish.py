"""`orbit publish`: compile, check and publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.changes import changed_paths
from orbit_sdk.cli.check import Targets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.sources import Source
from orbit_sdk.errors import Conflict

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit

__all__ = ["few", "publish", "publish_one"]

_SHOWN = 3


@command("orbit publish app.py", "orbit publish --current build/orders.payment.v3.json")
def publish(
    targets: Targets,
    current: Annotated[
        bool, typer.Option("--current", help="Starts without a version take this one from now on.")
    ] = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Compile, check and publish workflows.

    A version that is published never changes: give changes a new one.
    """
    out = Output(json=json)
    loaded = load_or_leave(targets, out)
    with connected(url, token) as client:
        answers = [publish_one(client, source, current=current) for source in loaded.sources]
    refused = [answer for answer in answers if answer["outcome"] == "changed"]
    if json:
        out.data({"items": answers})
    else:
        for answer in answers:
            _say(out, answer)
    raise typer.Exit(ExitCode.REFUSED if refused else ExitCode.GOOD)


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
