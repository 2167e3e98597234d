"""The table of commands, and the group that loads each of them when it is used.

Commands of other packages join through the entry-point group `orbit.commands`: the entry's name is the
command, its object a Typer application.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from orbit_sdk.cli.command import Command, solo
from orbit_sdk.cli.output import ExitCode, Output, wants_json
from orbit_sdk.cli.wrong_use import UsageError, asks_for_json, tell
from orbit_sdk.errors import InvalidArgument, OrbitError

__all__ = ["COMMANDS", "ENTRY_POINTS", "app", "plugins"]

ENTRY_POINTS: Final = "orbit.commands"

_ASKS_FOR_JSON: Final = "orbit.asks_for_json"
_OFFLINE: Final = "Offline"
_RUN: Final = "Run"
_USE: Final = "Use a server"

COMMANDS: Final[dict[str, Command]] = {
    "init": Command("orbit_sdk.cli.init", "init", _OFFLINE),
    "check": Command("orbit_sdk.cli.check", "check", _OFFLINE),
    "compile": Command("orbit_sdk.cli.compiling", "compile_", _OFFLINE),
    "diff": Command("orbit_sdk.cli.differing", "diff", _OFFLINE),
    "budget": Command("orbit_sdk.cli.budget", "budget", _OFFLINE),
    "graph": Command("orbit_sdk.cli.graph", "graph", _OFFLINE),
    "dev": Command("orbit_sdk.cli.dev.command", "dev", _RUN),
    "run": Command("orbit_sdk.cli.run", "run", _RUN),
    "worker": Command("orbit_sdk.cli.workers", "worker", _RUN),
    "plan": Command("orbit_sdk.cli.plan", "plan", _USE),
    "publish": Command("orbit_sdk.cli.publish", "publish", _USE),
    "definition": Command("orbit_sdk.cli.definitions", "definition", _USE),
    "versions": Command("orbit_sdk.cli.definitions", "versions", _USE),
    "start": Command("orbit_sdk.cli.start", "start", _USE),
    "watch": Command("orbit_sdk.cli.watch", "watch", _USE),
    "list": Command("orbit_sdk.cli.workflows", "list_", _USE),
    "show": Command("orbit_sdk.cli.workflows", "show", _USE),
    "export": Command("orbit_sdk.cli.export", "export", _USE),
    "events": Command("orbit_sdk.cli.events", "events", _USE),
    "stuck": Command("orbit_sdk.cli.stuck", "stuck", _USE),
    "why": Command("orbit_sdk.cli.why", "why", _USE),
    "audit": Command("orbit_sdk.cli.audit", "audit", _USE),
    "signal": Command("orbit_sdk.cli.signals", "signal", _USE),
    "wait": Command("orbit_sdk.cli.waits", "wait", _USE),
    "pause": Command("orbit_sdk.cli.control", "pause", _USE),
    "resume": Command("orbit_sdk.cli.control", "resume", _USE),
    "cancel": Command("orbit_sdk.cli.control", "cancel", _USE),
    "restart": Command("orbit_sdk.cli.control", "restart", _USE),
    "review": Command("orbit_sdk.cli.reviews", "review", _USE),
    "bulk": Command("orbit_sdk.cli.bulk", "bulk", _USE),
    "task": Command("orbit_sdk.cli.tasks", "task", _USE),
    "queue": Command("orbit_sdk.cli.queues", "queue", _USE),
    "schedule": Command("orbit_sdk.cli.schedules", "schedule", _USE),
    "subscription": Command("orbit_sdk.cli.subscriptions", "subscription", _USE),
}


def plugins() -> dict[str, Any]:
    """Entry points of commands that other packages bring, by command name."""
    from importlib.metadata import entry_points

    return {found.name: found for found in entry_points(group=ENTRY_POINTS)}


class Commands(TyperGroup):
    """Loads a command when it is asked for, and turns what it raises into words and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is the library's
        return [*COMMANDS, *sorted(plugins().keys() - COMMANDS.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        found = COMMANDS.get(cmd_name)
        if found is not None:
            target = getattr(import_module(found.module), found.name)
            loaded: Any = get_command(target if isinstance(target, typer.Typer) else solo(cmd_name, target))
            loaded.rich_help_panel = found.panel
        else:
            plugin = plugins().get(cmd_name)
            if plugin is None:
                return None
            try:
                loaded = get_command(plugin.load())
            except ImportError as error:
                loaded = get_command(_missing(cmd_name, error))
            loaded.rich_help_panel = _RUN
        loaded.name = cmd_name
        return loaded

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        # An error in what follows may come before the option is seen: it is looked for beforehand.
        ctx.meta[_ASKS_FOR_JSON] = asks_for_json(args)
        with _wrong_use(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _wrong_use(ctx):
                return super().invoke(ctx)
        except OrbitError as error:
            raise typer.Exit(Output(json=wants_json(ctx)).error(error)) from None
        except BrokenPipeError:
            raise  # whoever read the answer has seen enough; the library ends quietly
        except OSError as error:
            said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            if wants_json(ctx):
                Output(json=True).error(InvalidArgument(said))
            else:
                Output().note(f"error {said}", "red")
            raise typer.Exit(ExitCode.REFUSED) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


@contextmanager
def _wrong_use(ctx: Any) -> Generator[None]:
    """Programs are told in JSON; to people the library speaks itself."""
    try:
        yield
    except UsageError as error:
        if not ctx.meta.get(_ASKS_FOR_JSON):
            raise
        raise typer.Exit(tell(error)) from None


def _missing(name: str, error: ImportError) -> typer.Typer:
    """Stands for a command whose package is not installed completely."""

    def missing() -> None:
        said = f"`orbit {name}` needs more than is installed ({error}): pip install 'orbit-sdk[server]'"
        Output().note(said, "red")
        raise typer.Exit(ExitCode.WRONG_USE)

    missing.__doc__ = "Not installed: it comes with the extra `server` of orbit-sdk."
    return solo(name, missing)


_ABOUT: Final = (
    "Durable tasks and workflows for actions that take long, touch the outside world and may need a person."
)

app = typer.Typer(
    cls=Commands,
    name="orbit",
    help=_ABOUT,
    epilog="Exit codes: 0 good · 1 findings, or refused · 2 wrong use · 3 server or network unavailable",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print(f"orbit {version('orbit-sdk')}")
        raise typer.Exit


@app.callback(invoke_without_command=True, help=_ABOUT)
def start(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback answers
        bool,
        typer.Option("--version", help="Say the version and leave.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """What comes before every command."""
    if ctx.invoked_subcommand is None:
        from orbit_sdk.cli.welcome import welcome

        welcome(Output())
        raise typer.Exit(ExitCode.GOOD)
