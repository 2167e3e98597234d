"""How a function becomes a command: its examples, and the application built around it when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import typer

__all__ = ["Command", "command", "group"]

F = TypeVar("F", bound=Callable[..., Any])
_EXAMPLES = "__orbit_examples__"


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table of commands.

    Args:
        module, name: where the function (or the Typer application of a group) is found when it is needed.
        panel: the heading under which help shows it.
    """

    module: str
    name: str
    panel: str


def command(*examples: str) -> Callable[[F], F]:
    """Mark a function as a command, with examples for its help."""

    def mark(function: F) -> F:
        setattr(function, _EXAMPLES, examples)
        return function

    return mark


def group(help: str, *functions: Callable[..., Any]) -> typer.Typer:  # noqa: A002  # as the library calls it
    """A command with commands of its own, named after the functions (the last word of each name)."""
    app = typer.Typer(help=help, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")
    app.callback()(_nothing)  # makes a group of it, however few its commands are
    for function in functions:
        add(app, function.__name__.rpartition("_")[2], function)
    return app


def _nothing() -> None:
    """What a group does before its commands."""


def add(app: typer.Typer, name: str, function: Callable[..., Any]) -> None:
    """Add a marked function to an application."""
    examples: Sequence[str] = getattr(function, _EXAMPLES, ())
    app.command(name, help=help_text(function, examples))(function)


def help_text(function: Callable[..., Any], examples: Sequence[str]) -> str:
    """The docstring, and the examples as lines of their own."""
    text = "\n".join(line.strip() for line in (function.__doc__ or "").strip().splitlines())
    if not examples:
        return text
    lines = "\n".join(f"  {example}" for example in examples)
    return f"{text}\n\n\b\nExamples:\n{lines}"


def solo(name: str, function: Callable[..., Any]) -> typer.Typer:
    """An application with this one command."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    add(app, name, function)
    return app
