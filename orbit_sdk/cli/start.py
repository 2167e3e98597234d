"""`orbit start`."""

from __future__ import annotations

from typing import Annotated

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import Json, Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.cli.values import json_value, labels, versioned

__all__ = ["start"]


@command(
    """orbit start orders.payment --input '{"number": "A-17", "amount": 5}' --key A-17 --watch""",
    "orbit start orders.payment@3 --input @order.json --idempotency-key order-A-17",
)
def start(
    definition: Annotated[
        str,
        typer.Argument(
            metavar="DEFINITION",
            help="Its id, or id@version; without a version the current one.",
            show_default=False,
        ),
    ],
    given: Annotated[
        str, typer.Option("--input", "-i", metavar="JSON", help="JSON, @file, or - for standard input.")
    ] = "null",
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Its business key: what the business calls it.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="May be given several times.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", help="The same key is the same workflow, however often it is asked for."
        ),
    ] = None,
    watching: Annotated[bool, typer.Option("--watch", "-w", help="Stay, and show it to its end.")] = False,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Start a workflow."""
    out = Output(json=json)
    definition_id, version = versioned(definition, "definition")
    content, named = json_value(given, "--input"), labels(label or [], "--label")
    with connected(url, token) as client:
        found = client.workflows.start(
            definition_id,
            content,
            version=version,
            business_key=key,
            labels=named,
            idempotency_key=idempotency_key,
        )
        if watching:
            from orbit_sdk.cli.watch import follow

            raise typer.Exit(follow(client, found.id, out))
    if json:
        out.data(wire(found))
        return
    out.line(f"started {found.id}  {found.definition_id}@{found.definition_version}", "green")
    out.note(f"next: orbit watch {found.id}", "dim")
