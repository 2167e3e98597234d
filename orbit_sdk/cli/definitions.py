"""`orbit definition …`: published versions and drafts; `orbit versions`: which are still in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.command import command, group
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.control import Reason
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import items, moment, wire
from orbit_sdk.cli.values import versioned

if TYPE_CHECKING:
    from orbit_sdk.protocol.definitions import DefinitionVersion
    from orbit_sdk.protocol.versions import HandlerInUse, VersionInUse, VersionsInUse

__all__ = ["definition", "versions"]

_FEW = 3

Version = Annotated[str, typer.Argument(metavar="ID@VERSION", help="Such as orders.payment@3.")]
SomeDefinition = Annotated[
    str | None,
    typer.Argument(metavar="[DEFINITION]", help="Only those of this definition.", show_default=False),
]


@command("orbit definition list", "orbit definition list orders.payment --json")
def definition_list(
    definition_id: SomeDefinition = None, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """List published versions, newest first."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.definitions.list(definition_id))
    if json:
        out.data(items(found))
        return
    rows = [
        (
            f"{one.definition_id}@{one.version}",
            "current" if one.current else "retired" if one.retired else "",
            one.digest[:12],
            moment(one.published_at),
            one.published_by,
        )
        for one in found
    ]
    out.table(("VERSION", "STATE", "DIGEST", "PUBLISHED", "BY"), rows, "nothing is published")


@command("orbit definition drafts", "orbit definition drafts orders.payment")
def definition_drafts(
    definition_id: SomeDefinition = None, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """List drafts of a development namespace, newest first."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = list(client.definitions.drafts(definition_id))
    if json:
        out.data(items(found))
        return
    rows = [
        (one.definition_id, one.digest[:12], moment(one.made_at), one.made_by, "yes" if one.used else "no")
        for one in found
    ]
    out.table(("DEFINITION", "DIGEST", "MADE", "BY", "STARTED"), rows, "there is no draft")


@command(
    "orbit definition current orders.payment@3",
    'orbit definition current orders.payment@2 -r "3 loses orders"',
)
def definition_current(
    version: Version,
    reason: Annotated[
        str | None, typer.Option("--reason", "-r", metavar="TEXT", help="Why; it is kept with your name.")
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Let starts without a version take this one from now on; it may be an older one.

    Workflows that run keep the version they started with.
    """
    out = Output(json=json)
    name, number = _version(version)
    with connected(url, token) as client:
        found = client.definitions.set_current(name, number, reason=reason)
    _say(out, found, "is current")


@command('orbit definition retire orders.payment@1 --reason "replaced by 2"')
def definition_retire(
    version: Version, reason: Reason, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """Let a version take no new starts. Workflows that run go on; the current version is refused."""
    out = Output(json=json)
    name, number = _version(version)
    with connected(url, token) as client:
        found = client.definitions.retire(name, number, reason=reason)
    _say(out, found, "takes no new starts; what runs goes on")


@command("orbit versions", "orbit versions orders.payment", "orbit versions --json")
def versions(
    definition_id: SomeDefinition = None, url: Url = None, token: Token = None, json: Json = False
) -> None:
    """Show which versions still have workflows that run, and which handlers workers must go on offering.

    A version without open workflows can be retired (unless it is current). A handler that nothing needs any
    more can leave the code of the workers.
    """
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.definitions.in_use(definition_id)
    if json:
        out.data(wire(found))
        return
    _tables(out, found)


def _tables(out: Output, found: VersionsInUse) -> None:
    rows = [
        (
            f"{one.definition_id}@{one.version}",
            one.open,
            moment(one.since),
            _standing(one),
        )
        for one in found.definitions
    ]
    out.table(("DEFINITION", "OPEN", "OLDEST", "STATE"), rows, "nothing is published")
    out.line()
    handlers = [
        (one.handler, one.workers, one.tasks, moment(one.since), one.workflows, _need(one))
        for one in found.handlers
    ]
    columns = ("HANDLER", "WORKERS", "TASKS", "OLDEST", "WORKFLOWS", "NEEDED BY")
    out.table(columns, handlers, "no handler is needed or offered")
    if found.more:
        out.note("there are more versions than are shown: name a definition", "yellow")


def _standing(one: VersionInUse) -> str:
    if one.draft:
        return "draft"
    if one.current:
        return "current"
    if one.retired:
        return "retired" if one.open else "retired, nothing runs"
    return "" if one.open else "can be retired"


def _need(one: HandlerInUse) -> str:
    parts = [
        *(["open tasks"] if one.tasks else []),
        *(["open workflows"] if one.workflows else []),
        *([f"starts of {', '.join(one.started_by[:_FEW])}"] if one.started_by else []),
    ]
    if len(one.started_by) > _FEW:
        parts[-1] += f" and {len(one.started_by) - _FEW} more"
    said = ", ".join(parts) or "nothing: workers may drop it"
    return f"{said} (NO WORKER)" if one.needed and not one.workers else said


def _version(text: str) -> tuple[str, int]:
    name, number = versioned(text, "version")
    if number is None:
        raise typer.BadParameter(f"{text!r} names no version: write {text}@1")
    return name, number


def _say(out: Output, found: DefinitionVersion, what: str) -> None:
    if out.json:
        out.data(wire(found))
    else:
        out.line(f"{found.definition_id} version {found.version} {what}", "green")


definition = group(
    "Published versions and drafts of workflows.",
    definition_list,
    definition_drafts,
    definition_current,
    definition_retire,
)
