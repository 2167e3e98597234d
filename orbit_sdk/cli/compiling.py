"""`orbit compile`: workflows as the JSON documents that they become."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from orbit_sdk.cli.check import SomeTargets, summary
from orbit_sdk.cli.command import command
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Loaded, Source, load

__all__ = ["compile_", "load_or_leave"]


@command(
    "orbit compile app.py                     # to standard output",
    "orbit compile app.py --output build/     # one file per workflow",
    "orbit compile --all                      # everything that tool.orbit names",
    "orbit compile --all --check              # in CI: are the committed files current?",
)
def compile_(
    targets: SomeTargets = None,
    all_: Annotated[
        bool, typer.Option("--all", help="All `paths` under `tool.orbit` in pyproject.toml.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Write one file per workflow here; with --all, the `output` under `tool.orbit` without it.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 when a file is missing or differs.")
    ] = False,
    json: Json = False,
) -> None:
    """Compile workflows to JSON. Nothing is written when anything is wrong."""
    config = find_config()
    if all_ and targets:
        raise typer.BadParameter("give targets or --all, not both")
    if output is None and (all_ or check):
        output = config.output
    if output is None and (all_ or check):
        raise typer.BadParameter("give --output, or name `output` under [tool.orbit] in pyproject.toml")
    out = Output(json=json)
    loaded = load_or_leave(config.targets(targets), out)
    if output is None:
        _print(loaded, out)
        return
    documents = {output / _file_name(source): _document(source) for source in loaded.sources}
    stale = [path for path, text in documents.items() if _current(path) != text]
    if check:
        _say_stale(stale, out)
    else:
        _write(documents, out)


def _write(documents: dict[Path, str], out: Output) -> None:
    for path, text in documents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        out.note(f"wrote {path}")
    if out.json:
        out.data({"written": [str(path) for path in documents]})


def _say_stale(stale: list[Path], out: Output) -> None:
    if out.json:
        out.data({"ok": not stale, "stale": [str(path) for path in stale]})
    else:
        for path in stale:
            out.line(f"{path} {'is out of date' if path.exists() else 'is missing'}", "red")
        if stale:
            out.note("compile again without --check, and commit what it writes")
        else:
            out.line("every definition is current", "green")
    raise typer.Exit(ExitCode.REFUSED if stale else ExitCode.GOOD)


def _current(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


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
