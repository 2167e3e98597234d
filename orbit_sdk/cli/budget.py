"""`orbit budget`: the most that workflows may cost, and what has grown."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.check import SomeTargets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.findings import Finding, of_diagnostics
from orbit_sdk.cli.judging import side_of
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.rendering import render
from orbit_sdk.cli.sources import Source
from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.check.budget import Budget

__all__ = ["budget"]

_LARGEST_FILE = 16 * 1024 * 1024


@command(
    "orbit budget app.py",
    "orbit budget --output budget.json      # agree on these figures",
    "orbit budget --against budget.json     # in CI: has anything grown?",
)
def budget(
    targets: SomeTargets = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="The agreed figures; growth is a finding. Otherwise the `budget` under `tool.orbit`.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the figures here.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Work out the most that each workflow may cost: attempts, calls, rounds, time, and a person's time.

    Exit code 1 when a figure has grown beyond the budget file.
    """
    from orbit_sdk.check.budget import budget_of

    config = find_config()
    out = Output(json=json)
    loaded = load_or_leave(config.targets(targets), out)
    found = [
        (source, budget_of(source.definition)) for source in loaded.sources if source.definition is not None
    ]
    if output is not None:
        output.write_text(_file([figures for _, figures in found]), encoding="utf-8")
        out.note(f"wrote {output}")
        return
    against = against or config.budget
    findings = [] if against is None else _grown(found, against)
    if json:
        said = [each.to_json() for _, each in found]
        out.data(
            {
                "ok": not any(each.is_error for each in findings),
                "items": said,
                "findings": [each.to_json() for each in findings],
            }
        )
    else:
        for _, figures in found:
            _say(out, figures)
        render(findings, out)
    raise typer.Exit(ExitCode.REFUSED if any(each.is_error for each in findings) else ExitCode.GOOD)


def _grown(found: list[tuple[Source, Budget]], path: Path) -> list[Finding]:
    from orbit_sdk.check.budget import check_budget, parse_agreed
    from orbit_sdk.values.json_strict import parse_json

    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}") from None
    agreed = parse_agreed(parse_json(data, max_bytes=_LARGEST_FILE))
    return [
        finding
        for source, figures in found
        for finding in of_diagnostics(check_budget(figures, agreed, side_of(source)), source.origin)
    ]


def _file(budgets: list[Budget]) -> str:
    """Without versions, which change with every change."""
    workflows: dict[str, Any] = {}
    for figures in sorted(budgets, key=lambda each: (each.id, each.version)):
        document = figures.to_json()
        workflows[document.pop("id")] = {name: value for name, value in document.items() if name != "version"}
    return json_module.dumps({"workflows": workflows}, indent=2) + "\n"


def _say(out: Output, figures: Budget) -> None:
    from orbit_sdk.check.words import duration_text

    out.line(f"{figures.id} version {figures.version}", "bold")
    out.fields(
        {
            "longest": duration_text(figures.longest_ms),
            "waits for people or systems": duration_text(figures.human_wait_ms),
            "timers without a bound": ", ".join(figures.open_timers),
        }
    )
    rows = [
        (key, each.calls, each.attempts, each.rounds or "", _outage(each.outage_ms))
        for key, each in figures.handlers.items()
    ]
    out.table(("HANDLER", "CALLS", "ATTEMPTS", "ROUNDS", "A PERSON AFTER AN OUTAGE OF"), rows, "no handler")
    out.line()


def _outage(milliseconds: int | None) -> str:
    from orbit_sdk.check.words import duration_text

    if milliseconds is None:
        return "never"
    return "one unknown outcome" if milliseconds == 0 else duration_text(milliseconds)
