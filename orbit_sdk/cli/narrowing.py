"""The options that lists of workflows and of tasks share, and how counts are said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.output import Output
from orbit_sdk.cli.shapes import wire
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.protocol.common import moment_of
from orbit_sdk.values.instants import from_rfc3339

if TYPE_CHECKING:
    from orbit_sdk.protocol.common import Count

Label = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Only with this label; may be given several times."),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="2h", help="Only from then on: a duration or an instant.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="1h", help="Only before then: a duration or an instant.")
]
Schedule = Annotated[
    str | None, typer.Option("--schedule", metavar="ID", help="Only what this schedule started.")
]
ErrorCode = Annotated[str | None, typer.Option("--error", metavar="CODE", help="Only with this error code.")]
Counting = Annotated[bool, typer.Option("--count", help="Say how many there are instead.")]
GroupBy = Annotated[
    str | None,
    typer.Option("--group-by", metavar="WHAT", help="Count by state, step, error_code, label:NAME, ..."),
]


def instant(text: str | None, option: str) -> datetime | None:
    """`2h` (so long ago) or an RFC 3339 instant. Raises BadParameter."""
    if text is None:
        return None
    if text[:4].isdigit() and "-" in text:
        try:
            return moment_of(from_rfc3339(text))
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} {error}", param_hint=option) from None
    return datetime.now(UTC) - timedelta(milliseconds=duration_ms(text, option))


def say_count(count: Count, group_by: str | None, out: Output) -> None:
    """A count as a table of its groups and the whole."""
    if out.json:
        out.data(wire(count))
        return
    if group_by is not None:
        rows = [(group.key if group.key is not None else "-", group.count) for group in count.groups]
        out.table((group_by.upper(), "COUNT"), rows, "there are none")
    out.line(f"{count.total}{'' if count.complete else ' at least'}")
    if count.more_groups:
        out.note("there are more groups; the smallest are not shown", "dim")
    if not count.complete:
        out.note("only the newest were counted: narrow it with --since or another filter", "dim")
