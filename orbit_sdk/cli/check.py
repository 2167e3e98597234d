"""`orbit check`: every finding about every workflow, without any server."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.config import Config, find_config
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Loaded, load

if TYPE_CHECKING:
    from orbit_sdk.cli.committed import Committed

__all__ = ["SomeTargets", "check", "report_json", "summary"]

_HELP = "Python files, modules, folders or JSON documents; file.py:name for one workflow."
_HEAD = "git:HEAD"

SomeTargets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET…",
        help=f"{_HELP} Without any, the `paths` under `tool.orbit` in pyproject.toml.",
        show_default=False,
    ),
]


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


@command(
    "orbit check app.py",
    "orbit check workflows/ shared.definitions",
    "orbit check --format sarif > findings.sarif",
    "orbit check --against git:main",
    "orbit check app.py --explain submit",
)
def check(
    targets: SomeTargets = None,
    form: Annotated[
        Format, typer.Option("--format", help="How to write what was found.", show_default=True)
    ] = Format.TEXT,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain", metavar="STEP", help="Show every setting of a step and where it comes from."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="WHAT",
            help="Find content that changed under a version which git:REVISION, a file or folder of JSON, "
            "or a server holds.",
        ),
    ] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only workflows that differ from --against (default git:HEAD).")
    ] = False,
    json: Json = False,
) -> None:
    """Check workflows without any server: types, graph, data flow, limits.

    Exit code 1 when there is an error.
    """
    from orbit_sdk.cli.judging import changed_only, judged, with_versions

    config = find_config()
    loaded = load(config.targets(targets))
    if explain is not None:
        _explain(loaded, explain, Output(json=json))
        return
    if against is not None or changed:
        known = _known(against or _HEAD, config, loaded)
        if changed:
            loaded = changed_only(loaded, known)
        loaded = with_versions(loaded, known)
    loaded = judged(loaded, config)
    _FORMATS[Format.JSON if json else form](loaded)
    raise typer.Exit(ExitCode.GOOD if loaded.ok and loaded.found_any else ExitCode.REFUSED)


def _known(against: str, config: Config, loaded: Loaded) -> Committed:
    from orbit_sdk.cli.committed import committed

    return committed(against, config, [source.id for source in loaded.sources if source.id is not None])


def _explain(loaded: Loaded, step: str, out: Output) -> None:
    from orbit_sdk.check.explain import explain_step
    from orbit_sdk.check.words import near

    sources = [source for source in loaded.sources if source.definition is not None]
    definitions = [source.definition for source in sources if source.definition is not None]
    found = {
        each.id: explain_step(each, step, *([] if source.workflow is None else [source.workflow.on_failure]))
        for source, each in zip(sources, definitions, strict=True)
        if step in each.nodes
    }
    if not found:
        names = {key for each in definitions for key in each.nodes}
        raise typer.BadParameter(f"no workflow here has a step '{step}'.{near(step, names)}")
    if out.json:
        as_json = {id_: [_setting(each) for each in settings] for id_, settings in found.items()}
        out.data({"step": step, "workflows": as_json})
        return
    for id_, settings in found.items():
        out.line(f"{id_}: {step}", "bold")
        rows = [(each.name, each.value, each.origin) for each in settings]
        out.table(("SETTING", "VALUE", "FROM"), rows, "this step has no settings")


def _setting(setting: Any) -> dict[str, str]:
    return {"name": setting.name, "value": setting.value, "origin": setting.origin}


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
        "ok": loaded.ok and loaded.found_any,
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
    if not loaded.found_any:
        out.note("no workflow was found: a workflow is a function under @orbit.workflow", "yellow")
        return
    out.line(summary(loaded), "bold")


def _json(loaded: Loaded) -> None:
    Output().data(report_json(loaded))


def _sarif(loaded: Loaded) -> None:
    from orbit_sdk.cli.sarif import sarif

    Output().data(sarif(loaded.findings))


def _github(loaded: Loaded) -> None:
    from orbit_sdk.cli.github import github_lines

    out = Output()
    for line in github_lines(loaded.findings):
        out.line(line)


_FORMATS: dict[Format, Callable[[Loaded], None]] = {
    Format.TEXT: _text,
    Format.JSON: _json,
    Format.SARIF: _sarif,
    Format.GITHUB: _github,
}


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
