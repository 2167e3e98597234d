"""`orbit diff`: what changed in workflows, whom it affects, and how much care it needs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.check import SomeTargets
from orbit_sdk.cli.command import command
from orbit_sdk.cli.committed import AGAINST_HELP, Committed, committed
from orbit_sdk.cli.compiling import load_or_leave
from orbit_sdk.cli.config import find_config
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.sources import Loaded, Source

if TYPE_CHECKING:
    from orbit_sdk.check.diff import Change

__all__ = ["diff"]

_STYLES = {"BREAKING": "red", "CAREFUL": "yellow", "SAFE": "green"}


class Format(StrEnum):
    """How changes are written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class FailOn(StrEnum):
    """Which verdict makes the exit code 1."""

    NEVER = "never"
    BREAKING = "breaking"
    CAREFUL = "careful"


@command(
    "orbit diff                                         # all workflows, against git:HEAD",
    "orbit diff app.py --against definitions/orders.payment.v3.json",
    "orbit diff --against git:main --format markdown    # a comment for the pull request",
    "orbit diff app.py --against https://orbit.example --fail-on breaking",
)
def diff(
    targets: SomeTargets = None,
    against: Annotated[str, typer.Option("--against", metavar="WHAT", help=AGAINST_HELP)] = "git:HEAD",
    form: Annotated[Format, typer.Option("--format", help="How to write the changes.")] = Format.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="From which verdict on the exit code is 1.")
    ] = FailOn.NEVER,
    json: Json = False,
) -> None:
    """Show what changed in workflows, for whom, and how much care it needs.

    Each workflow is compared with the highest version that is known of it. Instances that run already keep
    the version they started with.
    """
    from orbit_sdk.check.diff import Verdict, worst

    config = find_config()
    form = Format.JSON if json else form
    out = Output(json=form is Format.JSON)
    loaded = load_or_leave(config.targets(targets), out)
    known = committed(against, config, [source.id for source in loaded.sources if source.id is not None])
    rows = [(source, _changes(source, known)) for source in loaded.sources]
    _WRITERS[form](
        loaded, known, [(source, found) for source, found in rows if found or _is_new(source, known)]
    )
    verdict = worst(change for _, found in rows for change in found)
    order = list(Verdict)
    refused = fail_on is not FailOn.NEVER and order.index(verdict) <= order.index(Verdict(fail_on.upper()))
    raise typer.Exit(ExitCode.REFUSED if refused else ExitCode.GOOD)


def _changes(source: Source, known: Committed) -> tuple[Change, ...]:
    from orbit_sdk.check.diff import compare

    before = known.latest(source.id or "")
    if before is None or source.definition is None:
        return ()
    return compare(before, source.definition)


def _is_new(source: Source, known: Committed) -> bool:
    return source.id not in known.ids


_Rows = list[tuple[Source, tuple["Change", ...]]]


def _name(source: Source, known: Committed) -> str:
    before = known.latest(source.id or "")
    if before is None:
        return f"{source.id}@{source.version} (new)"
    if before.version == source.version:
        return f"{source.id}@{source.version}"
    return f"{source.id}@{before.version}→{source.version}"


def _text(loaded: Loaded, known: Committed, rows: _Rows) -> None:
    out = Output()
    for source, changes in rows:
        out.line(_name(source, known), "bold")
        for each in changes:
            out.line(f"  {each.verdict.value:<9} {each.affects.value:<17} {each.what}", _STYLES[each.verdict])
            out.line(f"            {each.path}", "dim")
    same = len(loaded.sources) - len(rows)
    out.note(f"{len(rows)} changed or new, {same} as before")


def _json(loaded: Loaded, known: Committed, rows: _Rows) -> None:
    from orbit_sdk.check.diff import worst

    items = []
    for source, changes in rows:
        before = known.latest(source.id or "")
        items.append(
            {
                "id": source.id,
                "before": None if before is None else before.version,
                "after": source.version,
                "verdict": worst(changes).value,
                "changes": [each.to_json() for each in changes],
            }
        )
    Output().data({"items": items, "unchanged": len(loaded.sources) - len(rows)})


def _markdown(loaded: Loaded, known: Committed, rows: _Rows) -> None:
    from orbit_sdk.check.diff import markdown_table
    from orbit_sdk.check.diff.change import new_workflow

    out = Output()
    if not rows:
        out.line("No workflow changed.")
        return
    told = [(_name(source, known), changes or (new_workflow(),)) for source, changes in rows]
    out.line(markdown_table(told).rstrip("\n"))
    out.note(f"{len(loaded.sources) - len(rows)} as before")


_WRITERS = {Format.TEXT: _text, Format.JSON: _json, Format.MARKDOWN: _markdown}
