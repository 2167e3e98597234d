"""`orbit compile`: workflows as the JSON documents that they become."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from orbit_sdk.cli.check import Targets, summary
from orbit_sdk.cli.command import command
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Loaded, Source, load

__all__ = ["compile_", "load_or_leave"]


@command(
    "orbit compile app.py                     # to standard output",
    "orbit compile app.py --output build/     # one file per workflow",
)
def compile_(
    targets: Targets,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Write one file per workflow here.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile workflows to JSON. Nothing is written when anything is wrong."""
    out = Output(json=json)
    loaded = load_or_leave(targets, out)
    documents = {_file_name(source): _document(source) for source in loaded.sources}
    if output is None:
        _print(loaded, out)
        return
    output.mkdir(parents=True, exist_ok=True)
    for name, text in documents.items():
        (output / name).write_text(text, encoding="utf-8")
        out.note(f"wrote {output / name}")
    if json:
        out.data({"written": [str(output / name) for name in documents]})


def load_or_leave(targets: list[str], out: Output) -> Loaded:
    """What the targets hold; findings and exit code 1 when anything is wrong or nothing is there."""
    loaded = load(targets)
    if loaded.ok and loaded.sources:
        return loaded
    if out.json:
        from orbit_sdk.cli.check import report_json

        out.data(report_json(loaded))
    else:
        render(loaded.findings, out)
        out.note(summary(loaded) if loaded.sources else "no workflow was found", "bold")
    raise typer.Exit(ExitCode.REFUSED)


def _print(loaded: Loaded, out: Output) -> None:
    documents = [source.definition.to_json() for source in loaded.sources if source.definition is not None]
    if out.json:
        out.data({"items": documents})
    elif len(documents) == 1:
        out.data(documents[0])
    else:
        names = ", ".join(source.name for source in loaded.sources)
        raise typer.BadParameter(
            f"there are several workflows ({names}): give --output, or name one file.py:name"
        )


def _file_name(source: Source) -> str:
    return f"{source.id}.v{source.version}.json"


def _document(source: Source) -> str:
    assert source.definition is not None
    return json_module.dumps(source.definition.to_json(), indent=2, ensure_ascii=False) + "\n"
