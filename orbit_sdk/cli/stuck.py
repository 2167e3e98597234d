"""`orbit stuck`."""

from __future__ import annotations

from typing import Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.shapes import moment, wire

__all__ = ["stuck"]


@command("orbit stuck", "orbit stuck --definition order.payment --json")
def stuck(
    definition: Annotated[str | None, typer.Option("--definition", help="Only of this definition.")] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Count what needs a person, by definition, step and reason. Exit code 1 when there is anything."""
    out = Output(json=json)
    with connected(url, token) as client:
        found = client.reviews.stuck(definition_id=definition)
    if json:
        out.data(wire(found))
    else:
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
    if found.items:
        raise typer.Exit(ExitCode.REFUSED)
