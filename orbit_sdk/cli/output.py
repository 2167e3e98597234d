"""How commands speak: text for people, JSON for programs, and what their exit codes mean.

Colours appear on a terminal only (and never with NO_COLOR). Answers go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json as json_module
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.errors import Code, InvalidArgument, OrbitError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ExitCode", "Json", "Output", "WrongUse", "wants_json"]

_WIDE = 250
"""Columns where nobody looks: a table in a file or a pipe is never folded."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_WANTS_JSON = "orbit.json"


class ExitCode(IntEnum):
    """The same for every command."""

    GOOD = 0
    REFUSED = 1  # findings, or the server (or the outcome of a workflow) said no
    WRONG_USE = 2
    UNAVAILABLE = 3  # the server or the network is not there


def _remember(ctx: typer.Context, value: bool) -> bool:
    if value:
        ctx.meta[_WANTS_JSON] = True
    return value


Json = Annotated[
    bool, typer.Option("--json", help="Answer in JSON, for programs.", callback=_remember, is_eager=True)
]
"""The option that every command has."""


def wants_json(ctx: typer.Context) -> bool:
    """Whether the command that ran was asked for JSON."""
    return bool(ctx.meta.get(_WANTS_JSON, False))


class Output:
    """Where a command says what it has to say.

    Args:
        json: say it in JSON: one document, or one per line for what goes on.
    """

    def __init__(self, *, json: bool = False) -> None:
        self.json = json

    def data(self, value: Any) -> None:
        """One JSON document, indented."""
        print(json_module.dumps(value, indent=2, ensure_ascii=False), flush=True)

    def event(self, value: Any) -> None:
        """One JSON document on one line: part of a stream."""
        print(json_module.dumps(value, ensure_ascii=False), flush=True)

    def line(self, text: str = "", style: str | None = None) -> None:
        """One line of an answer."""
        print(styled(text, style, sys.stdout), flush=True)

    def note(self, text: str, style: str | None = None) -> None:
        """One line beside the answer, on stderr."""
        print(styled(text, style, sys.stderr), file=sys.stderr, flush=True)

    def fields(self, values: Mapping[str, object]) -> None:
        """Names and values, one per line; what is None or empty is left out."""
        shown = {name: str(value) for name, value in values.items() if value not in (None, "", {}, [])}
        width = max((len(name) for name in shown), default=0)
        for name, value in shown.items():
            head = styled(name.ljust(width), "dim", sys.stdout)
            print(f"{head}  {value}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
        """Rows under their columns, or the sentence `empty`."""
        found = list(rows)
        if not found:
            self.note(empty, "dim")
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in found:
            table.add_row(*(Text(text := _shown(cell), style=state_style(text) or "") for cell in row))
        console().print(table)

    def error(self, error: OrbitError) -> ExitCode:
        """Say what was refused, and the exit code for it."""
        details = [{"field": item.field, "reason": item.reason} for item in error.details]
        if self.json:
            said = {"code": error.code.value, "message": error.message, "details": details}
            self.data({"error": said})
        else:
            self.note(f"{styled('error', 'red', sys.stderr)} {error.code.value}: {error.message}")
            for item in error.details:
                if f"{item.field} {item.reason}" not in error.message:
                    self.note(f"  {item.field}: {item.reason}")
        if isinstance(error, WrongUse):
            return ExitCode.WRONG_USE
        return ExitCode.UNAVAILABLE if error.code is Code.UNAVAILABLE else ExitCode.REFUSED


class WrongUse(InvalidArgument):
    """What the command was given cannot be used: nothing was looked at or asked yet."""


def console(*, stderr: bool = False) -> Console:
    """A console of the library that draws tables and live views."""
    from rich.console import Console

    file: IO[str] = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else _WIDE
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def styled(text: str, style: str | None, file: IO[str]) -> str:
    """The text in a style when the file is a terminal that wants colours."""
    if style is None or not text or not _colours(file):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def state_style(text: str) -> str | None:
    """The colour of a state's name, on the few that deserve one."""
    return _STATE_STYLES.get(text)


def _colours(file: IO[str]) -> bool:
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _shown(cell: object) -> str:
    return "" if cell is None else str(cell)


_STATE_STYLES: Mapping[str, str] = {
    "SUCCEEDED": "green",
    "COMPLETED": "green",
    "CONSUMED": "green",
    "FAILED": "red",
    "EXPIRED": "red",
    "REJECTED": "red",
    "CANCELLED": "yellow",
    "CANCELLING": "yellow",
    "NEEDS_REVIEW": "yellow",
    "RUNNING": "cyan",
    "WAITING_TASK": "cyan",
    "WAITING_SIGNAL": "cyan",
    "WAITING_TIME": "cyan",
    "WAITING": "cyan",
    "SKIPPED": "dim",
    "PENDING": "dim",
    "STOPPED": "dim",
}
