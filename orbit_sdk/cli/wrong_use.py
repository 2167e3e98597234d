"""Wrong use of a command, told to programs: the same document as any other error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import typer

from orbit_sdk.cli.output import ExitCode, Output
from orbit_sdk.errors import Detail, InvalidArgument

__all__ = ["UsageError", "asks_for_json", "tell"]

UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""What the library raises for wrong use: its public names have only this child of it."""


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line that cannot be read would have asked for JSON."""
    before, _, _ = "\0".join(arguments).partition("\0--\0")
    return "--json" in before.split("\0")


def tell(error: Any) -> ExitCode:
    """Print the error as JSON; the exit code for it."""
    reason = str(error.message or error.format_message())
    Output(json=True).error(InvalidArgument(error.format_message(), [Detail(_field(error), reason)]))
    return ExitCode.WRONG_USE


def _field(error: Any) -> str:
    """The option or argument that is wrong, as it is typed; `command` where it is none of them."""
    hint = getattr(error, "param_hint", None) or getattr(error, "option_name", None)
    if hint:
        return str(hint if isinstance(hint, str) else " / ".join(hint))
    param = getattr(error, "param", None)
    if param is None:
        return "command"
    longest = str(max(param.opts, key=len))
    if longest.startswith("-"):
        return longest
    return str(getattr(param, "metavar", None) or param.name.upper()).strip("[]")
