"""`orbit check`: every finding about every workflow, without any server."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Loaded, load

__all__ = ["Targets", "check", "report_json", "summary"]

Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET…",
        help="Python files, modules, folders or JSON documents; file.py:name for one workflow.",
        show_default=False,
    ),
]


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"


@command(
    "orbit check app.py",
    "orbit check workflows/ shared.definitions",
    "orbit check --format json app.py",
)
def check(
    targets: Targets,
    form: Annotated[
        Format, typer.Option("--format", help="How to write what was found.", show_default=True)
    ] = Format.TEXT,
    json: Json = False,
) -> None:
    """Check workflows without any server: types, graph, data flow, limits.

    Exit code 1 when there is an error.
    """
    loaded = load(targets)
    _FORMATS[Format.JSON if json else form](loaded)
    raise typer.Exit(ExitCode.GOOD if loaded.ok and loaded.sources else ExitCode.REFUSED)


def summary(loaded: Loaded) -> str:
    """`3 workflows, 1 error, 2 warnings`."""
    findings = loaded.findings
    errors = sum(found.is_error for found in findings)
    workflows = len({(source.id, source.version) for source in loaded.sources if source.id is not None})
    parts = [
        _count(workflows, "workflow"),
        _count(errors, "error"),
        _count(len(findings) - errors, "warning"),
    ]
    return ", ".join(parts)


def report_json(loaded: Loaded) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "ok": loaded.ok and bool(loaded.sources),
        "workflows": [
            {
                "source": source.origin,
                "id": source.id,
                "version": source.version,
                "digest": source.digest,
                "ok": source.ok,
                "findings": [found.to_json() for found in source.findings],
            }
            for source in loaded.sources
        ],
    }


def _text(loaded: Loaded) -> None:
    out = Output()
    render(loaded.findings, out)
    for source in loaded.sources:
        if source.ok:
            out.line(f"ok  {source.name}", "green")
    if not loaded.sources:
        out.note("no workflow was found: a workflow is a function under @orbit.workflow", "yellow")
        return
    out.line(summary(loaded), "bold")


def _json(loaded: Loaded) -> None:
    Output().data(report_json(loaded))


# The place for further formats: a writer per name.
_FORMATS: dict[Format, Callable[[Loaded], None]] = {Format.TEXT: _text, Format.JSON: _json}


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
